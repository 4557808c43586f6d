"""Run claimed deliveries with bounded concurrency, and stop without leaving a lease behind."""

import asyncio
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from datetime import timedelta
from math import ceil
from typing import Protocol, cast
from uuid import UUID

from autopost_contracts.ids import ClaimToken, DeliveryId, WorkspaceId
from autopost_contracts.outcomes import Failed, Scope
from autopost_runtime.lifecycle.set_aside import error_name
from autopost_runtime.postgres.pool import is_retryable
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

from autopost_dispatcher.claim.claim import SendJob
from autopost_dispatcher.claim.schedule import ClaimSchedule
from autopost_dispatcher.commit.commit import Committer
from autopost_dispatcher.commit.finished import FinishedDelivery
from autopost_dispatcher.send.calls import Group
from autopost_dispatcher.send.end_delivery import Released
from autopost_dispatcher.send.raw_answers import RawAnswers, without_raw_answer
from autopost_dispatcher.send.send import DeliverySender

PLATFORM_SHARE = 0.7
"""The largest part of the concurrency for one platform: one that hangs leaves the rest to the others."""

polls_failed = metrics.counter("autopost_polls_failed_total", "Failed polls for due workspaces.")


class DueWorkspaces(Protocol):
    async def due_workspaces(self) -> list[tuple[WorkspaceId, timedelta]]: ...


class Dispatch:
    """Runs the claimed deliveries: at most ``concurrency`` at once.

    At most ``PLATFORM_SHARE`` of them are of one platform. Deliveries beyond it wait, and their groups are stalled
    (``watch_stalls``). Up to ``claim_limit`` more may be claimed and pending, so that the next claim runs while the
    last one is sent. Up to ``concurrency`` may wait for their commit before claims slow down: only a slow database
    slows them.
    """

    def __init__(
        self, sender: DeliverySender, answers: RawAnswers, committer: Committer, *, concurrency: int, claim_limit: int
    ) -> None:
        self._sender = sender
        self._answers = answers
        self._committer = committer
        self._concurrency = concurrency
        self._share = ceil(concurrency * PLATFORM_SHARE)
        self._claim_limit = claim_limit
        self._min_room = max(1, concurrency // 10)
        self._pending: deque[SendJob] = deque()
        """Claimed and not started: for less than one iteration of the loop, unless the concurrency is used up."""
        self._waiting_jobs: dict[str, deque[SendJob]] = defaultdict(deque)
        """By platform, those that wait for a place in its share."""
        self._running: dict[SendJob, asyncio.Task[None]] = {}
        self._running_on: Counter[str] = Counter()
        self._running_in: Counter[WorkspaceId] = Counter()
        self._failures: dict[DeliveryId, Failed] = {}
        """Failures of deliveries that only wait for their raw answer to be stored."""
        self.has_room = asyncio.Event()
        self.has_room.set()

    @property
    def in_flight(self) -> int:
        """Claimed and not answered yet. Only lengths are read, since metrics are collected in another thread."""
        return len(self._running) + len(self._pending) + sum(map(len, list(self._waiting_jobs.values())))

    def room(self) -> int:
        """What waits for a platform counts up to the share of that platform, so that the others always have room."""
        waiting = self._committer.waiting
        queued = sum(min(len(jobs), int(self._claim_limit * PLATFORM_SHARE)) for jobs in self._waiting_jobs.values())
        taken = len(self._running) + len(self._pending) + queued
        return self._concurrency + self._claim_limit - taken - max(0, waiting - self._concurrency)

    def groups_waiting(self, seconds: float) -> Iterator[Group]:
        """The rate groups of which deliveries have waited for so long because their platform has its share."""
        since = time.monotonic() - seconds
        for jobs in self._waiting_jobs.values():
            yield from (job.claim.group for job in jobs if job.asked_at < since)

    def has_calls(self, workspace: WorkspaceId) -> bool:
        return workspace in self._running_in

    def make_room(self) -> None:
        """Resume claiming once several have ended: a claim costs the same for one delivery and for a hundred."""
        if self.room() >= self._min_room:
            self.has_room.set()

    def jobs(self) -> list[SendJob]:
        return [*self._running, *self._pending, *(job for jobs in self._waiting_jobs.values() for job in jobs)]

    def known(self, workspace: WorkspaceId) -> list[ClaimToken]:
        """The tokens of all claims that this process has not finished."""
        jobs = [job.claim for job in self.jobs()]
        return [one.claim_token for one in [*jobs, *self._committer.claims()] if one.workspace_id == workspace]

    def take(self, jobs: list[SendJob]) -> None:
        """One task sends them one after the other until it has to wait; then each of the others gets its own task."""
        self._pending.extend(jobs)
        loop = asyncio.get_running_loop()
        loop.create_task(self._deliver_in_turn())  # noqa: RUF006  kept in _running with its delivery
        loop.call_soon(self._start_more)
        if self.room() < self._min_room:
            self.has_room.clear()

    async def drain(self, within: timedelta) -> None:
        """Wait for calls in flight. An unanswered one ends as ambiguous; without a call the delivery is released."""
        for jobs in self._waiting_jobs.values():
            self._pending.extend(jobs)
            jobs.clear()
        self._share = self._concurrency + len(self._pending)
        self._start_more(len(self._pending))
        if self._running:
            await asyncio.wait(self._running.values(), timeout=within.total_seconds())
        for job, task in list(self._running.items()):
            task.cancel()
            outcome = self._failures.get(job.claim.delivery_id) or _stopped(job)
            self._committer.put(FinishedDelivery(job.claim, outcome, lease=job.lease))
        self._committer.try_again()
        await self._committer.flush()

    async def _deliver_in_turn(self) -> None:
        me = cast("asyncio.Task[None]", asyncio.current_task())
        while self._pending and len(self._running) < self._concurrency:
            job = self._pending.popleft()
            if self._has_place(job):
                self._running[job] = me
                await self._deliver(job)

    def _start_more(self, beyond: int = 0) -> None:
        """Start up to ``beyond`` more than the concurrency allows; during a stop they end at once."""
        start = asyncio.get_running_loop().create_task
        while self._pending and len(self._running) < self._concurrency + beyond:
            job = self._pending.popleft()
            if self._has_place(job):
                self._running[job] = start(self._deliver(job))

    def _has_place(self, job: SendJob) -> bool:
        """Takes it, or lets the delivery wait for one. A trial waits for nobody: all others wait for its answer."""
        platform = job.claim.channel.platform
        if self._running_on[platform] >= self._share and not job.is_trial:
            self._waiting_jobs[platform].append(job)
            return False
        self._running_on[platform] += 1
        self._running_in[job.claim.workspace_id] += 1
        return True

    def _leave_place(self, job: SendJob) -> None:
        platform = job.claim.channel.platform
        self._running_on[platform] -= 1
        workspace = job.claim.workspace_id
        self._running_in[workspace] -= 1
        if not self._running_in[workspace]:
            del self._running_in[workspace]
        if waiting := self._waiting_jobs.get(platform):
            self._pending.appendleft(waiting.popleft())
            self._start_more()

    async def _deliver(self, job: SendJob) -> None:
        started = time.monotonic()
        kept = None
        try:
            try:
                outcome = await self._sender.deliver(job)
            except Exception as exc:
                outcome = _unexpected(job, exc)
            seconds = time.monotonic() - started
            if isinstance(outcome, Failed):
                kept, outcome = await self._keep(job, outcome), without_raw_answer(outcome)
        finally:
            was_full = len(self._running) >= self._concurrency
            self._running.pop(job, None)  # before the commit, so that it is not counted twice
            self._leave_place(job)
            if was_full:
                self._start_more()
        if outcome is None:
            get_logger().warning("delivery.lost", delivery_id=str(job.claim.delivery_id), trace_id=job.claim.trace_id)
        else:
            self._committer.put(FinishedDelivery(job.claim, outcome, kept, seconds, job.lease))
        if not self.has_room.is_set():
            self.make_room()

    async def _keep(self, job: SendJob, failure: Failed) -> str | None:
        self._failures[job.claim.delivery_id] = failure
        try:
            return await self._answers.keep(job.claim, failure)
        except Exception as exc:  # the outcome is committed with or without its raw answer
            get_logger().warning("answer.not_kept", error=error_name(exc), delivery_id=str(job.claim.delivery_id))
            return None
        finally:
            del self._failures[job.claim.delivery_id]


def _stopped(job: SendJob) -> Failed | Released:
    if not job.in_doubt:
        return Released()
    return Failed.transient(
        Scope.DELIVERY, "stopped", "the dispatcher stopped before the platform answered", ambiguous=True
    )


def _unexpected(job: SendJob, exc: Exception) -> Failed | Released:
    """The outcome after an unexpected exception.

    It is ambiguous only if a call was made. A database error before any call releases the delivery. Any other error
    counts as an attempt, so the delivery backs off and ends.
    """
    if not job.in_doubt and is_retryable(exc):
        get_logger().warning("delivery.given_back", error=type(exc).__name__, delivery_id=str(job.claim.delivery_id))
        return Released()
    get_logger().error("delivery.failed", exc_info=exc, delivery_id=str(job.claim.delivery_id))
    in_doubt = job.in_doubt or job.claim.verify
    return Failed.transient(Scope.DELIVERY, "internal_error", type(exc).__name__, ambiguous=in_doubt)


async def poll(schedule: ClaimSchedule, due: DueWorkspaces, interval: timedelta, stopping: asyncio.Event) -> None:
    """Find due workspaces that no wakeup announced. The first poll runs at once, for work that waited for a start."""
    while not stopping.is_set():
        schedule.poll_begins()
        try:
            for workspace, delay in await due.due_workspaces():
                schedule.polled(workspace, delay)
        except Exception as exc:
            polls_failed.add(1)
            get_logger().warning("poll.failed", exc_info=None if is_retryable(exc) else exc, error=error_name(exc))
        try:
            async with asyncio.timeout(interval.total_seconds()):
                await stopping.wait()
        except TimeoutError:
            continue


def workspace_of(subject: str) -> WorkspaceId:
    return WorkspaceId(UUID(subject.rsplit(".", 1)[-1]))
