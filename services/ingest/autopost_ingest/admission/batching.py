"""Admit pushes of one endpoint in batches: those that arrive during a call share the next call.

A push to an idle endpoint is sent at once. Under load one transaction admits everything that arrived during the
previous call, which lowers the cost per post. The second call waits until it has as many pushes as the first, or until
the first has returned, so that both have the same load.

Posts to few channels cost this process as much as the database, and both should be busy at the same time. So a batch
takes at most half of the known pushes; the other half is read and answered meanwhile. A second call runs in parallel
only when pushes arrive faster than that.
"""

import asyncio
from collections import deque
from collections.abc import Sequence

import asyncpg
from autopost_contracts.ids import EndpointId
from msgspec import Struct

from autopost_ingest.errors import AtCapacity
from autopost_ingest.gateway import Endpoint, Gateway, Push, Verdict

MAX_CALLS = 2
"""Concurrent calls per endpoint: one runs in the database while the results of the other are sent."""

FEW_CHANNELS = 8
"""From this number on the database does most of the work, so two calls run as soon as both have pushes."""

CALL_COST = 8
"""Cost of a call, in posts to one channel. Smaller batches are not split."""

MAX_POSTS = 100
MAX_DELIVERIES = 2_000
MAX_BYTES = 1024 * 1024
MAX_WAITING = 300
"""Per queue, about three calls. Further pushes are refused at once instead of timing out."""

POST_ERROR_CLASSES = frozenset({"21", "22", "23", "54", "AP"})
"""SQLSTATE classes that one post can cause: rows, values, keys, size and our own contracts; never timeouts."""

CONFLICTS = frozenset({"40001", "40P01"})
"""Each post is retried once and alone: it then holds fewer locks, and existing content is looked up first."""


Result = Verdict | Exception


class QueuedPush(Struct, eq=False):
    push: Push
    verdict: asyncio.Future[Verdict]


class EndpointQueue:
    """The pushes of one endpoint that wait for a call."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()  # cached, because each look-up is a system call
        self.running = 0
        self.in_flight = 0
        """Pushes in running calls."""
        self.last_batch = 0
        """Size of the last finished batch: its senders will probably post again."""
        self.channels = MAX_DELIVERIES
        """Channels per recent post; until it is known, batches have one post."""
        self._waiting: deque[QueuedPush] = deque()

    def add(self, push: Push) -> asyncio.Future[Verdict]:
        """Raises ``AtCapacity``."""
        if len(self._waiting) >= MAX_WAITING:
            raise AtCapacity
        verdict: asyncio.Future[Verdict] = self._loop.create_future()
        self._waiting.append(QueuedPush(push, verdict))
        return verdict

    def needs_call(self) -> bool:
        """The first call starts at once; the second one when enough pushes wait to be worth its cost."""
        if not self.running:
            return bool(self._waiting)
        enough = self.in_flight if self.channels >= FEW_CHANNELS else max(CALL_COST, self.in_flight * 3 // 2)
        return self.running < MAX_CALLS and len(self._waiting) >= enough > 0

    def record_channels(self, verdicts: Sequence[Verdict]) -> None:
        """Only accepted posts count: a duplicate says nothing about the next post."""
        routed = [verdict.routed for verdict in verdicts if verdict.verdict == "accepted"]
        if routed:
            self.channels = max(1, *routed)

    def take(self) -> list[QueuedPush]:
        """The next batch, counted as in flight."""
        batch = self.next_batch()
        self.in_flight += len(batch)
        return batch

    def end(self, batch: list[QueuedPush]) -> None:
        self.running -= 1
        self.in_flight -= len(batch)
        self.last_batch = len(batch)

    def next_batch(self) -> list[QueuedPush]:
        """The pushes for one call, without those whose request was cancelled."""
        batch: list[QueuedPush] = []
        size = 0
        most = max(1, min(MAX_POSTS, MAX_DELIVERIES // self.channels))
        if self.channels < FEW_CHANNELS:
            half = -(-(len(self._waiting) + max(self.in_flight, self.last_batch)) // 2)
            most = min(most, max(CALL_COST, half))
        while self._waiting and len(batch) < most:
            size += len(self._waiting[0].push.post)
            if batch and size > MAX_BYTES:
                break
            waiting = self._waiting.popleft()
            if not waiting.verdict.done():
                batch.append(waiting)
        return batch


class AdmissionBatcher:
    def __init__(self, gateway: Gateway, *, audit_deduped: bool) -> None:
        self._gateway = gateway
        self._audit_deduped = audit_deduped
        self._queues: dict[EndpointId, EndpointQueue] = {}
        self._calls: set[asyncio.Task[None]] = set()

    async def admit(self, endpoint: Endpoint, push: Push) -> Verdict:
        """Raises ``AtCapacity``."""
        queue = self._queues.get(endpoint.endpoint_id) or self._queues.setdefault(endpoint.endpoint_id, EndpointQueue())
        verdict = queue.add(push)
        self._start_call(endpoint, queue)
        return await verdict

    def _start_call(self, endpoint: Endpoint, queue: EndpointQueue) -> None:
        if not queue.needs_call():
            if not queue.running:
                self._queues.pop(endpoint.endpoint_id, None)
            return
        queue.running += 1
        calls = asyncio.create_task(self._admit_waiting(endpoint, queue))
        self._calls.add(calls)
        calls.add_done_callback(self._calls.discard)

    async def _admit_waiting(self, endpoint: Endpoint, queue: EndpointQueue) -> None:
        """Consecutive calls while pushes wait. Pushes of the same loop iteration are already in the queue."""
        batch: list[QueuedPush] | None = self._take(endpoint, queue)
        try:
            async with self._gateway.on_one_connection() as gateway:
                while batch is not None:
                    batch = await self._admit_batch(gateway, endpoint, queue, batch)
        except Exception as exc:  # no connection available
            if batch is not None:
                queue.end(batch)
                _set_results(batch, [exc] * len(batch))
        finally:
            self._start_call(endpoint, queue)

    def _take(self, endpoint: Endpoint, queue: EndpointQueue) -> list[QueuedPush]:
        """Empty when another call took the pushes or their requests were cancelled."""
        batch = queue.take()
        self._start_call(endpoint, queue)  # for the pushes that did not fit into this batch
        return batch

    async def _admit_batch(
        self, gateway: Gateway, endpoint: Endpoint, queue: EndpointQueue, batch: list[QueuedPush]
    ) -> list[QueuedPush] | None:
        """Returns the next batch for this connection, if any. Results are sent in the next loop iteration, when the
        database already has its next call."""
        results: Sequence[Result] = ()
        try:
            results = await self._results(gateway, endpoint, queue, [waiting.push for waiting in batch])
        finally:
            queue.end(batch)
        _set_results(batch, results)
        broken = any(isinstance(result, Exception) for result in results)
        if broken or gateway.others_wait or not queue.needs_call():
            return None
        queue.running += 1
        return self._take(endpoint, queue)

    async def _results(
        self, gateway: Gateway, endpoint: Endpoint, queue: EndpointQueue, pushes: Sequence[Push], *, again: bool = False
    ) -> Sequence[Result]:
        try:
            return await self._call(gateway, endpoint, queue, pushes, again=again) if pushes else ()
        except Exception as exc:
            is_last = again or (len(pushes) == 1 and _sqlstate(exc) not in CONFLICTS)
            if is_last or not _may_be_caused_by_one_post(exc):
                return [exc] * len(pushes)
        # One post rolled back the whole batch; the others are admitted one by one.
        return await self._admit_each(gateway, endpoint, queue, pushes)

    async def _admit_each(
        self, gateway: Gateway, endpoint: Endpoint, queue: EndpointQueue, pushes: Sequence[Push]
    ) -> Sequence[Result]:
        results: list[Result] = []
        for push in pushes:
            results += await self._results(gateway, endpoint, queue, [push], again=True)
            if isinstance(results[-1], Exception) and not _may_be_caused_by_one_post(results[-1]):
                break
        return results + results[-1:] * (len(pushes) - len(results))

    async def _call(
        self, gateway: Gateway, endpoint: Endpoint, queue: EndpointQueue, pushes: Sequence[Push], *, again: bool
    ) -> list[Verdict]:
        verdicts = await gateway.admit_posts(endpoint, pushes, audit_deduped=self._audit_deduped, look_up=again)
        queue.record_channels(verdicts)
        return verdicts


def _may_be_caused_by_one_post(exc: Exception) -> bool:
    """Whether one post can have rolled back the batch. Other errors would repeat for each post, after its timeout."""
    state = _sqlstate(exc)
    return state[:2] in POST_ERROR_CLASSES or state in CONFLICTS


def _sqlstate(exc: Exception) -> str:
    return (exc.sqlstate or "") if isinstance(exc, asyncpg.PostgresError) else ""


def _set_results(batch: Sequence[QueuedPush], results: Sequence[Result]) -> None:
    for waiting, result in zip(batch, results, strict=True):
        if waiting.verdict.done():
            continue
        if isinstance(result, Exception):
            waiting.verdict.set_exception(result)
        else:
            waiting.verdict.set_result(result)
