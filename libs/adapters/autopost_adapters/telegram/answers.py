"""Read what Telegram answers: the messages it made and the files it holds now, or how it refused."""

from collections.abc import Sequence
from typing import Any

import msgspec
from autopost_contracts.outcomes import Failed
from autopost_contracts.plan import PlannedMedia
from autopost_runtime.http.client import HttpAnswer
from msgspec import Struct

from autopost_adapters.answers import http_status, identifier, reader, token, wait_ms, words
from autopost_adapters.base import Held
from autopost_adapters.classify import classify, snippet_of, unreadable, wait_asked
from autopost_adapters.telegram.calls import KINDS
from autopost_adapters.telegram.classify import RULES

MOST_MESSAGES = 10
"""In an album."""
MOST_OBJECTS = 12_000
"""In an answer, braces in captions included: an album has fewer. To read 1 MiB of tiny ones would hold everybody up for
0.2 s."""


class TelegramFile(Struct, frozen=True):
    file_id: str
    width: int = 0
    height: int = 0


class TelegramMessage(Struct, frozen=True):
    message_id: Any
    photo: list[TelegramFile] = []
    video: TelegramFile | None = None
    animation: TelegramFile | None = None
    audio: TelegramFile | None = None
    document: TelegramFile | None = None


class TelegramResponse(Struct, frozen=True):
    ok: bool
    result: TelegramMessage | list[TelegramMessage] | None = None
    error_code: Any = None
    description: Any = ""
    parameters: Any = None


class BareMessage(Struct, frozen=True):
    message_id: Any


class Bare(Struct, frozen=True):
    """An answer without all that may be odd about a message but its id."""

    ok: bool
    result: BareMessage | list[BareMessage]


_decode = reader(TelegramResponse)
_decode_bare = reader(Bare)


def read(answer: HttpAnswer) -> list[TelegramMessage] | Failed:
    """The messages in order: one, or those of an album."""
    if answer.body.count(b"{") > MOST_OBJECTS:
        return _without_json(answer)
    try:
        told = _told(answer.body)
    except msgspec.DecodeError:
        return _without_json(answer)
    if not told.ok:
        return _refused(answer, told)
    messages = told.result if isinstance(told.result, list) else [told.result] if told.result else []
    named = [msgspec.structs.replace(one, message_id=identifier(one.message_id)) for one in messages[:MOST_MESSAGES]]
    return named if named and all(one.message_id for one in named) else unreadable(answer)


def _told(body: bytes) -> TelegramResponse:
    """What was accepted is known by its ids alone, where the rest of it makes no sense."""
    try:
        return _decode(body)
    except msgspec.DecodeError:
        bare = _decode_bare(body)
        messages = bare.result if isinstance(bare.result, list) else [bare.result]
        return TelegramResponse(ok=bare.ok, result=[TelegramMessage(message_id=one.message_id) for one in messages])


def held(items: Sequence[PlannedMedia], messages: Sequence[TelegramMessage]) -> tuple[Held | None, ...]:
    """An id serves only for the kind it was given for, so what became another kind is not kept."""
    if len(items) != len(messages):
        return tuple(None for _ in items)
    files = [_file(item, message) for item, message in zip(items, messages, strict=True)]
    ids = [token(file.file_id) if file else None for file in files]
    return tuple(Held(provider_id=one) if one else None for one in ids)


def _file(item: PlannedMedia, message: TelegramMessage) -> TelegramFile | None:
    kind = KINDS[item.type]
    if kind == "photo":
        return max(message.photo, key=lambda size: size.width * size.height, default=None)
    if kind == "document" and message.animation:
        return None  # an animation is shown as a document too
    found: TelegramFile | None = getattr(message, kind)
    return found


def _refused(answer: HttpAnswer, told: TelegramResponse) -> Failed:
    """An album is refused with the number of an item and what is wrong with it, which the rules find in the whole."""
    parameters = told.parameters if isinstance(told.parameters, dict) else {}
    wait, moved = wait_ms(parameters.get("retry_after")), identifier(parameters.get("migrate_to_chat_id"))
    description = words(told.description)
    failed = classify(
        RULES,
        http_status(told.error_code, answer.status),
        description,
        retry_after_ms=wait_asked(answer) if wait is None else wait,
        snippet=description,
    )
    return failed if moved is None else msgspec.structs.replace(failed, migrated_to=moved)


def _without_json(answer: HttpAnswer) -> Failed:
    """A gateway in between answered, in HTML or not at all."""
    if 200 <= answer.status < 300:
        return unreadable(answer)
    return classify(RULES, answer.status, "", retry_after_ms=wait_asked(answer), snippet=snippet_of(answer))
