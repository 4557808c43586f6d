"""Store the raw answer of a platform after a failed send; events have only a snippet."""

from autopost_contracts.outcomes import Failed
from autopost_runtime.storage.payloads import HURRIED, PATIENCE, Payload, Payloads
from msgspec.structs import replace

from autopost_dispatcher.gateway import Claim

BULKY = frozenset({"headers", "body", "size"})


class RawAnswers:
    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads

    async def keep(self, claim: Claim, failure: Failed) -> str | None:
        """The reference for the event; ``None`` when nothing was stored or the failure is not from the platform.

        A missing answer of an ambiguous call is stored too. With retry_after the time limit is shorter: other replicas
        learn the cooldown from the commit, which waits for this.
        """
        if not failure.raw and not failure.ambiguous:
            return None
        within = PATIENCE if failure.retry_after_ms is None else HURRIED
        return await self._payloads.keep(claim.workspace_id, _payload(claim, failure), within=within)


def without_raw_answer(failure: Failed) -> Failed:
    """Without the stored answer, to save memory: thousands may wait for an unavailable database."""
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
