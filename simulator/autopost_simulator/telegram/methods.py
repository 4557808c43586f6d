"""The methods of the Bot API by name, case-insensitive."""

from collections.abc import Callable
from functools import partial
from typing import Any

from autopost_simulator.exchange import ProviderCall
from autopost_simulator.limits import Windows
from autopost_simulator.telegram import shapes
from autopost_simulator.telegram.chats.chat_actions import ChatActions
from autopost_simulator.telegram.chats.members import Members
from autopost_simulator.telegram.chats.pins import Pins
from autopost_simulator.telegram.editing.copying import Copying
from autopost_simulator.telegram.editing.delete import Deleting
from autopost_simulator.telegram.editing.edit import Editing
from autopost_simulator.telegram.place import find_chat
from autopost_simulator.telegram.refusal import named
from autopost_simulator.telegram.request.params import Params
from autopost_simulator.telegram.sending.posting import Posting
from autopost_simulator.telegram.sending.send import Sending
from autopost_simulator.telegram.state import TelegramState
from autopost_simulator.world import Bot

Method = Callable[[Bot, Params, ProviderCall], Any]


class Methods:
    def __init__(self, state: TelegramState, windows: Windows) -> None:
        world, clock, files = state.world, state.clock, state.files
        self._world = world
        self._files = files
        self._updates = state.updates
        posting = Posting(windows, clock)
        sending = Sending(world, posting, files, state.intake)
        editing = Editing(world, clock, files, state.intake)
        deleting = Deleting(world, clock)
        copying = Copying(world, posting)
        members = Members(world)
        self._settings = state.settings
        methods: tuple[tuple[str, Method], ...] = (
            ("getMe", self.get_me),
            ("getChat", self.get_chat),
            ("getChatMember", members.get_chat_member),
            ("getChatAdministrators", members.get_administrators),
            ("getChatMemberCount", members.get_member_count),
            ("getChatMembersCount", members.get_member_count),
            ("getFile", self.get_file),
            ("sendMessage", sending.message),
            ("sendPhoto", partial(sending.media, "photo")),
            ("sendVideo", partial(sending.media, "video")),
            ("sendDocument", partial(sending.media, "document")),
            ("sendAnimation", partial(sending.media, "animation")),
            ("sendAudio", partial(sending.media, "audio")),
            ("sendVoice", partial(sending.media, "voice")),
            ("sendSticker", partial(sending.media, "sticker")),
            ("sendPoll", sending.poll),
            ("sendLocation", sending.location),
            ("sendMediaGroup", sending.album),
            ("editMessageText", editing.edit_text),
            ("editMessageCaption", editing.edit_caption),
            ("editMessageMedia", editing.edit_media),
            ("editMessageReplyMarkup", editing.edit_buttons),
            ("deleteMessage", deleting.delete),
            ("deleteMessages", deleting.delete_many),
            ("copyMessage", copying.copy),
            ("copyMessages", copying.copy_many),
            ("forwardMessage", copying.forward),
            ("forwardMessages", copying.forward_many),
            *Pins(world).table,
            *ChatActions(world).table,
            *state.settings.table,
            *state.updates.table,
            *state.callbacks.table,
        )
        self._methods = {name.lower(): (name, method) for name, method in methods}

    def canonical(self, name: str) -> str:
        known = self._methods.get(name.lower())
        return known[0] if known else name

    async def wait(self, name: str, bot: Bot, params: Params) -> None:
        """Long polling: only ``getUpdates`` waits."""
        if name == "getUpdates":
            await self._updates.wait(bot, params)

    def run(self, name: str, bot: Bot, params: Params, call: ProviderCall) -> Any:
        known = self._methods.get(name.lower())
        if known is None:
            raise named("method_not_found")
        self._settings.refuse_logged_out(bot)
        return known[1](bot, params, call)

    def get_me(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        return shapes.me(bot)

    def get_chat(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        return shapes.full_chat(find_chat(self._world, params, "read"))

    def get_file(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        file = self._files.to_download(bot, params.text("file_id"))
        return shapes.file_path(file, self._files.id_for(bot, file))
