"""The spine: schedule → claim → send → commit, with bounded concurrency and a stop that leaves no lease."""

import asyncio
import time
from collections import deque
from datetime import timedelta
from typing import Protocol, cast
from uuid import UUID

from autopost_contracts.ids import DeliveryId, WorkspaceId
from autopost_contracts.outcomes import Failed, Scope
from autopost_runtime.logs import get_logger
from autopost_runtime.postgres import is_retryable

from autopost_dispatcher.answers import Answers, lean
from autopost_dispatcher.claim import Job
from autopost_dispatcher.commit import Committer
from autopost_dispatcher.ended import Ended
from autopost_dispatcher.schedule import Schedule
from autopost_dispatcher.send import Sender


class DueWorkspaces(Protocol):
    async def due_workspaces(self) -> list[tuple[WorkspaceId, timedelta]]: ...


class Dispatch:
    """``concurrency`` bounds what is being sent. A ``bite`` more may be on the ground, so that a claim is under way
    while the last one is sent, and as many again may wait to be committed: a slow database slows the claims down, an
    ordinary one does not keep a call from going out."""

    def __init__(self, sender: Sender, answers: Answers, committer: Committer, *, concurrency: int, bite: int) -> None:
        self._sender = sender
        self._answers = answers
        self._committer = committer
        self._concurrency = concurrency
        self._bite = bite
        self._enough = max(1, concurrency // 10)
        self._grounded: deque[Job] = deque()
        """Taken, and not yet begun: for less than one round of the loop, unless as many as may be are under way."""
        self._flights: dict[Job, asyncio.Task[None]] = {}
        self._failures: dict[DeliveryId, Failed] = {}
        """Of flights that have ended and only keep their answer."""
        self.has_room = asyncio.Event()
        self.has_room.set()

    def room(self) -> int:
        in_hand, waiting = len(self._flights) + len(self._grounded), self._committer.waiting
        return self._concurrency + self._bite - in_hand - max(0, waiting - self._concurrency)

    def make_room(self) -> None:
        """Not for every single one that ends: a claim costs the same for one delivery and for a hundred."""
        if self.room() >= self._enough:
            self.has_room.set()

    def flights(self) -> list[Job]:
        return [*self._flights, *self._grounded]

    def take(self, jobs: list[Job]) -> None:
        """One task sends them in turn until it has to wait for one; then each of the others gets a task of its own."""
        self._grounded.extend(jobs)
        loop = asyncio.get_running_loop()
        loop.create_task(self._fly_in_turn())  # noqa: RUF006  kept with the flight it is on
        loop.call_soon(self._fly_more)
        if self.room() < self._enough:
            self.has_room.clear()

    async def drain(self, within: timedelta) -> None:
        """Lets calls in flight be answered; what is not by then may have been accepted, and says so."""
        self._fly_more(len(self._grounded))
        if self._flights:
            await asyncio.wait(self._flights.values(), timeout=within.total_seconds())
        for job, task in list(self._flights.items()):
            task.cancel()
            unknown = Failed.transient(Scope.DELIVERY, "stopped", "no answer before the stop", ambiguous=True)
            self._committer.put(Ended(job.claim, self._failures.get(job.claim.delivery_id, unknown)))
        await self._committer.flush()

    async def _fly_in_turn(self) -> None:
        me = cast("asyncio.Task[None]", asyncio.current_task())
        while self._grounded and len(self._flights) < self._concurrency:
            job = self._grounded.popleft()
            self._flights[job] = me
            await self._fly(job)

    def _fly_more(self, beyond: int = 0) -> None:
        """``beyond``: as many as that too many, of whom a stop makes short work."""
        start = asyncio.get_running_loop().create_task
        while self._grounded and len(self._flights) < self._concurrency + beyond:
            job = self._grounded.popleft()
            self._flights[job] = start(self._fly(job))

    async def _fly(self, job: Job) -> None:
        started = time.monotonic()
        kept = None
        try:
            try:
                outcome = await self._sender.deliver(job)
            except Exception as exc:
                outcome = _surprise(job, exc)
            seconds = time.monotonic() - started
            if isinstance(outcome, Failed):
                kept, outcome = await self._keep(job, outcome), lean(outcome)
        finally:
            was_full = len(self._flights) >= self._concurrency
            self._flights.pop(job, None)  # one of them: never counted twice
            if was_full:
                self._fly_more()
        if outcome is None:
            get_logger().warning("delivery.lost", delivery_id=str(job.claim.delivery_id), trace_id=job.claim.trace_id)
        else:
            self._committer.put(Ended(job.claim, outcome, kept, seconds))
        if not self.has_room.is_set():
            self.make_room()

    async def _keep(self, job: Job, failure: Failed) -> str | None:
        self._failures[job.claim.delivery_id] = failure
        try:
            return await self._answers.keep(job.claim, failure)
        finally:
            del self._failures[job.claim.delivery_id]


def _surprise(job: Job, exc: Exception) -> Failed:
    get_logger().error("delivery.failed", exc_info=exc, delivery_id=str(job.claim.delivery_id))
    return Failed.transient(Scope.DELIVERY, "internal_error", type(exc).__name__, ambiguous=True)


async def poll(schedule: Schedule, due: DueWorkspaces, interval: timedelta, stopping: asyncio.Event) -> None:
    """The safety net: finds what no wakeup told of. Runs at once, so a start finds what was waiting."""
    while not stopping.is_set():
        try:
            for workspace, delay in await due.due_workspaces():
                schedule.wake_in(workspace, delay)
        except Exception as exc:
            if not is_retryable(exc):
                raise
            get_logger().warning("poll.failed", error=type(exc).__name__)
        try:
            async with asyncio.timeout(interval.total_seconds()):
                await stopping.wait()
        except TimeoutError:
            continue


def workspace_of(subject: str) -> WorkspaceId:
    return WorkspaceId(UUID(subject.rsplit(".", 1)[-1]))
