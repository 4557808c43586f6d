"""Quotas per workspace or sender: memory for request bodies and concurrent requests."""

from collections import Counter
from collections.abc import Hashable
from functools import lru_cache

from autopost_contracts.ids import EndpointId, WorkspaceId
from msgspec import Struct

from autopost_runtime.http.problem import HttpProblem

QUARTER = 4
EIGHTH = 8


class AtCapacity(HttpProblem):
    """A quota is used up; nothing was stored."""

    def __init__(self, detail: str = "server is at capacity, retry later") -> None:
        super().__init__(503, "Service Unavailable", detail, headers={"Retry-After": "1"})


class Holder(Struct, frozen=True, cache_hash=True):
    """May use ``1 / part`` of the memory; a single body may exceed that."""

    name: Hashable
    part: int


UNAUTHENTICATED = Holder("unauthenticated", EIGHTH)
"""The quota of all requests with an unknown endpoint id.

Each known endpoint has its own quota. So a client that exhausts this one can distinguish an existing id (401) from an
unknown one (503). That is accepted, because an id is not secret: with a shared quota, invented ids would block all
senders, and a quota per invented id would be no limit.
"""


@lru_cache(maxsize=1024)
def tenant(workspace: WorkspaceId) -> Holder:
    return Holder(workspace, QUARTER)


def unverified(endpoint: EndpointId) -> Holder:
    """Requests that name this endpoint and are not verified yet; separate from the workspace and from unknown
    endpoints."""
    return Holder(("unverified", endpoint), EIGHTH)


class HeldBytes(Struct):
    """The bytes that one request holds."""

    holder: Holder
    size: int = 0


class MemoryQuota:
    """Counts received bytes per holder. A Content-Length does not count, because it costs a sender nothing."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._total = 0
        self._used: Counter[Holder] = Counter()

    def acquire(self, held: HeldBytes, size: int) -> None:
        """Raises ``AtCapacity``."""
        other_bytes = self._used[held.holder] - held.size
        over_quota = other_bytes > 0 and other_bytes + held.size + size > self._memory // held.holder.part
        if over_quota or self._total + size > self._memory:
            raise AtCapacity
        held.size += size
        self._add(held.holder, size)

    def release(self, held: HeldBytes) -> None:
        self._add(held.holder, -held.size)
        held.size = 0

    def _add(self, holder: Holder, size: int) -> None:
        self._total += size
        held = self._used[holder] + size
        if held:
            self._used[holder] = held
        else:
            self._used.pop(holder, None)


class RequestQuota:
    """Concurrent requests per workspace."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: dict[WorkspaceId, int] = {}

    def acquire(self, workspace: WorkspaceId) -> None:
        """Must be followed by ``release``. Raises ``AtCapacity``."""
        taken = self._taken.get(workspace, 0)
        if taken >= self._most:
            raise AtCapacity("too many concurrent requests of this workspace; retry later")
        self._taken[workspace] = taken + 1

    def release(self, workspace: WorkspaceId) -> None:
        taken = self._taken.pop(workspace) - 1
        if taken:
            self._taken[workspace] = taken
