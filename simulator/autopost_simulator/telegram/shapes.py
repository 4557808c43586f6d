"""Bots, chats and messages in the form of the Bot API; client libraries parse these strictly."""

from typing import Any

from autopost_simulator.telegram.storage.files import TelegramFile
from autopost_simulator.world import Bot, Chat, ChatPost


def user(bot: Bot) -> dict[str, Any]:
    return {"id": bot.id, "is_bot": True, "first_name": bot.name, "username": bot.username}


def me(bot: Bot) -> dict[str, Any]:
    return user(bot) | {
        "can_join_groups": True,
        "can_read_all_group_messages": False,
        "supports_inline_queries": False,
        "can_connect_to_business": False,
        "has_main_web_app": False,
    }


def chat(shown: Chat) -> dict[str, Any]:
    shape: dict[str, Any] = {"id": shown.id, "type": shown.type}
    shape["first_name" if shown.type == "private" else "title"] = shown.title
    if shown.username:
        shape["username"] = shown.username
    if shown.topics is not None:
        shape["is_forum"] = True
    return shape


def full_chat(shown: Chat) -> dict[str, Any]:
    pinned = shown.posts.get(shown.pinned[-1]) if shown.pinned else None
    full = _full_chat(shown)
    return full if pinned is None else full | {"pinned_message": message(shown, pinned)}


def _full_chat(shown: Chat) -> dict[str, Any]:
    gifts = ("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels")
    return chat(shown) | {
        "accent_color_id": abs(shown.id) % 7,
        "max_reaction_count": 11,
        "accepted_gift_types": dict.fromkeys(gifts, False),
    }


def written_by(post: ChatPost, bot: Bot) -> bool:
    """What a person wrote has ``from`` in ``extra``, and ``by_person`` in a channel, where nobody is named."""
    return post.bot.id == bot.id and "from" not in post.extra and "by_person" not in post.extra


def message(where: Chat, post: ChatPost) -> dict[str, Any]:
    """``media`` in ``extra`` is for the page and tests; the Bot API has the other fields of ``extra`` instead."""
    place = chat(where)
    shape: dict[str, Any] = {"message_id": post.id, "date": int(post.at.timestamp()), "chat": place}
    shape |= {"sender_chat": place} if where.type == "channel" else {"from": user(post.bot)}
    shape |= post.extra
    shape.pop("by_person", None)
    if shape.pop("media", None) is None and not {"poll", "location"} & set(shape):
        shape |= _written("text", "entities", post)
    elif post.text:
        shape |= _written("caption", "caption_entities", post)
    if post.buttons:
        shape["reply_markup"] = post.buttons
    return shape


def _written(text: str, entities: str, post: ChatPost) -> dict[str, Any]:
    return {text: post.text, entities: post.markup} if post.markup else {text: post.text}


def media_fields(file: TelegramFile, file_id: str) -> dict[str, Any]:
    """The fields of a message for its media; an animation also has the field ``document``."""
    known = {"file_id": file_id, "file_unique_id": file.unique_id, "file_size": file.size}
    if file.kind == "photo":
        return {"photo": [known | file.attributes]}
    if file.kind == "sticker":
        return {"sticker": known | file.attributes}
    fields = known | {"mime_type": file.content_type} | file.attributes
    if file.name:
        fields["file_name"] = file.name
    if file.kind == "animation":
        bare = {name: value for name, value in fields.items() if name not in file.attributes}
        return {"animation": fields, "document": bare}
    return {file.kind: fields}


def media_shown(file: TelegramFile) -> list[dict[str, Any]]:
    """``extra["media"]`` of a post, as the page and the tests read it; the bytes are at ``url``."""
    return [
        {
            "kind": file.kind,
            "file_unique_id": file.unique_id,
            "url": f"/_sim/files/{file.unique_id}",
            "sha256": file.sha256,
            "size": file.size,
            "content_type": file.content_type,
            "name": file.name,
            **file.attributes,
        }
    ]


def file_path(file: TelegramFile, file_id: str) -> dict[str, Any]:
    return {
        "file_id": file_id,
        "file_unique_id": file.unique_id,
        "file_size": file.size,
        "file_path": file.path,
    }
