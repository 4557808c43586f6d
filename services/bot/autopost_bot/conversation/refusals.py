"""Which workspaces have nothing that the database accepts: they are set aside and named; one bad chat is not enough."""

from collections import defaultdict

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.lifecycle.set_aside import SetAside

from autopost_bot.conversation.taken import Chat

CHATS = 3
"""Chats in which it refused something, and nothing accepted in between."""


class Refusals:
    def __init__(self, aside: SetAside) -> None:
        self._aside = aside
        self._chats: dict[WorkspaceId, set[str]] = defaultdict(set)

    async def refused(self, chat: Chat, exc: Exception) -> None:
        chats = self._chats[chat.workspace_id]
        chats.add(chat.chat_id)
        if len(chats) >= CHATS:
            del self._chats[chat.workspace_id]
            await self._aside.failed(chat.workspace_id, exc)

    async def worked(self, workspace: WorkspaceId) -> None:
        """Cheap when nothing was refused."""
        self._chats.pop(workspace, None)
        await self._aside.worked(workspace)
