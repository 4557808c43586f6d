"""Set aside what fails, each by itself and with growing waits, so that the others are served meanwhile.

A loop that serves many never ends because of one of them. What fails is counted, logged and left alone for a while, and
the database is told, so that ``why`` and an alert can name it. Success ends all of that.
"""

from datetime import timedelta
from time import monotonic
from typing import Protocol
from uuid import UUID

from autopost_runtime.lifecycle.backoff import Backoff
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

INSTALLATION = UUID(int=0)
"""For work that is nobody's in particular."""

BASE = timedelta(seconds=1)
CAP = timedelta(minutes=5)

_logged: dict[tuple[str, str], float] = {}
"""By work and error: until when its traceback is not logged again."""
_failures = metrics.counter("autopost_set_aside_total", "Failures after which a loop postponed its work, by loop.")


class Notes(Protocol):
    async def set_aside(self, workspace: UUID, work: str, failures: int, wait: timedelta, error: str) -> None:
        """Zero failures: nothing is set aside any more."""


class SetAside:
    """One kind of work, by workspace."""

    def __init__(self, work: str, notes: Notes | None = None, base: timedelta = BASE, cap: timedelta = CAP) -> None:
        self._work = work
        self._notes = notes
        self._base = base
        self._cap = cap
        self._failing: dict[UUID, _Failing] = {}

    def left(self, workspace: UUID) -> timedelta:
        """For how long it is to be left alone; nothing when it is not set aside."""
        failing = self._failing.get(workspace)
        return timedelta(seconds=max(0.0, failing.until - monotonic())) if failing else timedelta()

    async def failed(self, workspace: UUID, exc: BaseException) -> timedelta:
        """How long to wait now: longer after each failure in a row."""
        failing = self._failing.get(workspace)
        if failing is None:
            failing = self._failing[workspace] = _Failing(Backoff(self._base, self._cap))
        wait = failing.again()
        _failures.add(1, {"work": self._work})
        get_logger().error(
            "work.set_aside",
            exc_info=exc if _is_news(self._work, exc) else None,
            error=error_name(exc),
            work=self._work,
            workspace_id=str(workspace),
            failures=failing.failures,
            seconds=round(wait.total_seconds(), 1),
        )
        await self._note(workspace, failing.failures, wait, error_name(exc))
        return wait

    async def worked(self, workspace: UUID) -> None:
        """Costs nothing where nothing had failed."""
        if self._failing.pop(workspace, None):
            get_logger().info("work.resumed", work=self._work, workspace_id=str(workspace))
            await self._note(workspace, 0, timedelta(), "")

    async def _note(self, workspace: UUID, failures: int, wait: timedelta, error: str) -> None:
        """As well as it can be done: the loop goes on without."""
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

    def again(self) -> timedelta:
        self.failures += 1
        wait = self._backoff.next()
        self.until = monotonic() + wait.total_seconds()
        return wait


def _is_news(work: str, exc: BaseException) -> bool:
    """Whether to log the whole traceback: of each error once a minute, for writing hundreds of them takes seconds."""
    kind, now = (work, error_name(exc)), monotonic()
    if now < _logged.get(kind, 0.0):
        return False
    _logged[kind] = now + 60
    return True


def error_name(exc: BaseException) -> str:
    """The class of an error and its code, never its words: those may quote a row."""
    return " ".join(filter(None, (type(exc).__name__, getattr(exc, "sqlstate", None))))
