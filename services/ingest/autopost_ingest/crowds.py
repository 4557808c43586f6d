"""Nobody may take all the room: shares of the memory for bodies, and of the requests under way, by who takes them."""

import asyncio
from collections import Counter
from collections.abc import Hashable
from functools import lru_cache
from weakref import WeakValueDictionary

from autopost_contracts.ids import EndpointId, WorkspaceId
from autopost_runtime.web import Problem
from msgspec import Struct

QUARTER = 4
EIGHTH = 8


class Crowded(Problem):
    """Too much at once, of one or of all. Nothing was kept."""

    def __init__(self, detail: str = "too much is coming in at once; try again") -> None:
        super().__init__(503, "Service Unavailable", detail, headers={"Retry-After": "1"})


class Holder(Struct, frozen=True, cache_hash=True):
    """``part`` of the memory is the most that it may fill, unless by a single body."""

    name: Hashable
    part: int


STRANGERS = Holder("strangers", EIGHTH)
"""Whoever names an endpoint that there is not."""


@lru_cache(maxsize=1024)
def tenant(workspace: WorkspaceId) -> Holder:
    return Holder(workspace, QUARTER)


def unproven(endpoint: EndpointId) -> Holder:
    """Whoever names this endpoint and may not have its secret: not the strangers', nor the workspace's share."""
    return Holder(("unproven", endpoint), EIGHTH)


class Held(Struct):
    """What one request holds."""

    holder: Holder
    size: int = 0


class Shares:
    """Of a memory. Only bytes that have come count: to announce some costs a sender nothing."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._all = 0
        self._by_holder: Counter[Holder] = Counter()

    def take(self, held: Held, size: int) -> None:
        """Raises ``Crowded``."""
        of_others = self._by_holder[held.holder] - held.size
        over_its_part = of_others > 0 and of_others + held.size + size > self._memory // held.holder.part
        if over_its_part or self._all + size > self._memory:
            raise Crowded
        held.size += size
        self._move(held.holder, size)

    def give_back(self, held: Held) -> None:
        self._move(held.holder, -held.size)
        held.size = 0

    def _move(self, holder: Holder, size: int) -> None:
        self._all += size
        held = self._by_holder[holder] + size
        if held:
            self._by_holder[holder] = held
        else:
            self._by_holder.pop(holder, None)


class Places:
    """For the requests of each workspace that are under way."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: dict[WorkspaceId, int] = {}

    def take(self, workspace: WorkspaceId) -> None:
        """Whoever took one gives it back. Raises ``Crowded``."""
        taken = self._taken.get(workspace, 0)
        if taken >= self._most:
            raise Crowded("too many requests of this workspace are under way; try again")
        self._taken[workspace] = taken + 1

    def give_back(self, workspace: WorkspaceId) -> None:
        taken = self._taken.pop(workspace) - 1
        if taken:
            self._taken[workspace] = taken


class Turns:
    """For what may take long: each workspace has so many, and waits for its own alone."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._by_workspace: WeakValueDictionary[WorkspaceId, asyncio.Semaphore] = WeakValueDictionary()

    def of(self, workspace: WorkspaceId) -> asyncio.Semaphore:
        return self._by_workspace.setdefault(workspace, asyncio.Semaphore(self._most))
