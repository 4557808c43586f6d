"""The chat of a call, and whether the bot may read, edit or write there."""

from typing import Literal

from autopost_simulator.telegram.refusal import TelegramError, Upgraded, named
from autopost_simulator.telegram.request.params import Params
from autopost_simulator.telegram.standing import Kind, Role
from autopost_simulator.world import Chat, World

Access = Literal["read", "edit", "write"]

_WORDS: dict[Kind, str] = {
    "text": "text messages",
    "photo": "photos",
    "video": "videos",
    "document": "documents",
    "audio": "music",
    "animation": "animations",
    "voice": "voice notes",
    "sticker": "stickers",
    "poll": "polls",
    "location": "text messages",
}


def find_chat(world: World, params: Params, access: Access) -> Chat:
    return find_chat_named(world, params, "chat_id", access)


def find_chat_named(world: World, params: Params, name: str, access: Access) -> Chat:
    """``name`` is the parameter that names the chat."""
    chat = _named(world, params, name)
    if chat.state != "ok":
        refuse_absent(chat, access)
    if chat.migrated_to is not None and access == "write":
        raise Upgraded(chat.migrated_to)
    return chat


def _named(world: World, params: Params, name: str) -> Chat:
    chat_id = params.integer(name)
    chat = _by_name(world, params, name) if chat_id is None else world.chat("telegram", chat_id)
    if chat is None:
        raise named("chat_not_found")
    return chat


def _by_name(world: World, params: Params, name: str) -> Chat | None:
    given = params.text(name).strip()
    if not given:
        raise named("chat_id_is_empty")
    return world.chat_by_username("telegram", given) if given.startswith("@") else None


def refuse_absent(chat: Chat, access: Access) -> None:
    """A bot can still read a basic group or a person after it was removed or blocked."""
    to_change = access != "read"
    match chat.state:
        case "unknown":
            raise named("private_chat_not_found")
        case "kicked" if to_change or chat.type != "group":
            raise named("bot_was_kicked", chat=chat.type)
        case "not_member" if to_change or not (chat.type == "group" or chat.username):
            raise named("bot_is_not_a_member", chat=chat.type)
        case "deleted" if chat.type == "private" and to_change:
            raise named("user_is_deactivated")
        case "deleted" if chat.type == "group" and access == "write":
            raise named("group_was_deleted")
        case "blocked" if to_change:
            raise named("bot_was_blocked")
        case "not_started" if to_change:
            raise named("cant_initiate_conversation")


def refuse_without_rights(chat: Chat, kind: Kind) -> None:
    if chat.state == "read_only":
        raise named("have_no_write_access")
    if chat.state == "write_forbidden":
        raise named("chat_write_forbidden")
    if chat.type == "channel" and (chat.state == "no_rights" or role(chat) != "administrator"):
        raise named("need_administrator_rights")
    if chat.state == "no_rights" or kind in chat.forbids:
        raise _not_allowed(kind)


def role(chat: Chat) -> Role:
    """In a channel bots can only be administrators."""
    return chat.role or ("administrator" if chat.type == "channel" else "member")


def topic(chat: Chat, params: Params) -> int | None:
    """The thread a message goes to. Outside a forum the parameter is ignored; General cannot be named."""
    if chat.topics is None:
        return None
    wanted = params.integer("message_thread_id")
    if not wanted:
        return None
    found = next((topic for topic in chat.topics if topic.id == wanted), None)
    if found is None:
        raise named("message_thread_not_found")
    if found.closed:
        raise named("topic_closed")
    return wanted


def _not_allowed(kind: Kind) -> TelegramError:
    return named("not_enough_rights", content=_WORDS[kind])
