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
    for (platform, verdict), count in Counter((one.claim.platform, _verdict(one.outcome)) for one in batch).items():
        ended_total.add(count, {"platform": platform, "verdict": verdict})
    is_busy = len(batch) > FEW
    for one in batch:
        if not (is_busy and isinstance(one.outcome, Sent)):
            _tell(one)
    sent = sum(isinstance(one.outcome, Sent) for one in batch)
    if is_busy and sent:
        get_logger().info("deliveries.sent", workspace_id=str(batch[0].claim.workspace_id), count=sent)
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
        platform=claim.platform,
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
