"""Admit pushes together: those that come while others of their endpoint are being admitted share the next call.

Nobody waits for company: a push that finds its endpoint idle goes at once. Under load one transaction takes in what
came during the one before, which is what makes many posts cheap; so that two calls share them evenly, the second waits
until it has as many as the first took, or until the first has ended.

Posts to few channels cost this process as much as the database, and the two must not wait for each other: were all of
them in calls at once, nobody would be left to prepare, and then nobody to call. So a call takes no more than half of
those that are about, the other half is answered and read meanwhile, and a second call goes beside it only when they
come faster than that.
"""

import asyncio
from collections import deque
from collections.abc import Sequence

import asyncpg
from autopost_contracts.ids import EndpointId
from msgspec import Struct

from autopost_ingest.crowds import Crowded
from autopost_ingest.gateway import Endpoint, Gateway, Push, Verdict

AT_ONCE = 2
"""Calls of one endpoint: while one is answered the next is under way."""

FEW_CHANNELS = 8
"""From here on a post is the database's work: two calls at once are worth more than an even flow."""

PRICE = 8
"""A call costs as much as so many posts to one channel: fewer are not split."""

MOST_POSTS = 100
MOST_DELIVERIES = 2_000
MOST_BYTES = 1024 * 1024
MOST_WAITING = 300
"""In one line: as many as a few calls take; whoever comes on top is told so at once instead of waiting in vain."""

FAULTS_OF_A_POST = frozenset({"21", "22", "23", "54", "AP"})
"""By class of SQLSTATE: its rows, values, keys and size, and our contracts. Never that something took too long."""

CONFLICTS = frozenset({"40001", "40P01"})
"""Alone it holds fewer locks."""


Ending = Verdict | Exception


class Waiting(Struct, eq=False):
    push: Push
    verdict: asyncio.Future[Verdict]


class Line:
    """The pushes of one endpoint that wait for their call."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()  # once: asking for it is a system call
        self.running = 0
        self.under_way = 0
        """How many pushes the calls that run have taken."""
        self.ended = 0
        """How many the last call took that has ended: they are about to come again."""
        self.channels = MOST_DELIVERIES
        """How many a post went to lately; before that is known, posts go ahead one by one."""
        self._waiting: deque[Waiting] = deque()

    def join(self, push: Push) -> asyncio.Future[Verdict]:
        """Raises ``Crowded``."""
        if len(self._waiting) >= MOST_WAITING:
            raise Crowded
        verdict: asyncio.Future[Verdict] = self._loop.create_future()
        self._waiting.append(Waiting(push, verdict))
        return verdict

    def wants_a_call(self) -> bool:
        """At once when none runs; beside another once enough wait: every call has its price."""
        if not self.running:
            return bool(self._waiting)
        enough = self.under_way if self.channels >= FEW_CHANNELS else max(PRICE, self.under_way * 3 // 2)
        return self.running < AT_ONCE and len(self._waiting) >= enough > 0

    def learn(self, verdicts: Sequence[Verdict]) -> None:
        """Only from posts that went somewhere: a duplicate says nothing about where the next one goes."""
        routed = [verdict.routed for verdict in verdicts if verdict.verdict == "accepted"]
        if routed:
            self.channels = max(1, *routed)

    def take(self) -> list[Waiting]:
        """The next batch, which is under way now."""
        batch = self.next_batch()
        self.under_way += len(batch)
        return batch

    def end(self, batch: list[Waiting]) -> None:
        self.running -= 1
        self.under_way -= len(batch)
        self.ended = len(batch)

    def next_batch(self) -> list[Waiting]:
        """As many as one call takes; whoever has given up waiting is left out."""
        batch: list[Waiting] = []
        size = 0
        most = max(1, min(MOST_POSTS, MOST_DELIVERIES // self.channels))
        if self.channels < FEW_CHANNELS:
            half = -(-(len(self._waiting) + max(self.under_way, self.ended)) // 2)
            most = min(most, max(PRICE, half))
        while self._waiting and len(batch) < most:
            size += len(self._waiting[0].push.post)
            if batch and size > MOST_BYTES:
                break
            waiting = self._waiting.popleft()
            if not waiting.verdict.done():
                batch.append(waiting)
        return batch


class Together:
    def __init__(self, gateway: Gateway, *, audit_deduped: bool) -> None:
        self._gateway = gateway
        self._audit_deduped = audit_deduped
        self._lines: dict[EndpointId, Line] = {}
        self._calls: set[asyncio.Task[None]] = set()

    async def admit(self, endpoint: Endpoint, push: Push) -> Verdict:
        """Raises ``Crowded``."""
        line = self._lines.get(endpoint.endpoint_id) or self._lines.setdefault(endpoint.endpoint_id, Line())
        verdict = line.join(push)
        self._go_on(endpoint, line)
        return await verdict

    def _go_on(self, endpoint: Endpoint, line: Line) -> None:
        if not line.wants_a_call():
            if not line.running:
                self._lines.pop(endpoint.endpoint_id, None)
            return
        line.running += 1
        calls = asyncio.create_task(self._admit_waiting(endpoint, line))
        self._calls.add(calls)
        calls.add_done_callback(self._calls.discard)

    async def _admit_waiting(self, endpoint: Endpoint, line: Line) -> None:
        """Call after call while pushes wait. Whoever came in the same turn of the loop is there by now."""
        batch: list[Waiting] | None = self._take(endpoint, line)
        try:
            async with self._gateway.on_one_connection() as gateway:
                while batch is not None:
                    batch = await self._admit_batch(gateway, endpoint, line, batch)
        except Exception as exc:  # there was no connection to have
            if batch is not None:
                line.end(batch)
                _settle(batch, [exc] * len(batch))
        finally:
            self._go_on(endpoint, line)

    def _take(self, endpoint: Endpoint, line: Line) -> list[Waiting]:
        """Empty when whoever waited has been taken along by another call, or has given up."""
        batch = line.take()
        self._go_on(endpoint, line)  # with those whom this call had no room for
        return batch

    async def _admit_batch(
        self, gateway: Gateway, endpoint: Endpoint, line: Line, batch: list[Waiting]
    ) -> list[Waiting] | None:
        """The next batch for this connection, if any. What was decided is answered in the loop's next turn: by then the
        database has its next call."""
        endings: Sequence[Ending] = ()
        try:
            endings = await self._endings(gateway, endpoint, line, [waiting.push for waiting in batch])
        finally:
            line.end(batch)
        _settle(batch, endings)
        broken = any(isinstance(ending, Exception) for ending in endings)
        if broken or gateway.others_wait or not line.wants_a_call():
            return None
        line.running += 1
        return self._take(endpoint, line)

    async def _endings(
        self, gateway: Gateway, endpoint: Endpoint, line: Line, pushes: Sequence[Push]
    ) -> Sequence[Ending]:
        try:
            return await self._ask(gateway, endpoint, line, pushes) if pushes else ()
        except Exception as exc:
            if len(pushes) == 1 or not _may_be_of_one(exc):
                return [exc] * len(pushes)
        # All was rolled back for the sake of one: the others are not to suffer for it.
        return await self._admit_each(gateway, endpoint, line, pushes)

    async def _admit_each(
        self, gateway: Gateway, endpoint: Endpoint, line: Line, pushes: Sequence[Push]
    ) -> Sequence[Ending]:
        endings: list[Ending] = []
        for push in pushes:
            endings += await self._endings(gateway, endpoint, line, [push])
            if isinstance(endings[-1], Exception) and not _may_be_of_one(endings[-1]):
                break
        return endings + endings[-1:] * (len(pushes) - len(endings))

    async def _ask(self, gateway: Gateway, endpoint: Endpoint, line: Line, pushes: Sequence[Push]) -> list[Verdict]:
        verdicts = await gateway.admit_posts(endpoint, pushes, audit_deduped=self._audit_deduped)
        line.learn(verdicts)
        return verdicts


def _may_be_of_one(exc: Exception) -> bool:
    """Whether one post can be why all were rolled back; anything else each of them would meet again, and wait for."""
    state = (exc.sqlstate or "") if isinstance(exc, asyncpg.PostgresError) else ""
    return state[:2] in FAULTS_OF_A_POST or state in CONFLICTS


def _settle(batch: Sequence[Waiting], endings: Sequence[Ending]) -> None:
    for waiting, ending in zip(batch, endings, strict=True):
        if waiting.verdict.done():
            continue
        if isinstance(ending, Exception):
            waiting.verdict.set_exception(ending)
        else:
            waiting.verdict.set_result(ending)
