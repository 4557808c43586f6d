"""Read what Telegram answers: the messages it made and the files it holds now, or how it refused."""

from collections.abc import Sequence

import msgspec
from autopost_contracts.outcomes import Failed
from autopost_contracts.plan import PlannedMedia
from autopost_runtime.http import HttpAnswer
from msgspec import Struct

from autopost_adapters.base import Held
from autopost_adapters.classify import classify, snippet_of, unreadable, wait_asked
from autopost_adapters.telegram.calls import KINDS
from autopost_adapters.telegram.classify import RULES


class Parameters(Struct, frozen=True):
    retry_after: int | None = None
    migrate_to_chat_id: int | None = None


class File(Struct, frozen=True):
    file_id: str
    width: int = 0
    height: int = 0


class Message(Struct, frozen=True):
    message_id: int
    photo: list[File] = []
    video: File | None = None
    animation: File | None = None
    audio: File | None = None
    document: File | None = None


class Answer(Struct, frozen=True):
    ok: bool
    result: Message | list[Message] | None = None
    error_code: int | None = None
    description: str = ""
    parameters: Parameters = Parameters()


_decode = msgspec.json.Decoder(Answer).decode


def read(answer: HttpAnswer) -> list[Message] | Failed:
    """The messages in order: one, or those of an album."""
    try:
        told = _decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _without_json(answer)
    if not told.ok:
        return _refused(answer, told)
    messages = [told.result] if isinstance(told.result, Message) else told.result
    return messages or unreadable(answer)


def held(items: Sequence[PlannedMedia], messages: Sequence[Message]) -> tuple[Held | None, ...]:
    """An id serves only for the kind it was given for, so what became another kind is not kept."""
    if len(items) != len(messages):
        return tuple(None for _ in items)
    files = [_file(item, message) for item, message in zip(items, messages, strict=True)]
    return tuple(Held(provider_id=file.file_id) if file else None for file in files)


def _file(item: PlannedMedia, message: Message) -> File | None:
    kind = KINDS[item.type]
    if kind == "photo":
        return max(message.photo, key=lambda size: size.width * size.height, default=None)
    if kind == "document" and message.animation:
        return None  # an animation is shown as a document too
    found: File | None = getattr(message, kind)
    return found


def _refused(answer: HttpAnswer, told: Answer) -> Failed:
    """An album is refused with the number of an item and what is wrong with it, which the rules find in the whole."""
    wait, moved = told.parameters.retry_after, told.parameters.migrate_to_chat_id
    failed = classify(
        RULES,
        told.error_code or answer.status,
        told.description,
        retry_after_ms=wait_asked(answer) if wait is None else wait * 1000,
        snippet=told.description,
    )
    return failed if moved is None else msgspec.structs.replace(failed, migrated_to=str(moved))


def _without_json(answer: HttpAnswer) -> Failed:
    """A gateway in between answered, in HTML or not at all."""
    if 200 <= answer.status < 300:
        return unreadable(answer)
    return classify(RULES, answer.status, "", retry_after_ms=wait_asked(answer), snippet=snippet_of(answer))
