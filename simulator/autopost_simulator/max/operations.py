"""What each MAX operation does to the world."""

from collections.abc import Callable
from typing import Any

from autopost_simulator.clock import Clock
from autopost_simulator.exchange import Call
from autopost_simulator.limits import Windows
from autopost_simulator.max import new_message, shapes
from autopost_simulator.max.asked import Asked
from autopost_simulator.max.refusal import RateLimited, named, payload
from autopost_simulator.world import Bot, Chat, Post, World

Operation = Callable[[Bot, Asked, Call], Any]


class Operations:
    def __init__(self, world: World, windows: Windows, clock: Clock) -> None:
        self._world = world
        self._windows = windows
        self._clock = clock
        self.table: dict[str, dict[str, Operation]] = {
            "/me": {"GET": self.me},
            "/messages": {"POST": self.send, "GET": self.list_messages, "DELETE": self.delete},
            "/messages/{mid}": {"GET": self.get_message},
            "/chats/{id}": {"GET": self.get_chat},
            "/chats/{id}/members/me": {"GET": self.membership},
        }

    def admit(self, token: str) -> Bot:
        """MAX counts every request of a bot, not only messages."""
        bot = None if any(map(str.isspace, token)) or not token else self._world.bot("max", token)
        if bot is None:
            raise named("verify_token")
        if self._windows.take((("max", token), bot.limits)):
            raise RateLimited
        return bot

    def me(self, bot: Bot, asked: Asked, call: Call) -> Any:
        return shapes.user(bot, self._clock.now()) | {"description": ""}

    def send(self, bot: Bot, asked: Asked, call: Call) -> Any:
        content = new_message.content(new_message.decode(asked.body))
        chat = self._addressee(asked)
        _refuse_closed(chat)
        if chat.type == "channel" and not content.notify:
            raise payload("notify: must not be false for a channel")
        extra = self._link(content.link)
        if self._windows.take((("max", bot.token, chat.id), chat.limits)):
            raise RateLimited
        now = self._clock.now()
        post = Post(
            id=max(chat.last_id + 1, shapes.milliseconds(now) << 16),
            bot=bot,
            at=now,
            text=content.text,
            markup=content.markup,
            buttons=content.attachments,
            extra=extra,
        )
        chat.show(post)
        call.message_ids.append(shapes.mid(chat.id, post.id))
        return {"message": shapes.message(chat, post)}

    def list_messages(self, bot: Bot, asked: Asked, call: Call) -> Any:
        if wanted := asked.query.get("message_ids"):
            found = [self._find(message_id) for message_id in wanted.split(",")]
            return {"messages": [shapes.message(*place) for place in found if place]}
        chat = self._addressee(asked)
        count = min(max(asked.integer("count") or 50, 1), 100)
        newest = list(chat.posts.values())[: -count - 1 : -1]
        return {"messages": [shapes.message(chat, post) for post in newest]}

    def get_message(self, bot: Bot, asked: Asked, call: Call) -> Any:
        place = self._find(asked.path["mid"])
        if place is None:
            raise named("message_not_found", id=asked.path["mid"])
        return shapes.message(*place)

    def delete(self, bot: Bot, asked: Asked, call: Call) -> Any:
        place = self._find(asked.query.get("message_id", ""))
        if place is None:
            return {"success": False, "message": "Message not found"}
        chat, post = place
        _refuse_closed(chat)
        del chat.posts[post.id]
        return {"success": True}

    def get_chat(self, bot: Bot, asked: Asked, call: Call) -> Any:
        return shapes.chat(self._chat(asked.path["id"]), self._clock.now())

    def membership(self, bot: Bot, asked: Asked, call: Call) -> Any:
        chat = self._chat(asked.path["id"])
        if chat.state != "no_rights":
            _refuse_closed(chat)
        return shapes.membership(bot, chat, self._clock.now())

    def _addressee(self, asked: Asked) -> Chat:
        if "user_id" in asked.query:
            user_id = asked.integer("user_id")
            chat = None if user_id is None else self._world.dialog(user_id)
            if chat is None:
                raise named("user_chat_not_found", id=asked.query["user_id"])
            return chat
        if "chat_id" not in asked.query:
            raise payload("Either `chat_id` or `user_id` is required")
        return self._chat(asked.query["chat_id"])

    def _chat(self, given: str) -> Chat:
        try:
            chat = self._world.chat("max", int(given))
        except ValueError:
            raise payload(f"`{given}` is not a chat id") from None
        if chat is None:
            raise named("dialog_not_found" if int(given) > 0 else "chat_not_found", id=given)
        return chat

    def _find(self, message_id: str) -> tuple[Chat, Post] | None:
        place = shapes.place_of(message_id)
        chat = self._world.chats.get(("max", place[0])) if place else None
        post = chat.posts.get(place[1]) if chat and place else None
        return (chat, post) if chat and post else None

    def _link(self, link: new_message.Link | None) -> dict[str, Any]:
        if link is None:
            return {}
        place = self._find(link.mid)
        if place is None:
            raise named("message_not_found", id=link.mid)
        return {"link": {"type": link.type, "chat_id": place[0].id, "message": shapes.body(*place)}}


def _refuse_closed(chat: Chat) -> None:
    if chat.state == "no_rights":
        raise named("no_write_right", id=chat.id)
    if chat.state != "ok":
        raise named("chat_denied", id=chat.id)
