"""How a send ended. Whatever a platform does to us is one of these values; surprises are exceptions."""

from datetime import timedelta
from enum import StrEnum
from typing import Any

from msgspec import Struct

LONGEST_WAIT = timedelta(days=1)
"""However long a platform asks to be left alone; the event shows what it asked for."""


class Category(StrEnum):
    TRANSIENT = "TRANSIENT"
    PERMANENT = "PERMANENT"


class Scope(StrEnum):
    DELIVERY = "delivery"
    CHANNEL = "channel"
    PLATFORM = "platform"


class Sent(Struct, frozen=True, kw_only=True, tag_field="result", tag="sent"):
    """Every part was acknowledged by the provider. Of its answers the ids are kept, and nothing raw."""

    provider_message_id: str
    parts: tuple[tuple[str, ...], ...] = ()
    """The ids of all messages, by part."""


class Failed(Struct, frozen=True, kw_only=True, tag_field="result", tag="failed", omit_defaults=True):
    """``ambiguous`` is true when the provider may have accepted what we sent."""

    category: Category
    scope: Scope
    code: str
    message: str = ""
    retry_after_ms: int | None = None
    ambiguous: bool = False
    hold: bool = False
    """Perhaps accepted, and the platform cannot be asked: a human must decide."""
    migrated_to: str | None = None
    """Where the chat is now, when the platform has moved it."""
    raw: dict[str, Any] = {}

    @classmethod
    def transient(
        cls,
        scope: Scope,
        code: str,
        message: str = "",
        *,
        retry_after_ms: int | None = None,
        ambiguous: bool = False,
        hold: bool = False,
        raw: dict[str, Any] | None = None,
    ) -> "Failed":
        return cls(
            category=Category.TRANSIENT,
            scope=scope,
            code=code,
            message=message,
            retry_after_ms=retry_after_ms,
            ambiguous=ambiguous,
            hold=hold,
            raw=raw or {},
        )

    @classmethod
    def permanent(cls, scope: Scope, code: str, message: str = "", *, raw: dict[str, Any] | None = None) -> "Failed":
        return cls(category=Category.PERMANENT, scope=scope, code=code, message=message, raw=raw or {})


Outcome = Sent | Failed
