"""Publish every committed event to the stream ``AUDIT``, in order, at least once.

The cursor advances only after the stream has acknowledged. So a crash repeats at most one chunk, and a stream that lost
its messages gets them again: the database is the source of truth.
"""

import asyncio
from datetime import timedelta
from typing import Protocol

from autopost_contracts.subjects import Topology
from autopost_runtime.lifecycle.backoff import Backoff
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.nats.ordered_publisher import NotPublished, OrderedPublisher, PublishUnknown, StreamState
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

from autopost_monitor.relay.gateway import PendingEvent
from autopost_monitor.relay.message import outgoing

CHUNK = 1000
"""Events published at once, and the most that a crash can repeat."""

STREAM_CHECK = timedelta(seconds=5)
"""How often the stream is checked: the delay until a wiped stream is noticed while there are no events."""

CUT = "cut"
"""The stream was wiped and then got newer events. It is cleared first, or older events would come after newer ones."""

_relayed = metrics.counter("autopost_relay_events", "Events that the audit stream has acknowledged.")


class Cursor(Protocol):
    async def open_relay(self) -> bool: ...
    async def adopt_stream(self, sight: StreamState, max_age: timedelta) -> str | None: ...
    async def next_audit_events(self, limit: int) -> list[PendingEvent]: ...
    async def advance_relay(self, seq: int, stream_seq: int) -> bool: ...


class LeadershipLost(Exception):  # noqa: N818  named for what happened
    """Another replica relays now."""


class Relay:
    def __init__(
        self, cursor: Cursor, publisher: OrderedPublisher, topology: Topology, service: Service, idle: timedelta
    ) -> None:
        self._cursor = cursor
        self._publisher = publisher
        self._topology = topology
        self._service = service
        self._idle = idle
        self._checked_at = 0.0
        self._backoff = Backoff()

    async def run_once(self) -> None:
        """Run until the service stops or the leadership is lost."""
        if not await self._cursor.open_relay():
            return
        failing = False
        while not self._service.stopping.is_set():
            try:
                moved = await self._step()
            except LeadershipLost:
                return
            except (NotPublished, PublishUnknown) as exc:
                if not failing:
                    get_logger().warning("relay.waits", reason=str(exc))
                failing = True
                await self._service.sleep(self._backoff.next())
                continue
            failing = False
            self._backoff.reset()
            if not moved:
                await self._service.sleep(self._idle)

    async def _step(self) -> bool:
        """Whether there were events to publish."""
        await self._check_stream()
        waiting = await self._cursor.next_audit_events(CHUNK)
        if not waiting:
            return False
        stream_seq = await self._publisher.publish([outgoing(one, self._topology) for one in waiting])
        if not await self._cursor.advance_relay(waiting[-1].event.seq, stream_seq):
            raise LeadershipLost
        _relayed.add(len(waiting))
        return True

    async def _check_stream(self) -> None:
        """Check before the first publish, after each failure, and periodically."""
        if self._publisher.ready and _now() - self._checked_at < STREAM_CHECK.total_seconds():
            return
        state = await self._publisher.look()
        verdict = await self._cursor.adopt_stream(state, state.max_age or self._topology.audit_stream.max_age)
        if verdict:
            get_logger().warning("relay.stream_replaced", created=state.created.isoformat(), messages=state.messages)
        if verdict == CUT:
            await self._publisher.clear(state.last_seq)
            await self._publisher.look()
        self._checked_at = _now()


def _now() -> float:
    return asyncio.get_running_loop().time()
