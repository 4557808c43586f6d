"""Keep what a platform really answered when a send did not end well; events hold only a snippet."""

from autopost_contracts.outcomes import Failed
from autopost_runtime.payloads import HURRIED, PATIENCE, Payload, Payloads
from msgspec.structs import replace

from autopost_dispatcher.gateway import Claim

BULKY = frozenset({"headers", "body", "size"})


class Answers:
    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads

    async def keep(self, claim: Claim, failure: Failed) -> str | None:
        """The reference for the event; ``None`` when nothing was kept, or the platform had no part in the failure.

        Where no answer came and the platform may have accepted, that is kept. A platform that asks for silence is
        obeyed soon: other replicas learn of it from the commit, which waits for this.
        """
        if not failure.raw and not failure.ambiguous:
            return None
        within = PATIENCE if failure.retry_after_ms is None else HURRIED
        return await self._payloads.keep(claim.workspace_id, _payload(claim, failure), within=within)


def lean(failure: Failed) -> Failed:
    """Without what was kept: thousands may wait for a database that is away."""
    return replace(failure, raw={name: value for name, value in failure.raw.items() if name not in BULKY})


def _payload(claim: Claim, failure: Failed) -> Payload:
    return Payload(
        kind="provider_answer",
        about={
            "delivery_id": claim.delivery_id,
            "channel_id": claim.channel_id,
            "platform": claim.channel.platform,
            "attempt": claim.attempt,
            "code": failure.code,
            "ambiguous": failure.ambiguous,
            "trace_id": claim.trace_id,
        },
        status=failure.raw.get("status"),
        headers=failure.raw.get("headers", {}),
        body=failure.raw.get("body"),
        size=failure.raw.get("size", 0),
    )
