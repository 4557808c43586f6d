"""Read what MAX answers. A refusal may come as text, or without a body."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
from autopost_contracts.outcomes import Failed
from autopost_runtime.http import HttpAnswer
from msgspec import Struct

from autopost_adapters.classify import Rule, classify, snippet_of, unreadable, wait_asked, with_answer
from autopost_adapters.max.classify import RULES, UPLOAD_RULES

T = TypeVar("T")

PAUSE_MS = 1000
"""After a 429 that names no time; nobody has seen MAX name one."""


class Body(Struct, frozen=True):
    mid: str


class Message(Struct, frozen=True):
    body: Body


class Sent(Struct, frozen=True):
    message: Message


class Refusal(Struct, frozen=True):
    code: str = ""
    message: str = ""


_sent = msgspec.json.Decoder(Sent).decode
_refusal = msgspec.json.Decoder(Refusal).decode


def read(answer: HttpAnswer) -> str | Failed:
    """The id of the message that was sent."""
    told = parse(answer, _sent)
    return told if isinstance(told, Failed) else told.message.body.mid


def parse(answer: HttpAnswer, decode: Callable[[bytes], T], rules: Sequence[Rule] = RULES) -> T | Failed:
    if answer.status != 200:
        return with_answer(_refused(answer, rules), answer)
    try:
        return decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return with_answer(unreadable(answer), answer)


def parse_upload(answer: HttpAnswer, decode: Callable[[bytes], T]) -> T | Failed:
    """Of a host that takes uploads."""
    return parse(answer, decode, UPLOAD_RULES)


def _refused(answer: HttpAnswer, rules: Sequence[Rule]) -> Failed:
    try:
        told = _refusal(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        told = Refusal()
    return classify(
        rules,
        answer.status,
        f"{told.code} {told.message}".strip(),
        retry_after_ms=_wait(answer),
        snippet=snippet_of(answer),
    )


def _wait(answer: HttpAnswer) -> int | None:
    asked = wait_asked(answer) if answer.status in (429, 503) else None
    return PAUSE_MS if asked is None and answer.status == 429 else asked
