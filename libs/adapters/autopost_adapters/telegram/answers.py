"""Parse the responses of Telegram: sent messages and stored files, or an error."""

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
"""Per album."""
MOST_OBJECTS = 12_000
"""Per response, braces in captions included: an album has fewer. Parsing 1 MiB of tiny objects would block the event
loop for 0.2 s."""


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


class TelegramBot(Struct, frozen=True):
    id: Any


class TelegramIdentity(Struct, frozen=True):
    ok: bool
    result: TelegramBot | None = None
    error_code: Any = None
    description: Any = ""
    parameters: Any = None


class BareMessage(Struct, frozen=True):
    message_id: Any


class Bare(Struct, frozen=True):
    """A response reduced to the message ids, so that other malformed fields do not matter."""

    ok: bool
    result: BareMessage | list[BareMessage]


_decode = reader(TelegramResponse)
_decode_bare = reader(Bare)
_decode_identity = reader(TelegramIdentity)


def read(answer: HttpAnswer) -> list[TelegramMessage] | Failed:
    """The messages in order: one, or one per album item."""
    if answer.body.count(b"{") > MOST_OBJECTS:
        return _without_json(answer)
    try:
        response = _parse(answer.body)
    except msgspec.DecodeError:
        return _without_json(answer)
    if not response.ok:
        return _refused(answer, response)
    messages = response.result if isinstance(response.result, list) else [response.result] if response.result else []
    named = [msgspec.structs.replace(one, message_id=identifier(one.message_id)) for one in messages[:MOST_MESSAGES]]
    return named if named and all(one.message_id for one in named) else unreadable(answer)


def read_identity(answer: HttpAnswer) -> Failed | None:
    """``None`` when Telegram says who the bot is."""
    try:
        response = _decode_identity(answer.body)
    except msgspec.DecodeError:
        return _without_json(answer)
    if not response.ok:
        return _refused(answer, response)
    return unreadable(answer) if response.result is None else None


def _parse(body: bytes) -> TelegramResponse:
    """Fall back to the message ids alone when the rest of the response is malformed."""
    try:
        return _decode(body)
    except msgspec.DecodeError:
        bare = _decode_bare(body)
        messages = bare.result if isinstance(bare.result, list) else [bare.result]
        return TelegramResponse(ok=bare.ok, result=[TelegramMessage(message_id=one.message_id) for one in messages])


def held(items: Sequence[PlannedMedia], messages: Sequence[TelegramMessage]) -> tuple[Held | None, ...]:
    """A file id is valid only for its own kind, so the id of a file that Telegram converted is not kept."""
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


def _refused(answer: HttpAnswer, response: TelegramResponse | TelegramIdentity) -> Failed:
    """The error of an album names an item and its problem; the rules match on the whole text."""
    parameters = response.parameters if isinstance(response.parameters, dict) else {}
    wait, moved = wait_ms(parameters.get("retry_after")), identifier(parameters.get("migrate_to_chat_id"))
    description = words(response.description)
    failed = classify(
        RULES,
        http_status(response.error_code, answer.status),
        description,
        retry_after_ms=wait_asked(answer) if wait is None else wait,
        snippet=description,
    )
    return failed if moved is None else msgspec.structs.replace(failed, migrated_to=moved)


def _without_json(answer: HttpAnswer) -> Failed:
    """A proxy responded with HTML or an empty body."""
    if 200 <= answer.status < 300:
        return unreadable(answer)
    return classify(RULES, answer.status, "", retry_after_ms=wait_asked(answer), snippet=snippet_of(answer))
