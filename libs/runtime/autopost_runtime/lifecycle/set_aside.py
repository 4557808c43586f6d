"""Set aside a failing workspace with growing waits, so that the loop keeps serving the others.

A failure is counted, logged and recorded in the database, so that ``why`` and an alert can show it. The work is retried
after the wait; a success clears the record.
"""

from datetime import timedelta
from time import monotonic
from typing import Protocol
from uuid import UUID

from autopost_runtime.lifecycle.backoff import Backoff
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

INSTALLATION = UUID(int=0)
"""For work of no single workspace."""

BASE = timedelta(seconds=1)
CAP = timedelta(minutes=5)

_logged: dict[tuple[str, str], float] = {}
"""The time until which a traceback is not logged again, by work and error."""
_failures = metrics.counter("autopost_set_aside_total", "Failures after which a loop postponed its work, by loop.")


class Notes(Protocol):
    async def set_aside(self, workspace: UUID, work: str, failures: int, wait: timedelta, error: str) -> None:
        """Zero failures clear the record."""


class SetAside:
    """The failing workspaces of one kind of work."""

    def __init__(self, work: str, notes: Notes | None = None, base: timedelta = BASE, cap: timedelta = CAP) -> None:
        self._work = work
        self._notes = notes
        self._base = base
        self._cap = cap
        self._failing: dict[UUID, _Failing] = {}

    def left(self, workspace: UUID) -> timedelta:
        """The remaining wait; zero when the workspace is not set aside."""
        failing = self._failing.get(workspace)
        return timedelta(seconds=max(0.0, failing.until - monotonic())) if failing else timedelta()

    def is_failing(self, workspace: UUID) -> bool:
        """Whether its last try failed, also when the wait is over."""
        return workspace in self._failing

    async def failed(self, workspace: UUID, exc: BaseException) -> timedelta:
        """Record a failure and return the wait, which grows with each consecutive failure."""
        failing = self._failing.get(workspace)
        if failing is None:
            failing = self._failing[workspace] = _Failing(Backoff(self._base, self._cap))
        wait = failing.record()
        _failures.add(1, {"work": self._work})
        get_logger().error(
            "work.set_aside",
            exc_info=exc if _should_log_traceback(self._work, exc) else None,
            error=error_name(exc),
            work=self._work,
            workspace_id=str(workspace),
            failures=failing.failures,
            seconds=round(wait.total_seconds(), 1),
        )
        await self._note(workspace, failing.failures, wait, error_name(exc))
        return wait

    async def worked(self, workspace: UUID) -> None:
        """Record a success; cheap when nothing had failed."""
        if self._failing.pop(workspace, None):
            get_logger().info("work.resumed", work=self._work, workspace_id=str(workspace))
            await self._note(workspace, 0, timedelta(), "")

    async def _note(self, workspace: UUID, failures: int, wait: timedelta, error: str) -> None:
        """Best effort: the loop continues when this fails."""
        if self._notes is None:
            return
        try:
            await self._notes.set_aside(workspace, self._work, failures, wait, error)
        except Exception as exc:
            get_logger().warning("set_aside.untold", work=self._work, error=type(exc).__name__)


class _Failing:
    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self.failures = 0
        self.until = 0.0

    def record(self) -> timedelta:
        self.failures += 1
        wait = self._backoff.next()
        self.until = monotonic() + wait.total_seconds()
        return wait


def _should_log_traceback(work: str, exc: BaseException) -> bool:
    """Whether to log the traceback: once a minute for each error, because writing hundreds of them takes seconds."""
    kind, now = (work, error_name(exc)), monotonic()
    if now < _logged.get(kind, 0.0):
        return False
    _logged[kind] = now + 60
    return True


def error_name(exc: BaseException) -> str:
    """The class and the code of an error, never its message, which may quote a row."""
    return " ".join(filter(None, (type(exc).__name__, getattr(exc, "sqlstate", None))))
