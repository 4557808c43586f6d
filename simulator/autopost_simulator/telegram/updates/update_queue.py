"""The updates that a bot has not confirmed yet, in order. Each is kept for a day, a pressed button for less."""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from autopost_simulator.clock import Clock

UPDATES_KEPT = 100_000
FIRST_ID = 700_000_000
FUTURE = 10
"""An offset further ahead of the newest update is taken for a mistake, and all updates are returned."""

TYPES = frozenset(
    (
        "message",
        "edited_message",
        "channel_post",
        "edited_channel_post",
        "business_connection",
        "business_message",
        "edited_business_message",
        "deleted_business_messages",
        "message_reaction",
        "message_reaction_count",
        "inline_query",
        "chosen_inline_result",
        "callback_query",
        "shipping_query",
        "pre_checkout_query",
        "purchased_paid_media",
        "poll",
        "poll_answer",
        "my_chat_member",
        "chat_member",
        "chat_join_request",
        "chat_boost",
        "removed_chat_boost",
    )
)
DEFAULT_TYPES = TYPES - {"chat_member", "message_reaction", "message_reaction_count"}


@dataclass(slots=True, frozen=True)
class BotUpdate:
    """``order`` names what must arrive in order at a webhook: a chat, or a person who presses buttons."""

    id: int
    content: dict[str, Any]
    order: Hashable
    expires_at: datetime

    @property
    def shape(self) -> dict[str, Any]:
        return {"update_id": self.id, **self.content}


class UpdateQueue:
    def __init__(self, clock: Clock, last_id: int) -> None:
        self._clock = clock
        self._pending: deque[BotUpdate] = deque(maxlen=UPDATES_KEPT)
        self.last_id = last_id
        self.allowed = DEFAULT_TYPES

    def push(self, kind: str, content: dict[str, Any], order: Hashable, lifetime: timedelta) -> BotUpdate | None:
        """``None`` for a type that the bot does not want."""
        if kind not in self.allowed:
            return None
        self.last_id += 1
        update = BotUpdate(self.last_id, {kind: content}, order, self._clock.now() + lifetime)
        self._pending.append(update)
        return update

    def read(self, offset: int, limit: int) -> list[BotUpdate]:
        """Forget the updates before ``offset``; a negative one keeps only the newest."""
        self._forget_expired()
        if offset < 0:
            while len(self._pending) > -offset:
                self._pending.popleft()
        elif offset <= self.last_id + FUTURE:
            while self._pending and self._pending[0].id < offset:
                self._pending.popleft()
        return list(self._pending)[:limit]

    def waiting(self) -> list[BotUpdate]:
        self._forget_expired()
        return list(self._pending)

    def forget(self, update: BotUpdate) -> None:
        if update in self._pending:
            self._pending.remove(update)

    def clear(self) -> None:
        self._pending.clear()

    def _forget_expired(self) -> None:
        now = self._clock.now()
        expired = [update for update in self._pending if update.expires_at <= now]
        for update in expired:
            self._pending.remove(update)
