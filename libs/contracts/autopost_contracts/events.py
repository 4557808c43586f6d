"""Audit events as they are published: the closed list of actions and the record."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from autopost_contracts.ids import ChannelId, DeliveryId, EventId, MessageId, WorkspaceId


class Action(StrEnum):
    """All actions in ``events``; the database type ``event_action`` has the same values."""

    ENQUEUE = "enqueue"
    VALIDATION_FAILED = "validation_failed"
    SEND_ATTEMPT = "send_attempt"
    SENT = "sent"
    RETRY_SCHEDULED = "retry_scheduled"
    DEDUP_SUPPRESSED = "dedup_suppressed"
    FAILED_PERMANENT = "failed_permanent"
    DEAD_LETTER = "dead_letter"
    CHANNEL_PAUSED = "channel_paused"
    CHANNEL_DISABLED = "channel_disabled"
    CHANNEL_ENABLED = "channel_enabled"
    MESSAGE_TAG_MISMATCH = "message_tag_mismatch"
    SENDING_LEASE_EXPIRED = "sending_lease_expired"
    CLAIMED_LEASE_EXPIRED = "claimed_lease_expired"
    MANUAL_REQUEUE = "manual_requeue"
    AUTH_ROTATED = "auth_rotated"
    INGRESS_RATE_LIMITED = "ingress_rate_limited"
    INGRESS_PAYLOAD_REJECTED = "ingress_payload_rejected"
    INGRESS_DEDUP_DROPPED = "ingress_dedup_dropped"
    INGRESS_CONFIG_ERROR = "ingress_config_error"
    STALE_COMMIT = "stale_commit"
    CHECKPOINT = "checkpoint"
    CATCH_UP_DROPPED = "catch_up_dropped"
    CHANNEL_MIGRATED = "channel_migrated"
    PAYLOAD_ACCESSED = "payload_accessed"
    MANUAL_SKIP = "manual_skip"
    MEDIA_FAILED = "media_failed"
    HELD = "held"
    CONFIG_CHANGED = "config_changed"
    BOT_REPLIED = "bot_replied"
    BOT_REPLY_FAILED = "bot_reply_failed"
    PUBLICATION_DRAFTED = "publication_drafted"
    PUBLICATION_APPROVED = "publication_approved"
    PUBLICATION_SCHEDULED = "publication_scheduled"
    PUBLICATION_DUE = "publication_due"
    PUBLICATION_PUBLISHED = "publication_published"
    PUBLICATION_FAILED = "publication_failed"
    PUBLICATION_CANCELLED = "publication_cancelled"
    PUBLICATION_PAUSED = "publication_paused"
    PULL_FAILED = "pull_failed"
    GROUP_OPENED = "group_opened"
    GROUP_CLOSED = "group_closed"
    BOT_ACTION_EXPIRED = "bot_action_expired"
    BOT_ESCALATED = "bot_escalated"
    BOT_RULES_CHANGED = "bot_rules_changed"
    BOT_UPDATE_IGNORED = "bot_update_ignored"
    CANCELLED = "cancelled"
    RESCHEDULED = "rescheduled"


AUDIT_SCHEMA = "autopost.audit_event"
AUDIT_VERSION = 1
SCHEMA_HEADER = "Autopost-Schema"
VERSION_HEADER = "Autopost-Schema-Version"


class AuditEvent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One row of ``events`` as it is published; ``id`` is also the ``Nats-Msg-Id``."""

    id: EventId
    workspace_id: WorkspaceId
    seq: int
    ts: datetime
    action: Action
    result: str
    attempt: int = 0
    delivery_id: DeliveryId | None = None
    message_id: MessageId | None = None
    channel_id: ChannelId | None = None
    error: dict[str, Any] | None = None
    payload_ref: str | None = None
    meta: dict[str, Any] | None = None
