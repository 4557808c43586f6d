"""Report the outcomes of a batch in metrics and in the log.

Each failure gets a log line. Sent deliveries get one each in a small batch, and one line with their number in a large
batch: the audit log has every one of them anyway.
"""

from collections import Counter
from collections.abc import Collection

from autopost_contracts.ids import DeliveryId
from autopost_contracts.outcomes import Failed, Outcome, Sent
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

from autopost_dispatcher.commit.finished import FinishedDelivery
from autopost_dispatcher.send.end_delivery import Released

LOGGED_ONE_BY_ONE = 20

ended_total = metrics.counter("autopost_deliveries_total", "Delivery attempts, by platform and verdict.")
stale_total = metrics.counter(
    "autopost_stale_commits_total", "Outcomes refused because their claim was no longer valid."
)


def report_batch(batch: list[FinishedDelivery], stale: Collection[DeliveryId]) -> None:
    logged = batch if len(batch) <= LOGGED_ONE_BY_ONE else [one for one in batch if not isinstance(one.outcome, Sent)]
    for one in logged:
        _report_one(one)
    counts = Counter([(one.claim.channel.platform, _verdict(one.outcome)) for one in batch])
    for (platform, verdict), count in counts.items():
        ended_total.add(count, {"platform": platform, "verdict": verdict})
    if summed_up := len(batch) - len(logged):
        get_logger().info("deliveries.sent", workspace_id=str(batch[0].claim.workspace_id), count=summed_up)
    if stale:
        stale_total.add(len(stale))
        get_logger().warning("commit.stale", deliveries=[str(one) for one in stale])


def _report_one(ended: FinishedDelivery) -> None:
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
