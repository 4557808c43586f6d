"""A finished delivery: its claim and its outcome."""

from autopost_contracts.outcomes import Outcome
from msgspec import Struct

from autopost_dispatcher.claim.lease import Lease
from autopost_dispatcher.gateway import Claim
from autopost_dispatcher.send.end_delivery import Released


class FinishedDelivery(Struct, frozen=True):
    claim: Claim
    outcome: Outcome | Released
    payload_ref: str | None = None
    seconds: float = 0.0
    lease: Lease | None = None
    """The lease of the claim, renewed until the outcome is committed."""
