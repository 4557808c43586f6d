"""Renew the leases of chats that this process has."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.lifecycle.set_aside import error_name
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

from autopost_bot.conversation.gateway import ConversationGateway
from autopost_bot.conversation.taken import Chat

not_renewed = metrics.counter("autopost_bot_leases_not_renewed_total", "Leases of chats that could not be renewed.")


class ChatLeases:
    """Renews a lease after a sixth of its time and looks twice as often, so three quarters are always left."""

    def __init__(self, gateway: ConversationGateway, lease: timedelta) -> None:
        self._gateway = gateway
        self._lease = lease
        self._held: dict[WorkspaceId, dict[str, Chat]] = defaultdict(dict)
        self._dropped = asyncio.Event()
        self._closed = False
        self.count = 0
        """Of all workspaces."""

    def hold(self, chat: Chat) -> None:
        held = self._held[chat.workspace_id]
        self.count += chat.chat_id not in held
        held[chat.chat_id] = chat

    def drop(self, chat: Chat) -> None:
        held = self._held[chat.workspace_id]
        if held.get(chat.chat_id) is chat:
            del held[chat.chat_id]
            self.count -= 1
            self._dropped.set()
        if not held:
            del self._held[chat.workspace_id]

    def count_of(self, workspace: WorkspaceId) -> int:
        return len(self._held.get(workspace, ()))

    async def dropped(self) -> None:
        """Wait until a chat is given back, or all of this ends."""
        if not self._closed:
            self._dropped.clear()
        await self._dropped.wait()

    def close(self) -> None:
        self._closed = True
        self._dropped.set()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._lease.total_seconds() / 12)
            for workspace, held in list(self._held.items()):
                old = [chat for chat in held.values() if self._is_old(chat)]
                if old:
                    await self._renew(workspace, old)

    def _is_old(self, chat: Chat) -> bool:
        return not chat.lease.is_lost and chat.lease.left() < self._lease.total_seconds() * 5 / 6

    async def _renew(self, workspace: WorkspaceId, chats: Sequence[Chat]) -> None:
        started = time.monotonic()
        try:
            ours = await self._gateway.renew_chats(workspace, chats, self._lease)
        except Exception as exc:
            not_renewed.add(len(chats))
            get_logger().warning("chats.not_renewed", error=error_name(exc), chats=len(chats))
            return
        for chat in chats:
            if chat.chat_id in ours:
                chat.lease.until = started + self._lease.total_seconds()
            else:
                chat.lease.is_lost = True
