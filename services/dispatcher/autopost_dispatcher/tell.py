"""Tell how a batch ended, in metrics and in the log.

What did not go well has a line of its own, always. What was sent has one while there are few; a busy dispatcher sums
up, since the audit log has every single one anyway.
"""

from collections import Counter
from collections.abc import Collection

from autopost_contracts.ids import DeliveryId
from autopost_contracts.outcomes import Failed, Outcome, Sent
from autopost_runtime import metrics
from autopost_runtime.logs import get_logger

from autopost_dispatcher.ended import Ended
from autopost_dispatcher.over import Released

FEW = 20

ended_total = metrics.counter("autopost_deliveries_total", "Delivery attempts, by platform and how they ended.")
stale_total = metrics.counter("autopost_stale_commits_total", "Outcomes of claims that had passed on.")


def tell(batch: list[Ended], stale: Collection[DeliveryId]) -> None:
    told = batch if len(batch) <= FEW else [one for one in batch if not isinstance(one.outcome, Sent)]
    for one in told:
        _tell(one)
    counts = Counter([(one.claim.channel.platform, _verdict(one.outcome)) for one in batch])
    for (platform, verdict), count in counts.items():
        ended_total.add(count, {"platform": platform, "verdict": verdict})
    if summed_up := len(batch) - len(told):
        get_logger().info("deliveries.sent", workspace_id=str(batch[0].claim.workspace_id), count=summed_up)
    if stale:
        stale_total.add(len(stale))
        get_logger().warning("commit.stale", deliveries=[str(one) for one in stale])


def _tell(ended: Ended) -> None:
    claim, outcome = ended.claim, ended.outcome
    get_logger().info(
        "delivery.attempted",
        workspace_id=str(claim.workspace_id),
        delivery_id=str(claim.delivery_id),
        channel_id=str(claim.channel_id),
        platform=claim.channel.platform,
        attempt=claim.attempt,
        verdict=_verdict(outcome),
        code=outcome.code if isinstance(outcome, Failed) else None,
        trace_id=claim.trace_id,
        seconds=round(ended.seconds, 4),
    )


def _verdict(outcome: Outcome | Released) -> str:
    match outcome:
        case Sent():
            return "sent"
        case Failed():
            return str(outcome.category).lower()
        case Released():
            return "released"
