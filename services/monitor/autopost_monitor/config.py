"""The configuration of the monitor, from ``AUTOPOST_*``."""

from datetime import timedelta
from typing import Annotated

from msgspec import Meta

from autopost_monitor.retention.config import RetainConfig

Duration = Annotated[timedelta, Meta(ge=0.05)]


class MonitorConfig(RetainConfig, frozen=True, kw_only=True):
    database_role: str | None = "autopost_monitor"
    http_host: str = "127.0.0.1"
    http_port: Annotated[int, Meta(ge=0, le=65535)] = 0
    recover_interval: Duration = timedelta(seconds=60)
    claimed_lease: Duration = timedelta(seconds=300)
    bot_action_max_processing_hours: Annotated[float, Meta(gt=0, le=8760)] = 2
    """An action of a bot that nobody ended so long after its creation ends as a timeout."""
    bot_action_watchdog_interval_minutes: Annotated[float, Meta(ge=0.001, le=1440)] = 30
    relay_interval: Duration = timedelta(seconds=1)
    snapshot_interval: Duration = timedelta(seconds=5)
    metrics_workspaces: Annotated[int, Meta(ge=0, le=1000)] = 0
    """The number of workspaces with their own metrics, the busiest first; the rest is reported as ``other``."""
    partitions_ahead: Duration = timedelta(days=30)
