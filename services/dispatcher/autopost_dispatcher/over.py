"""What ends a flight before its last part is acknowledged."""

from autopost_contracts.outcomes import Failed


class Released:
    """Given back unsent: certainly nothing left."""


class Over(Exception):  # noqa: N818  named for what happened
    """Unwinds a flight from wherever it ended; never leaves it. ``None``: the claim is somebody else's by now."""

    def __init__(self, outcome: Failed | Released | None) -> None:
        super().__init__()
        self.outcome = outcome
