"""A send that ended: how, and of which claim."""

from autopost_contracts.outcomes import Outcome
from msgspec import Struct

from autopost_dispatcher.gateway import Claim
from autopost_dispatcher.over import Released


class Ended(Struct, frozen=True):
    claim: Claim
    outcome: Outcome | Released
    payload_ref: str | None = None
    seconds: float = 0.0
