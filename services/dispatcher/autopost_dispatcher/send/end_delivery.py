"""How a delivery ends before its last part is acknowledged."""

from autopost_contracts.outcomes import Failed


class Released:
    """Returned to the queue; certainly nothing was sent."""


class EndDelivery(Exception):  # noqa: N818  named for what happened
    """Ends ``Delivery.run`` from any depth and is caught there. ``None``: the claim is no longer valid."""

    def __init__(self, outcome: Failed | Released | None) -> None:
        super().__init__()
        self.outcome = outcome
