"""From ``auth_ref`` to a token: where it lies is asked of the database, what it is of the environment or a file.

Remembered for a moment only, so that a rotation is heard without a restart.
"""

import asyncio
import os
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.config import Secret

from autopost_dispatcher.gateway import Credential

REMEMBERED = timedelta(seconds=10)


class Bindings(Protocol):
    async def read_credential(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Credential | None: ...


class Credentials:
    def __init__(self, bindings: Bindings, environment: Mapping[str, str] = os.environ) -> None:
        self._bindings = bindings
        self._environment = environment
        self._known: dict[tuple[WorkspaceId, str, str], tuple[float, Secret]] = {}
        self._reads: dict[tuple[WorkspaceId, str, str], asyncio.Task[Secret | None]] = {}

    async def token(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Secret | None:
        """``None`` when there is no such credential or nothing where it should lie. Who asks together reads once."""
        key = (workspace, platform, auth_ref)
        known = self._known.get(key)
        if known is not None and time.monotonic() < known[0]:
            return known[1]
        read = self._reads.get(key)
        if read is None:
            read = self._reads[key] = asyncio.create_task(self._read(workspace, platform, auth_ref))
            read.add_done_callback(lambda _: self._reads.pop(key))
        return await asyncio.shield(read)

    async def _read(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Secret | None:
        credential = await self._bindings.read_credential(workspace, platform, auth_ref)
        secret = self._reveal(credential) if credential else None
        if secret is not None:
            self._known[workspace, platform, auth_ref] = (time.monotonic() + REMEMBERED.total_seconds(), secret)
        return secret

    def _reveal(self, credential: Credential) -> Secret | None:
        kind, _, place = credential.secret_ref.partition(":")
        try:
            value = self._environment.get(place, "") if kind == "env" else _content(kind, place)
        except OSError:
            return None
        return Secret(value) if value else None


def _content(kind: str, place: str) -> str:
    return Path(place).read_text(encoding="utf-8").strip() if kind == "file" else ""
