"""How a pull ends: a value when it finished, an exception otherwise; the scheduler records both."""

from datetime import timedelta

from msgspec import Struct

from autopost_ingest.pull.gateway import PullOutcome


class PullFinished(Struct, frozen=True, kw_only=True):
    outcome: PullOutcome = "ok"
    more: bool = False
    """More items are available now."""


class PullFailed(Exception):  # noqa: N818  named for what happened
    """The pull failed and is retried; ``wait`` is the Retry-After of the source."""

    def __init__(self, code: str, message: str, wait: timedelta | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.wait = wait


class PullRejected(PullFailed):
    """The response of the source cannot be imported."""


class Interrupted(Exception):  # noqa: N818  named for what happened
    """The lease is lost or the source was disabled; imported items stay."""
