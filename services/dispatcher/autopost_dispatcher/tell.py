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
SENT = "sent"

ended_total = metrics.counter("autopost_deliveries_total", "Delivery attempts, by platform and how they ended.")
stale_total = metrics.counter("autopost_stale_commits_total", "Outcomes of claims that had passed on.")


def tell(batch: list[Ended], stale: Collection[DeliveryId]) -> None:
    is_busy, sent = len(batch) > FEW, 0
    counts: Counter[tuple[str, str]] = Counter()
    for one in batch:
        verdict = _verdict(one.outcome)
        counts[one.claim.channel.platform, verdict] += 1
        if verdict == SENT:
            sent += 1
        if not (is_busy and verdict == SENT):
            _tell(one)
    for (platform, verdict), count in counts.items():
        ended_total.add(count, {"platform": platform, "verdict": verdict})
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
            return SENT
        case Failed():
            return str(outcome.category).lower()
        case Released():
            return "released"
