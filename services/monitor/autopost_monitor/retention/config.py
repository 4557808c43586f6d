"""Retention periods, and the batch size and pauses of deletion."""

from datetime import timedelta
from typing import Annotated

from msgspec import Meta

from autopost_monitor.alerts.config import AlertConfig

Period = Annotated[timedelta, Meta(ge=3600)]
"""At least an hour: a typing error must not delete data that cannot be restored."""

Pause = Annotated[timedelta, Meta(ge=0, le=60)]
Interval = Annotated[timedelta, Meta(ge=0.05)]


class RetainConfig(AlertConfig, frozen=True, kw_only=True):
    """From ``AUTOPOST_*``; the table in services/monitor/README.md explains each field."""

    retain_interval: Interval = timedelta(hours=1)
    retain_batch: Annotated[int, Meta(ge=1, le=10_000)] = 1000
    retain_pause: Pause = timedelta(milliseconds=100)
    retain_events: Period = timedelta(days=30)
    retain_deliveries: Period = timedelta(days=90)
    retain_messages: Period = timedelta(days=90)
    retain_ingest_runs: Period = timedelta(days=90)
    retain_staged_posts: Period = timedelta(days=30)
    retain_pull_receipts: Period = timedelta(days=90)
    retain_media_fetches: Period = timedelta(days=1)
    retain_bot: Period = timedelta(days=30)
    retain_bot_chats: Period = timedelta(days=90)
    retain_bot_logs: Period = timedelta(days=90)
    retain_commands: Period = timedelta(days=30)
    retain_alerts: Period = timedelta(days=90)
    retain_payloads: Period = timedelta(days=14)

    collect_interval: Interval = timedelta(hours=1)
    origin_retention: Annotated[timedelta, Meta(ge=86400)] = timedelta(days=30)
    origin_retention_large_video: Annotated[timedelta, Meta(ge=86400)] = timedelta(days=7)
    large_video_bytes: Annotated[int, Meta(ge=1)] = 20 * 1024 * 1024

    reconcile_interval: Interval = timedelta(minutes=10)
    reconcile_chunk: Annotated[int, Meta(ge=1, le=100_000)] = 5000
    reconcile_chunks: Annotated[int, Meta(ge=1)] = 100
    recount_interval: Interval = timedelta(minutes=5)
    stuck_interval: Interval = timedelta(seconds=60)
    stuck_staged_after: Interval = timedelta(minutes=10)
    stuck_reply_after: Interval = timedelta(minutes=10)
