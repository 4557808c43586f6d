"""Messages of a bot: sent, read back, edited and deleted.

Editing and deleting fail with status 200 and ``success: false``, as MAX does.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from autopost_simulator.clock import Clock
from autopost_simulator.exchange import ProviderCall
from autopost_simulator.limits import Windows
from autopost_simulator.max import new_message, places, shapes
from autopost_simulator.max.attachments import Attached, Attaching
from autopost_simulator.max.new_message import MessageLink, NewMessageBody
from autopost_simulator.max.operation_call import OperationCall
from autopost_simulator.max.refusal import MaxRateLimited, named, payload
from autopost_simulator.world import Bot, Chat, ChatPost, World

EDITABLE_IN_DIALOG = timedelta(days=7)

Result = dict[str, Any]


class Messages:
    """``closed_to_forwarding``: chats that forbid forwarding."""

    def __init__(self, world: World, windows: Windows, clock: Clock, attaching: Attaching) -> None:
        self._world = world
        self._windows = windows
        self._clock = clock
        self._attaching = attaching
        self.closed_to_forwarding: set[int] = set()
        self.table = {
            "/messages": {"POST": self.send, "GET": self.list_messages, "PUT": self.edit, "DELETE": self.delete},
            "/messages/{mid}": {"GET": self.get_message},
        }

    def send(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Result:
        body = new_message.decode(asked.body)
        text = new_message.formatted(body)
        chat = places.addressee(self._world, asked)
        places.refuse_closed(chat)
        attached = self._attaching.attach(body.attachments or [], bot, asked.origin)
        new_message.refuse_empty(text.text, attached, linked=body.link is not None)
        if chat.type == "channel" and body.notify is False:
            raise payload("notify: must not be false for a channel")
        extra = self._extra(attached, self._linked(body.link))
        self.take_slot(bot, chat)
        now = self._clock.now()
        post = ChatPost(
            id=places.next_seq(chat, now),
            bot=bot,
            at=now,
            text=text.text,
            markup=text.markup,
            buttons=attached.keyboard,
            extra=extra,
        )
        chat.show(post)
        call.message_ids.append(shapes.mid(chat.id, post.id))
        return {"message": shapes.message(chat, post)}

    def take_slot(self, bot: Bot, chat: Chat) -> None:
        if self._windows.take((("max", bot.token, chat.id), chat.limits)):
            raise MaxRateLimited

    def list_messages(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Result:
        """Newest first. ``before`` and ``after`` were once called ``from`` and ``to``, of which clients give the
        earlier time as ``from``, against the documentation.
        """
        if wanted := asked.query.get("message_ids"):
            found = [places.find(self._world, message_id) for message_id in wanted.split(",")]
            return {"messages": [shapes.message_read(*place) for place in found if place]}
        chat = places.chat_called(self._world, asked.query.get("chat_id", ""))
        if chat.state != "no_rights":
            places.refuse_closed(chat)
        count = min(max(asked.integer("count") or 50, 1), 100)
        within = [post for post in reversed(chat.posts.values()) if _within(post, asked)]
        return {"messages": [shapes.message_read(chat, post) for post in within[:count]]}

    def get_message(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Result:
        place = places.find(self._world, asked.path["mid"])
        if place is None:
            raise named("message_not_found", id=asked.path["mid"])
        return shapes.message_read(*place)

    def edit(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Result:
        body = new_message.decode(asked.body)
        place = places.find(self._world, asked.query.get("message_id", ""))
        if place is None:
            return _failed("Message not found")
        chat, post = place
        places.refuse_closed(chat)
        if not shapes.written_by(post, bot):
            return _failed("Message was sent by somebody else")
        if chat.type == "dialog" and not post.buttons and self._clock.now() - post.at >= EDITABLE_IN_DIALOG:
            return _failed("Message is too old to be edited")
        self.change(place, body, bot, asked.origin)
        call.message_ids.append(shapes.mid(chat.id, post.id))
        return {"success": True}

    def change(self, place: places.Place, body: NewMessageBody, bot: Bot, origin: str) -> None:
        """Fields that the body omits are kept: the text, or all attachments including the keyboard."""
        chat, post = place
        text = new_message.formatted(body)
        kept = Attached(post.extra.get("attachments", []), post.buttons)
        attached = kept if body.attachments is None else self._attaching.attach(body.attachments, bot, origin)
        shown = (post.text or "") if body.text is None else text.text
        link = {"link": post.extra["link"]} if "link" in post.extra else {}
        new_message.refuse_empty(shown, attached, linked=bool(link))
        chat.posts[post.id] = replace(
            post,
            text=shown,
            markup=post.markup if body.text is None else text.markup,
            buttons=attached.keyboard,
            extra=self._extra(attached, link),
        )

    def delete(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Result:
        place = places.find(self._world, asked.query.get("message_id", ""))
        if place is None:
            return _failed("Message not found")
        chat, post = place
        places.refuse_closed(chat)
        if chat.type == "dialog" and not shapes.written_by(post, bot):
            return _failed("Message was sent by somebody else")
        chat.remove(post)
        return {"success": True}

    def _extra(self, attached: Attached, link: Result) -> Result:
        return link | ({"attachments": attached.shown} if attached.shown else {})

    def _linked(self, link: MessageLink | None) -> Result:
        if link is None:
            return {}
        place = places.find(self._world, link.mid)
        if place is None:
            raise named("message_not_found", id=link.mid)
        if link.type == "forward" and place[0].id in self.closed_to_forwarding:
            raise named("forwarding_prohibited")
        return {"link": shapes.linked(link.type, *place)}


def _failed(why: str) -> Result:
    return {"success": False, "message": why}


def _within(post: ChatPost, asked: OperationCall) -> bool:
    at = shapes.milliseconds(post.at)
    latest = asked.integer("before") or asked.integer("from") or at
    earliest = asked.integer("after") or asked.integer("to") or at
    both = "from" in asked.query and "to" in asked.query
    return latest <= at <= earliest if both and latest < earliest else earliest <= at <= latest
