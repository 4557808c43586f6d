"""How a send ended. Every response of a platform becomes one of these values; unexpected errors are exceptions."""

from datetime import timedelta
from enum import StrEnum
from typing import Any

from msgspec import Struct

LONGEST_RETRY_AFTER = timedelta(days=1)
"""The upper bound for a platform's retry_after; the event shows the original value."""


class Category(StrEnum):
    TRANSIENT = "TRANSIENT"
    PERMANENT = "PERMANENT"


class Scope(StrEnum):
    DELIVERY = "delivery"
    CHANNEL = "channel"
    PLATFORM = "platform"


class Sent(Struct, frozen=True, kw_only=True, tag_field="result", tag="sent"):
    """The platform acknowledged every part. Only the ids of its responses are kept."""

    provider_message_id: str
    parts: tuple[tuple[str, ...], ...] = ()
    """The message ids of each part."""


class Failed(Struct, frozen=True, kw_only=True, tag_field="result", tag="failed", omit_defaults=True):
    """``ambiguous`` is true when the platform may have accepted the message."""

    category: Category
    scope: Scope
    code: str
    message: str = ""
    retry_after_ms: int | None = None
    ambiguous: bool = False
    hold: bool = False
    """The outcome is ambiguous and the platform cannot be queried: an operator must decide."""
    migrated_to: str | None = None
    """The new id of the chat, when the platform has moved it."""
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
