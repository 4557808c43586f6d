"""Run jobs periodically; a failed run does not stop the service."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from autopost_runtime.lifecycle.cancelling import end
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.lifecycle.set_aside import CAP, INSTALLATION, Notes, SetAside
from autopost_runtime.postgres.pool import is_away
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

from autopost_monitor.leader.leader import Leadership

LEASE_CHECK = timedelta(seconds=3)
"""How often a replica tries to become the leader, even of a rare job: the delay until a dead leader is noticed."""

FINISH_WITHIN = timedelta(seconds=1)
SHORTEST_BACKOFF = timedelta(seconds=1)

rounds_failed = metrics.counter("autopost_rounds_failed_total", "Failed runs of periodic jobs, by job.")

Job = Callable[[], Awaitable[object]]


class Scheduler:
    """``on_leader``: on one of all replicas. ``on_every_replica``: on each, for metrics that each process exports."""

    def __init__(self, service: Service, leadership: Leadership, notes: Notes | None = None) -> None:
        self._service = service
        self._leadership = leadership
        self._notes = notes
        self._tasks: list[asyncio.Task[Any]] = []

    def on_leader(self, name: str, interval: timedelta, job: Job) -> None:
        async def turn() -> None:
            await self._leadership.run_if_leader(name, interval, job)

        self._spawn(name, min(interval, LEASE_CHECK), turn)

    def on_every_replica(self, name: str, interval: timedelta, job: Job) -> None:
        self._spawn(name, interval, job)

    async def finish(self) -> None:
        """Wait for running jobs during a stop, before the database is closed, so that they return their leases."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=FINISH_WITHIN.total_seconds())
        await end(self._tasks)

    def _spawn(self, name: str, interval: timedelta, job: Job) -> None:
        self._tasks.append(self._service.spawn(run_periodically(interval, name, job, self._service, self._notes), name))


async def run_periodically(
    interval: timedelta, name: str, job: Job, service: Service, notes: Notes | None = None
) -> None:
    """Run at once, then periodically. A failing job backs off and raises an alert; a database outage does not count."""
    aside = SetAside(name, notes, base=max(interval, SHORTEST_BACKOFF), cap=max(interval, CAP))
    while not service.stopping.is_set():
        wait = interval
        try:
            await job()
            await aside.worked(INSTALLATION)
        except Exception as exc:
            rounds_failed.add(1, {"round": name})
            if is_away(exc):
                get_logger().warning("job.failed", job=name, error=type(exc).__name__)
            else:
                wait = await aside.failed(INSTALLATION, exc)
        await service.sleep(wait)
