"""Metrics of publications, counted when their outcomes are committed. Deliveries of posts cost one look each."""

from collections.abc import Collection
from typing import Protocol

from autopost_contracts.ids import DeliveryId
from autopost_contracts.outcomes import Failed, Sent
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

from autopost_dispatcher.commit.finished import FinishedDelivery
from autopost_dispatcher.gateway import PublicationFacts

UNKNOWN = "unknown"
CONTENT = "content"
"""The error type of text, markup, buttons and files that the platform does not take."""

published_total = metrics.counter(
    "delivery_post_scheduler_published_total", "Publications that were published, by kind of media."
)
errors_total = metrics.counter(
    "delivery_post_scheduler_errors_total", "Attempts to publish that failed, by type of error."
)
approved_but_refused_total = metrics.counter(
    "autopost_publications_approved_but_refused_total",
    "Publications whose content was refused although it was approved: a check of ours is missing.",
)
send_seconds = metrics.histogram(
    "delivery_post_scheduler_send_duration_seconds", "How long attempts to publish took, by kind of media."
)
lateness_seconds = metrics.histogram(
    "autopost_publication_lateness_seconds",
    "From the time of a publication to its first call, by the database's clock.",
)


class ErrorTypes(Protocol):
    async def publication_error_type(self, code: str) -> str: ...


class PublicationMetrics:
    def __init__(self, types: ErrorTypes) -> None:
        self._types = types
        self._known: dict[str, str] = {}

    async def count(self, committed: list[FinishedDelivery], stale: Collection[DeliveryId]) -> None:
        for ended in committed:
            facts = ended.claim.publication
            if facts is not None and ended.claim.delivery_id not in stale:
                await self._count(ended, facts)

    async def _count(self, ended: FinishedDelivery, facts: PublicationFacts) -> None:
        kind = {"media_type": facts.media_type}
        match ended.outcome:
            case Sent():
                published_total.add(1, kind)
            case Failed(code=code):
                error_type = await self._type_of(code)
                errors_total.add(1, {"error_type": error_type})
                if error_type == CONTENT:
                    approved_but_refused_total.add(1)
            case _:
                return
        send_seconds.record(ended.seconds, kind)
        if ended.claim.attempt == 1:
            lateness_seconds.record(max(0.0, ended.claim.slot - facts.scheduled_at))

    async def _type_of(self, code: str) -> str:
        """The database has the table. A metric never makes a commit fail."""
        if code not in self._known:
            try:
                self._known[code] = await self._types.publication_error_type(code)
            except Exception as exc:
                get_logger().warning("error_type.unknown", error=type(exc).__name__)
                return UNKNOWN
        return self._known[code]
