"""Search a chat for the message of a part.

The newest messages come first. Messages older than the part do not match, with a minute of tolerance because clocks
differ. After ``PAGES`` pages the search stops and the outcome stays ambiguous.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from autopost_contracts.outcomes import Failed, Scope
from autopost_contracts.plan import MediaPart, Part
from msgspec import Struct

from autopost_adapters.answers import identifier, reader
from autopost_adapters.base import AcceptedPart, Target
from autopost_adapters.markup.html import read_html
from autopost_adapters.markup.markdown import read_markdown
from autopost_adapters.max.answers import parse
from autopost_adapters.max.api import Api
from autopost_adapters.max.message import PERSON, button_shape, kind_of, written

PAGE = 100
PAGES = 5
CLOCKS = timedelta(minutes=1)

_MEDIA = ("image", "video", "audio", "file")


class FoundButton(Struct, frozen=True):
    type: str = ""
    text: str = ""
    url: str | None = ""
    payload: str | None = ""


class AttachmentPayload(Struct, frozen=True):
    buttons: list[list[FoundButton]] = []


class Attachment(Struct, frozen=True):
    type: str
    payload: AttachmentPayload | None = None


class FoundBody(Struct, frozen=True):
    mid: Any
    text: str | None = None
    attachments: list[Attachment] | None = None


class MessageSender(Struct, frozen=True):
    is_bot: bool = False


class FoundMessage(Struct, frozen=True):
    timestamp: int
    body: FoundBody
    sender: MessageSender | None = None


class MessagePage(Struct, frozen=True):
    messages: list[FoundMessage]


class Likeness(Struct, frozen=True):
    """The comparable properties of a message. Others, such as link previews, are added by the chat."""

    text: str
    media: tuple[str, ...]
    buttons: tuple[tuple[FoundButton, ...], ...]


_page = reader(MessagePage)


async def find(
    api: Api, part: Part, target: Target, since: datetime, other_than: Collection[str]
) -> AcceptedPart | Failed | None:
    if target.chat.startswith(PERSON):
        return Failed.transient(
            Scope.DELIVERY, "cannot_verify", "MAX lists the messages of a chat, not of a person", ambiguous=True
        )
    wanted = likeness_of(part)
    earliest = int((since - CLOCKS).timestamp() * 1000)
    before: int | None = None
    for _ in range(PAGES):
        page = await _read(api, target, before)
        if isinstance(page, Failed):
            return msgspec.structs.replace(page, ambiguous=True)
        for message in page:
            mid = identifier(message.body.mid)
            if mid and message.timestamp >= earliest and mid not in other_than and _is(message, wanted):
                return AcceptedPart(provider_ids=(mid,))
        oldest = min((message.timestamp for message in page), default=0)
        if len(page) < PAGE or oldest < earliest:
            return None
        if oldest == before:
            break
        before = oldest
    return Failed.transient(Scope.DELIVERY, "cannot_verify", "too many messages to search", ambiguous=True)


async def _read(api: Api, target: Target, before: int | None) -> Sequence[FoundMessage] | Failed:
    query: dict[str, str | int] = {"chat_id": target.chat, "count": PAGE}
    answer = await api.call("GET", "/messages", target.token, query | ({} if before is None else {"before": before}))
    page = answer if isinstance(answer, Failed) else parse(answer, _page)
    return page if isinstance(page, Failed) else page.messages


def likeness_of(part: Part) -> Likeness:
    text, markup = written(part)
    readers = {"html": read_html, "markdown": read_markdown}
    visible = readers[markup](text)[0].text if markup in readers else text
    media = tuple(kind_of(item) for item in part.media) if isinstance(part, MediaPart) else ()
    buttons = tuple(tuple(FoundButton(**button_shape(button)) for button in row) for row in part.buttons)
    return Likeness(visible.strip(), media, buttons)


def _is(message: FoundMessage, wanted: Likeness) -> bool:
    """A channel shows no sender; a sender that is shown must be a bot."""
    if message.sender is not None and not message.sender.is_bot:
        return False
    attachments = message.body.attachments or []
    rows = [row for one in attachments if one.type == "inline_keyboard" and one.payload for row in one.payload.buttons]
    return wanted == Likeness(
        (message.body.text or "").strip(),
        tuple(one.type for one in attachments if one.type in _MEDIA),
        tuple(map(tuple, rows)),
    )
