"""The text of each alert condition. The numbers are in ``config``; what counts is in ``db/functions/conditions``."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from msgspec import Struct

from autopost_monitor.alerts.config import AlertConfig


class ConditionText(Struct, frozen=True):
    """``what`` contains ``{count}``; ``look`` is the command that shows details."""

    what: str
    look: str = "autopost queue snapshot"


CONDITION_TEXTS: Mapping[str, ConditionText] = {
    "dead": ConditionText("{count} dead deliveries not reviewed yet", "autopost queue errors"),
    "failed_permanent": ConditionText(
        "{count} deliveries failed permanently within ten minutes", "autopost queue errors"
    ),
    "paused_channels": ConditionText("{count} channels are paused", "autopost channel list"),
    "disabled_channels": ConditionText(
        "{count} channels are disabled after failures", "autopost channel list, then autopost channel enable"
    ),
    "held_deliveries": ConditionText(
        "{count} deliveries were perhaps sent and wait for a decision", "autopost queue resolve"
    ),
    "cooled_groups": ConditionText(
        "{count} rate groups are paused after their platform rejected every call", "autopost auth list"
    ),
    "open_circuits": ConditionText("{count} rate groups wait because their platform does not answer", "autopost why"),
    "oldest_due": ConditionText("deliveries wait too long in {count} channels"),
    "pull_sources": ConditionText("{count} pull sources fail repeatedly", "autopost queue errors"),
    "staged_posts": ConditionText("{count} accepted posts are stuck before the queue"),
    "bot_outbox": ConditionText("{count} bot replies are stuck", "autopost queue errors"),
    "bot_errors": ConditionText("the bot failed to reply {count} times within ten minutes", "autopost queue errors"),
    "bot_actions_expired": ConditionText(
        "{count} actions of bots ran into their timeout within an hour", "autopost bot actions"
    ),
    "bot_inbox": ConditionText("{count} messages of customers are unanswered", "autopost bot chats"),
    "bot_fallback": ConditionText(
        "the bot did not understand {count} messages within an hour", "autopost bot unmatched"
    ),
    "bot_adapter": ConditionText(
        "the last {count} replies of the bot failed for the same reason", "autopost bot chats"
    ),
    "bot_webhook": ConditionText(
        "the platform does not send the bot its updates, and none came", "autopost bot subscriptions"
    ),
    "publications_failed": ConditionText(
        "{count} publications have failed", "autopost publication list --status failed"
    ),
    "publications_paused": ConditionText(
        "{count} publications wait for a person", "autopost publication list --status paused"
    ),
    "publications_late": ConditionText(
        "{count} publications are due and not sent", "autopost publication list --status publishing"
    ),
    "set_aside": ConditionText("{count} jobs fail repeatedly and are set aside"),
    "provider_waits": ConditionText(
        "{count} rate groups or channels must wait for a long time (retry_after of their platform)"
    ),
    "orphan_events": ConditionText("{count} events refer to rows that do not exist", "autopost verify"),
    "relay_lag": ConditionText("{count} events are not in the audit stream yet", "autopost events tail"),
    "refused_claims": ConditionText(
        "dispatchers cannot get the claim lock of the workspace; {count} channels are due", "autopost why"
    ),
    "event_partitions": ConditionText(
        "partitions of the event log exist for {count} more days only", "autopost verify"
    ),
}
"""One per condition of ``alert_conditions``."""


def thresholds(config: AlertConfig) -> dict[str, Any]:
    """Durations in seconds; ``None`` is off."""
    return {
        "dead": config.alert_dead,
        "failed_permanent": config.alert_failed_permanent,
        "paused_channels": config.alert_paused_channels,
        "paused_share": config.alert_paused_share,
        "disabled_channels": config.alert_disabled_channels,
        "held_deliveries": config.alert_held,
        "cooled_groups": config.alert_cooled_groups,
        "open_circuits": config.alert_open_circuits,
        "oldest_due": _seconds(config.alert_oldest_due),
        "pull_sources": config.alert_pull_failures,
        "staged_posts": _seconds(config.alert_staged_age),
        "staged_deadline": _seconds(config.stuck_staged_deadline),
        "bot_outbox": _seconds(config.alert_bot_age),
        "bot_errors": config.alert_bot_errors,
        "bot_actions_expired": config.alert_bot_actions_expired,
        "bot_inbox": _seconds(config.alert_bot_inbox),
        "bot_fallback": config.alert_bot_fallback,
        "bot_adapter": config.alert_bot_adapter,
        "bot_webhook": _seconds(config.alert_bot_webhook),
        "publications_failed": config.alert_publications_failed,
        "publications_paused": config.alert_publications_paused,
        "publications_late": _seconds(config.alert_publications_late),
        "set_aside": config.alert_set_aside,
        "provider_waits": _seconds(config.alert_provider_wait),
        "orphan_events": config.alert_orphan_events,
        "relay_lag": _seconds(config.alert_relay_lag),
        "refused_claims": _seconds(config.alert_refused_claims),
        "event_partitions": _seconds(config.alert_partitions_ahead),
    }


def _seconds(limit: timedelta | None) -> float | None:
    return None if limit is None else limit.total_seconds()
