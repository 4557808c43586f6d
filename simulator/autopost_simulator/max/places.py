"""Find the chat and message of a request, and check the bot's rights."""

from datetime import datetime

from autopost_simulator.max import shapes
from autopost_simulator.max.operation_call import OperationCall
from autopost_simulator.max.refusal import named, payload
from autopost_simulator.world import Chat, ChatPost, World

Place = tuple[Chat, ChatPost]


def addressee(world: World, asked: OperationCall) -> Chat:
    if "user_id" in asked.query:
        user_id = asked.integer("user_id")
        chat = None if user_id is None else world.dialog(user_id)
        if chat is None:
            raise named("user_chat_not_found", id=asked.query["user_id"])
        return chat
    if "chat_id" not in asked.query:
        raise payload("Either `chat_id` or `user_id` is required")
    return chat_called(world, asked.query["chat_id"])


def chat_called(world: World, given: str) -> Chat:
    try:
        chat = world.chat("max", int(given))
    except ValueError:
        raise payload(f"`{given}` is not a chat id") from None
    if chat is None:
        raise named("dialog_not_found" if int(given) > 0 else "chat_not_found", id=given)
    return chat


def find(world: World, message_id: str) -> Place | None:
    place = shapes.place_of(message_id)
    chat = world.chats.get(("max", place[0])) if place else None
    post = chat.posts.get(place[1]) if chat and place else None
    return (chat, post) if chat and post else None


def on_screen(world: World, message_id: str) -> Place | None:
    """Also a message that was removed: somebody may not have noticed."""
    place = shapes.place_of(message_id)
    chat = world.chats.get(("max", place[0])) if place else None
    post = (chat.posts.get(place[1]) or chat.removed.get(place[1])) if chat and place else None
    return (chat, post) if chat and post else None


def refuse_closed(chat: Chat) -> None:
    if chat.state == "no_rights":
        raise named("no_write_right", id=chat.id)
    if chat.state != "ok":
        raise named("chat_denied", id=chat.id)


def next_seq(chat: Chat, now: datetime) -> int:
    """Grows with time, as in MAX, and exceeds JavaScript's safe integers."""
    return max(chat.last_id + 1, shapes.milliseconds(now) << 16)
