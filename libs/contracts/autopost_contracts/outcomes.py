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
    answered: bool = False
    """The API of the platform refused definitely, so the platform is there. Never true for an upload host."""
    raw: dict[str, Any] = {}

    @property
    def is_silence(self) -> bool:
        """The platform gave no answer that means anything: enough of these open the circuit (settle_circuits)."""
        is_of_platform = self.category == Category.TRANSIENT and self.scope == Scope.PLATFORM
        return is_of_platform and self.retry_after_ms is None and not self.answered

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
