"""Long-running actions of a bot, and what the stream of a chat sends: the names on the wire, in one place.

JSON Schema and TypeScript types are generated from this module, see ``bot_action_types``. A new action type gets its
default text here; a front end that does not know it shows the text of the action or a neutral one.
"""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from msgspec import Struct

BotActionStatus = Literal["processing", "done", "error"]
BotActionType = Literal["transcribe_audio", "summarize", "generate_image", "process_file"]
"""The types that have a default text; others are allowed."""

BOT_ACTION_STATUSES: tuple[BotActionStatus, ...] = ("processing", "done", "error")
BOT_ACTION_TYPES: tuple[BotActionType, ...] = ("transcribe_audio", "summarize", "generate_image", "process_file")

DEFAULT_TEXTS: dict[BotActionType, str] = {
    "transcribe_audio": "Готовим стенограмму…",
    "summarize": "Готовим саммари…",
    "generate_image": "Создаём изображение…",
    "process_file": "Обрабатываем файл…",
}
FALLBACK_TEXT = "Выполняем действие…"
"""For a type that has no default text."""

CURSOR_HEADER = "X-Chat-Cursor"
"""The chat's number at the time of the answer; a stream with ``after=`` this number misses nothing."""


class BotAction(Struct, frozen=True, kw_only=True, rename="camel"):
    """The nine fields are always there."""

    workspace_id: UUID
    chat_id: str
    action_id: str
    """Chosen by the caller, one for each operation; never used twice."""
    action_type: str
    status: BotActionStatus
    display_text: str | None
    """Plain text, to be shown as text and never as HTML."""
    payload: dict[str, Any] | None
    created_at: datetime
    updated_at: datetime


class ChatMessage(Struct, frozen=True, kw_only=True, rename="camel"):
    workspace_id: UUID
    chat_id: str
    message_id: str
    direction: Literal["in", "out"]
    """From the customer, or a reply to them."""
    text: str | None
    created_at: datetime


class ChatMessageEvent(Struct, frozen=True, kw_only=True, tag_field="type", tag="message"):
    message: ChatMessage


class BotActionEvent(Struct, frozen=True, kw_only=True, tag_field="type", tag="bot_action"):
    action: BotAction


class ResyncEvent(Struct, frozen=True, kw_only=True, tag_field="type", tag="resync"):
    """Changes are missing: read the chat anew."""


ChatEvent = ChatMessageEvent | BotActionEvent | ResyncEvent
"""The data of one event of the chat stream; its id is the chat's number."""


def shown_text(action: BotAction) -> str:
    """What a client shows while the action runs."""
    return action.display_text or default_text(action.action_type)


def default_text(action_type: str) -> str:
    return next((text for known, text in DEFAULT_TEXTS.items() if known == action_type), FALLBACK_TEXT)
