"""End the waiting of a pressed button: one call beside the reply, tried once. Nothing depends on it."""

import asyncio
from collections.abc import Mapping

from autopost_contracts.outcomes import Failed
from autopost_runtime.lifecycle.set_aside import error_name
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

from autopost_bot.conversation.gateway import ConversationGateway
from autopost_bot.conversation.send import Identities, ReplyAdapter, token_of
from autopost_bot.conversation.slots import PATIENCE
from autopost_bot.conversation.taken import Bot, Chat
from autopost_bot.engine.turn import Turn

TRIES = 5

presses_total = metrics.counter("autopost_bot_presses_total", "Pressed buttons by what became of their answer.")


class PressAnswers:
    def __init__(
        self, gateway: ConversationGateway, adapters: Mapping[str, ReplyAdapter], identities: Identities
    ) -> None:
        self._gateway = gateway
        self._adapters = adapters
        self._identities = identities

    async def answer(self, bot: Bot, chat: Chat, callback_id: str, turn: Turn) -> None:
        """A turn that took the press removes the buttons of its question; any other says why it did not."""
        if turn.outcome == "ignored":
            return
        try:
            result = await self._answer(bot, chat, callback_id, turn.notification or "")
        except Exception as exc:
            result = "failed"
            get_logger().warning("press.unanswered", chat=chat.token, error=error_name(exc))
        presses_total.add(1, {"result": result})

    async def _answer(self, bot: Bot, chat: Chat, callback_id: str, notification: str) -> str:
        adapter = self._adapters.get(bot.provider)
        token = await token_of(self._identities, chat.workspace_id, bot)
        if adapter is None or token is None or not await self._slot(chat):
            return "skipped"
        failed = await adapter.answer(callback_id, token, notification=notification, remove_buttons=not notification)
        return "failed" if isinstance(failed, Failed) else "answered"

    async def _slot(self, chat: Chat) -> bool:
        for _ in range(TRIES):
            slot = await self._gateway.take_press_slot(chat.workspace_id, chat.chat_id, PATIENCE)
            if slot.wait > PATIENCE:
                return False
            await asyncio.sleep(max(0.0, slot.wait.total_seconds()))
            if slot.taken:
                return True
        return False
