"""getChatMember: the membership of the bot or of a known person."""

from typing import Any

from autopost_simulator.exchange import ProviderCall
from autopost_simulator.telegram import shapes
from autopost_simulator.telegram.place import find_chat, role
from autopost_simulator.telegram.refusal import TelegramError, named
from autopost_simulator.telegram.request.params import Params
from autopost_simulator.telegram.standing import Kind
from autopost_simulator.world import Bot, Chat, World

OWNER = {"id": 777, "is_bot": False, "first_name": "Owner"}

_ADMINISTRATOR_MAY = (
    "can_manage_chat",
    "can_delete_messages",
    "can_manage_video_chats",
    "can_restrict_members",
    "can_change_info",
    "can_invite_users",
    "can_post_stories",
    "can_edit_stories",
    "can_delete_stories",
    "can_send_welcome_messages",
)
_ADMINISTRATOR_MAY_NOT = ("can_be_edited", "is_anonymous", "can_promote_members")
_CONTENT: dict[str, Kind] = {
    "can_send_messages": "text",
    "can_send_audios": "audio",
    "can_send_documents": "document",
    "can_send_photos": "photo",
    "can_send_videos": "video",
    "can_send_other_messages": "animation",
}
_RESTRICTED_MAY = (
    "can_send_video_notes",
    "can_send_voice_notes",
    "can_send_polls",
    "can_add_web_page_previews",
    "can_react_to_messages",
    "can_edit_tag",
    "can_change_info",
    "can_invite_users",
    "can_pin_messages",
    "can_manage_topics",
)


class Members:
    def __init__(self, world: World) -> None:
        self._world = world

    def get_chat_member(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        chat = find_chat(self._world, params, "read")
        user_id = params.integer("user_id")
        if not user_id or user_id < 0:
            raise named("invalid_user_id")
        if user_id == bot.id:
            return {"user": shapes.user(bot)} | membership(chat)
        person = self._world.chats.get(("telegram", user_id))
        if person is None:
            raise named("participant_id_invalid")
        return {"user": {"id": user_id, "is_bot": False, "first_name": person.title}, "status": "member"}

    def get_administrators(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        """The owner, and the bot itself if it is one; other bots are never listed."""
        chat = find_chat(self._world, params, "read")
        if chat.type == "private":
            raise TelegramError(400, "Bad Request: there are no administrators in the private chat")
        owner = {"user": OWNER, "status": "creator", "is_anonymous": False}
        standing = membership(chat)
        own = [{"user": shapes.user(bot)} | standing] if standing["status"] == "administrator" else []
        return [owner, *own]

    def get_member_count(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        """The owner and the bot; nobody else is ever a member."""
        find_chat(self._world, params, "read")
        return 2


def membership(chat: Chat) -> dict[str, Any]:
    if chat.state == "kicked":
        return {"status": "kicked", "until_date": 0}
    if chat.state == "not_member":
        return {"status": "left"}
    if role(chat) == "administrator":
        return _administrator(chat)
    if chat.forbids or chat.state == "no_rights":
        return _restricted(chat)
    return {"status": "member"}


def _administrator(chat: Chat) -> dict[str, Any]:
    may = dict.fromkeys(_ADMINISTRATOR_MAY, True) | dict.fromkeys(_ADMINISTRATOR_MAY_NOT, False)
    if chat.type == "channel":
        may |= dict.fromkeys(("can_post_messages", "can_edit_messages"), chat.state != "no_rights")
    return {"status": "administrator"} | may


def _restricted(chat: Chat) -> dict[str, Any]:
    may = {right: chat.state == "ok" and kind not in chat.forbids for right, kind in _CONTENT.items()}
    return {"status": "restricted", "is_member": True, "until_date": 0} | may | dict.fromkeys(_RESTRICTED_MAY, False)
