"""Quotas per workspace for work that may take long."""

import asyncio
from weakref import WeakValueDictionary

from autopost_contracts.ids import WorkspaceId


class WorkspaceSemaphores:
    """One semaphore per workspace, for work that may take long."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._by_workspace: WeakValueDictionary[WorkspaceId, asyncio.Semaphore] = WeakValueDictionary()

    def of(self, workspace: WorkspaceId) -> asyncio.Semaphore:
        return self._by_workspace.setdefault(workspace, asyncio.Semaphore(self._most))
