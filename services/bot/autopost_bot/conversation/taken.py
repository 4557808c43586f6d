"""A chat that this process has, and the reply that it sends there."""

import time
from datetime import datetime, timedelta
from uuid import UUID

from autopost_contracts.ids import WorkspaceId, chat_token
from autopost_contracts.outcomes import Outcome
from autopost_contracts.plan import Plan
from autopost_runtime.lifecycle.pace import PacedCall, RateGroup
from msgspec import Struct

from autopost_bot.engine.ruleset import Ruleset
from autopost_bot.engine.turn import Conversation, Update


class Lease(Struct, eq=False):
    """Counted from before the call that granted it, so it is never overestimated."""

    token: UUID
    until: float
    is_lost: bool = False
    """Another worker has the chat now."""

    def left(self) -> float:
        return self.until - time.monotonic()


class Chat(Struct, frozen=True, eq=False):
    """A chat under a lease of this process."""

    workspace_id: WorkspaceId
    chat_id: str
    lease: Lease

    @property
    def token(self) -> str:
        return chat_token(self.workspace_id, self.chat_id)


class StoredUpdate(Struct, frozen=True):
    update: Update
    trace_id: str | None
    traceparent: str | None


class PendingReply(Struct, frozen=True, kw_only=True):
    """A reply that was decided before and has not ended."""

    key: str
    reply_id: UUID
    plan: Plan
    progress: tuple[tuple[str, ...], ...]
    attempt: int
    created_at: datetime
    maybe_sent: bool
    sent_ids: tuple[str, ...]
    trace_id: str | None
    traceparent: str | None


class TakenChat(Struct, frozen=True, kw_only=True):
    """A row of ``take_chats``: either a reply or updates."""

    chat: Chat
    takes: int
    conversation: Conversation
    reply: PendingReply | None
    updates: tuple[StoredUpdate, ...]
    rules_seq: int


class Bot(Struct, frozen=True, kw_only=True, eq=False):
    """How a workspace answers: its ruleset, and the token and rate group of its replies."""

    rules_seq: int
    provider: str
    auth_ref: str
    rate_group: str
    pace: float
    """Seconds between two calls into one chat, 0 without a rate."""
    ruleset: Ruleset


class Slot(Struct, frozen=True):
    at: float
    """By the monotonic clock of this process."""
    database_time: datetime


class ReplyJob(Struct, frozen=True, kw_only=True, eq=False):
    """A reply that this process may send until the lease of its chat expires."""

    chat: Chat
    bot: Bot
    reply_id: UUID
    plan: Plan
    slot: Slot | None
    """Of the first call; ``None``: it has to be asked for."""
    ask_at: float = 0.0
    """Not before, by the monotonic clock: others come first."""
    progress: tuple[tuple[str, ...], ...] = ()
    maybe_sent: bool = False
    sent_ids: tuple[str, ...] = ()
    created_at: datetime
    stored_at: datetime
    """When the update was stored that it answers."""
    granted_at: float
    """By the monotonic clock: the database allowed it then."""
    traceparent: str | None

    @property
    def group(self) -> RateGroup:
        return (self.chat.workspace_id, self.bot.provider, self.bot.rate_group)

    @property
    def paced(self) -> PacedCall:
        return PacedCall(self.group, (self.chat.workspace_id, self.chat.chat_id), self.bot.pace)


class EndedReply(Struct, frozen=True, eq=False):
    job: ReplyJob
    outcome: Outcome | timedelta
    """A duration: given back unsent, to be looked at after it."""
    ended_at: datetime
