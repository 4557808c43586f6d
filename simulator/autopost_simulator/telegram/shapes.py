"""Bots, chats and messages as the Bot API shows them; client libraries parse these strictly."""

from typing import Any

from autopost_simulator.world import Bot, Chat, Post


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
    return shape


def full_chat(shown: Chat) -> dict[str, Any]:
    gifts = ("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels")
    return chat(shown) | {
        "accent_color_id": abs(shown.id) % 7,
        "max_reaction_count": 11,
        "accepted_gift_types": dict.fromkeys(gifts, False),
    }


def message(where: Chat, post: Post) -> dict[str, Any]:
    place = chat(where)
    shape: dict[str, Any] = {"message_id": post.id, "date": int(post.at.timestamp()), "chat": place}
    shape |= {"sender_chat": place} if where.type == "channel" else {"from": user(post.bot)}
    shape |= post.extra
    shape["text"] = post.text
    if post.markup:
        shape["entities"] = post.markup
    if post.buttons:
        shape["reply_markup"] = post.buttons
    return shape
