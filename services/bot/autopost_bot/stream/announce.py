"""Tell every replica that a chat has changed."""

from autopost_contracts.ids import WorkspaceId, chat_token
from autopost_runtime.nats.bus import Bus

from autopost_bot.stream.hub import Hub


class ChatAnnouncer:
    """This replica hears it at once, the others through NATS. Call after the commit."""

    def __init__(self, hub: Hub, bus: Bus) -> None:
        self._hub, self._bus = hub, bus

    def announce(self, workspace: WorkspaceId, chat_id: str, seq: int) -> None:
        token = chat_token(workspace, chat_id)
        self._hub.wake(workspace, token, seq)
        self._bus.wake(self._bus.topology.chat(workspace, token), seq)
