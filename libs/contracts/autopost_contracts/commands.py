"""Commands on ``delivery.commands``, and what becomes of those that fail for good.

The database writes them into ``command_outbox``; a command says what to look at, and the database decides.
"""

from datetime import datetime
from typing import Any

from msgspec import Struct

from autopost_contracts.ids import ChannelId, DeliveryId, PublicationId, WorkspaceId


class PublishPost(Struct, frozen=True, kw_only=True, tag_field="type", tag="publish_post.v1"):
    """A publication is due. A repeated command changes nothing."""

    workspace_id: WorkspaceId
    publication_id: PublicationId
    version: int


class PublishPostFailed(Struct, frozen=True, kw_only=True, tag_field="type", tag="publish_post_failed.v1"):
    """On ``delivery.commands.dlq``: without text, token and file id."""

    workspace_id: WorkspaceId
    publication_id: PublicationId
    version: int
    channel_id: ChannelId
    delivery_id: DeliveryId | None
    """``None``: it failed before it had one."""
    error_type: str
    error: dict[str, Any]
    attempts: int
    scheduled_at: datetime | None = None
    first_attempt_at: datetime | None = None
    last_attempt_at: datetime | None = None
    trace_id: str | None = None


class UnreadableCommand(Struct, frozen=True, kw_only=True, tag_field="type", tag="unreadable_command.v1"):
    """On ``delivery.commands.dlq``: a message that is no command. What it says is not repeated."""

    error_type: str = "unreadable_command"
    size: int
    sha256: str
