"""What the engine takes and what it gives: an update and the conversation so far make a turn.

A turn says everything that a commit writes: the reply, the next conversation, the log line and the event.
"""

from datetime import datetime, timedelta
from typing import Any, Literal

from autopost_contracts.payload import Button
from autopost_contracts.plan import Plan
from msgspec import Struct, field

DEFAULT_STATE = "default"
OPERATOR_STATE = "operator"
"""The conversation was handed to a person; the bot is silent until it expires."""

Outcome = Literal[
    "greeted",  # the customer opened the dialog
    "matched",  # a rule answered
    "captured",  # a rule of the scenario took a value
    "digressed",  # a question in the middle of a scenario was answered, and the scenario asks again
    "invalid",  # a rule of the scenario waits for something else
    "clarified",  # nothing matched; the customer is asked to say it differently
    "escalated",  # nothing matched again, or the scenario took too many turns: an operator is named
    "cancelled",  # a cancel word
    "attachment",  # something without words, which no rule takes
    "late",  # older than what was already handled: answered, but nothing changes
    "silent",  # no answer is wanted: an operator has the chat, a second start, a late update that nothing matches
    "flooded",  # too many in a minute: the customer is told so once
    "gathered",  # its text was joined with that of a later update, which has the answer
    "stale",  # a button of an earlier question
    "ignored",  # a button that is not ours
    "failed",  # the engine failed on this update, or its chat was taken again and again without a commit
]


class Update(Struct, frozen=True, kw_only=True):
    """One update that a customer waits for an answer to: a row of ``bot_inbox``, read."""

    key: str
    """``bot_inbox.provider_message_id``."""
    kind: Literal["message", "press", "start"]
    at: datetime
    """When it was stored (``bot_inbox.ts``)."""
    provider_ms: int | None = None
    """When the customer wrote it, as the provider says."""
    text: str = ""
    attachments: tuple[str, ...] = ()
    """Their types, such as ``image``."""
    payload: str = ""
    """Of a pressed button."""
    callback_id: str | None = None
    flooded: bool = False
    """One too many in its minute: the customer is told so, and that is all."""


def written_ms(update: Update) -> int:
    """When it was written; when it was stored if the provider does not say so."""
    return update.provider_ms if update.provider_ms is not None else int(update.at.timestamp() * 1000)


class Conversation(Struct, frozen=True, kw_only=True):
    """What the bot knows of a chat: a row of ``bot_state``, or none yet."""

    state: str = DEFAULT_STATE
    context: dict[str, Any] = field(default_factory=lambda: {"turns": 0})
    expires_at: datetime | None = None
    newest_ms: int | None = None
    """The highest ``provider_ms`` of the updates handled so far (``bot_chats.last_provider_ts``)."""


class Reply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What goes out: plain text and rows of buttons."""

    text: str
    buttons: tuple[tuple[Button, ...], ...] = ()


class NextConversation(Struct, frozen=True, kw_only=True):
    """The row of ``bot_state`` after the turn."""

    state: str
    context: dict[str, Any]
    expires_in: timedelta | None = None
    """From the commit on; ``None``: it does not expire."""


class Escalation(Struct, frozen=True):
    """Becomes the event ``bot_escalated``."""

    code: Literal["turn_guard", "unmatched", "engine_failed"]


class LogLine(Struct, frozen=True, kw_only=True):
    """The row of ``bot_logs``; the commit adds ``trace_id``, ``idempotency_key`` and ``adapter`` to ``meta``."""

    message_text: str
    matched_rule_id: str | None = None
    rule_version: int | None = None
    state_before: str
    state_after: str
    response_preview: str | None = None
    meta: dict[str, Any]
    """``outcome`` and ``ruleset`` always; ``matched_by``, ``keywords``, ``late``, ``expired``, ``state_unknown``,
    ``missing``, ``gathered``, ``error`` where they apply."""


class Turn(Struct, frozen=True, kw_only=True):
    """One handled update."""

    key: str
    outcome: Outcome
    reply: Reply | None = None
    plan: Plan | None = None
    """The reply, compiled for the platform; ``None`` exactly when there is no reply."""
    response_hash: str | None = None
    """The hash of the plan."""
    next: NextConversation | None = None
    """``None``: the conversation stays as it is, and so does its expiry."""
    notification: str | None = None
    """Shown to who pressed a button, beside or instead of a reply."""
    escalation: Escalation | None = None
    log: LogLine
