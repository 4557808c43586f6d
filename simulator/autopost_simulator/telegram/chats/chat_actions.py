"""sendChatAction: the bot seems to type. Nobody sees it here."""

from typing import Any

from autopost_simulator.exchange import ProviderCall
from autopost_simulator.telegram.place import find_chat
from autopost_simulator.telegram.refusal import TelegramError
from autopost_simulator.telegram.request.params import Params
from autopost_simulator.world import Bot, World

ACTIONS = frozenset(
    (
        "cancel",
        "typing",
        "record_video",
        "upload_video",
        "record_audio",
        "record_voice",
        "upload_audio",
        "upload_voice",
        "upload_photo",
        "upload_document",
        "choose_sticker",
        "pick_up_location",
        "find_location",
        "record_video_note",
        "upload_video_note",
    )
)


class ChatActions:
    def __init__(self, world: World) -> None:
        self._world = world
        self.table = (("sendChatAction", self.send),)

    def send(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        if params.text("action").lower() not in ACTIONS:
            raise TelegramError(400, "Bad Request: wrong parameter action in request")
        find_chat(self._world, params, "write")
        return True
