"""How a pull ends. A good ending is a value, the others are raised by whoever meets them and told by ``schedule``."""

from datetime import timedelta

from msgspec import Struct

from autopost_ingest.pull.gateway import Outcome


class Ended(Struct, frozen=True, kw_only=True):
    outcome: Outcome = "ok"
    more: bool = False
    """There is more to read at once."""


class PullFailed(Exception):  # noqa: N818  named for what happened
    """Not this time; ``wait`` is what the source asked for."""

    def __init__(self, code: str, message: str, wait: timedelta | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.wait = wait


class PullRejected(PullFailed):
    """The source answered, with something that cannot be taken in."""


class Interrupted(Exception):  # noqa: N818  named for what happened
    """The source is no longer ours to pull, or nobody's; what was taken in stays."""
