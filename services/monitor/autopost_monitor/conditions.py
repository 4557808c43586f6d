"""The thresholds of every condition, as ``alert_conditions`` reads them, and what each condition means to a reader."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from msgspec import Struct

from autopost_monitor.alert_config import AlertConfig


class Words(Struct, frozen=True):
    """``what`` has a place for the number found, ``look`` is the command that shows more."""

    what: str
    look: str = "autopost queue snapshot"


WORDS: Mapping[str, Words] = {
    "dead": Words("{count} dead deliveries that nobody has looked at", "autopost queue errors"),
    "failed_permanent": Words("{count} deliveries refused for good within ten minutes", "autopost queue errors"),
    "paused_channels": Words("{count} channels are paused", "autopost channel list"),
    "cooled_groups": Words("{count} tokens are refused in every channel that uses them", "autopost auth list"),
    "oldest_due": Words("deliveries wait for too long in {count} channels"),
    "pull_sources": Words("{count} sources fail again and again", "autopost queue errors"),
    "staged_posts": Words("{count} accepted posts are stuck before they were queued"),
    "bot_outbox": Words("{count} replies of the bot are stuck", "autopost queue errors"),
    "bot_errors": Words("the bot failed to reply {count} times within ten minutes", "autopost queue errors"),
    "orphan_events": Words("{count} events refer to nothing", "autopost verify"),
    "relay_lag": Words("{count} events wait for the audit stream", "autopost events tail"),
    "event_partitions": Words("the partitions of the log end in {count} days", "autopost verify"),
}
"""One per condition of ``alert_conditions``."""


def thresholds(config: AlertConfig) -> dict[str, Any]:
    """Durations in seconds; ``None`` is off."""
    return {
        "dead": config.alert_dead,
        "failed_permanent": config.alert_failed_permanent,
        "paused_channels": config.alert_paused_channels,
        "cooled_groups": config.alert_cooled_groups,
        "oldest_due": _seconds(config.alert_oldest_due),
        "pull_sources": config.alert_pull_failures,
        "staged_posts": _seconds(config.alert_staged_age),
        "staged_deadline": _seconds(config.stuck_staged_deadline),
        "bot_outbox": _seconds(config.alert_bot_age),
        "bot_errors": config.alert_bot_errors,
        "orphan_events": config.alert_orphan_events,
        "relay_lag": _seconds(config.alert_relay_lag),
        "event_partitions": _seconds(config.alert_partitions_ahead),
    }


def _seconds(limit: timedelta | None) -> float | None:
    return None if limit is None else limit.total_seconds()
