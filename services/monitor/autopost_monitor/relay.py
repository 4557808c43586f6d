"""Relay every committed event to the stream ``AUDIT``, in order, at least once.

The cursor moves only after the stream has acknowledged. So a crash anywhere repeats at most a chunk, and a stream that
lost its messages gets them again: the database is what is true, the stream only tells.
"""

import asyncio
from datetime import timedelta
from typing import Protocol

from autopost_contracts.subjects import Topology
from autopost_runtime import metrics
from autopost_runtime.backoff import Backoff
from autopost_runtime.chain import Chain, NotPublished, PublishUnknown, Sight
from autopost_runtime.logs import get_logger
from autopost_runtime.service import Service

from autopost_monitor.relay_gateway import Waiting
from autopost_monitor.relay_message import outgoing

CHUNK = 1000
"""How many are on their way at once, and what is repeated at most after a crash."""

LOOK = timedelta(seconds=5)
"""How often the stream is looked at while all goes well: so long a wiped one goes unnoticed when nothing happens."""

CUT = "cut"
"""What the stream has was written after its beginning was taken away, and would stand before what it follows."""

_relayed = metrics.counter("autopost_relay_events", "Events that the audit stream has acknowledged.")


class Cursor(Protocol):
    async def open_relay(self) -> bool: ...
    async def adopt_stream(self, sight: Sight, max_age: timedelta) -> str | None: ...
    async def next_audit_events(self, limit: int) -> list[Waiting]: ...
    async def advance_relay(self, seq: int, stream_seq: int) -> bool: ...


class Lost(Exception):  # noqa: N818  named for what happened
    """Another replica relays now."""


class Relay:
    def __init__(self, cursor: Cursor, chain: Chain, topology: Topology, service: Service, idle: timedelta) -> None:
        self._cursor = cursor
        self._chain = chain
        self._topology = topology
        self._service = service
        self._idle = idle
        self._looked = 0.0
        self._backoff = Backoff()

    async def round(self) -> None:
        """As long as the service runs and the turn is ours."""
        if not await self._cursor.open_relay():
            return
        troubled = False
        while not self._service.stopping.is_set():
            try:
                moved = await self._step()
            except Lost:
                return
            except (NotPublished, PublishUnknown) as exc:
                if not troubled:
                    get_logger().warning("relay.waits", reason=str(exc))
                troubled = True
                await self._service.sleep(self._backoff.next())
                continue
            troubled = False
            self._backoff.reset()
            if not moved:
                await self._service.sleep(self._idle)

    async def _step(self) -> bool:
        """Whether there was something to relay."""
        await self._look()
        waiting = await self._cursor.next_audit_events(CHUNK)
        if not waiting:
            return False
        stream_seq = await self._chain.publish([outgoing(one, self._topology) for one in waiting])
        if not await self._cursor.advance_relay(waiting[-1].event.seq, stream_seq):
            raise Lost
        _relayed.add(len(waiting))
        return True

    async def _look(self) -> None:
        """Before the first publish, after each failure, and now and then."""
        if self._chain.ready and _now() - self._looked < LOOK.total_seconds():
            return
        sight = await self._chain.look()
        verdict = await self._cursor.adopt_stream(sight, sight.max_age or self._topology.audit_stream.max_age)
        if verdict:
            get_logger().warning("relay.stream_replaced", created=sight.created.isoformat(), messages=sight.messages)
        if verdict == CUT:
            await self._chain.clear(sight.last_seq)
            await self._chain.look()
        self._looked = _now()


def _now() -> float:
    return asyncio.get_running_loop().time()
