"""Parse the responses of MAX. An error may come as text, or without a body."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
from autopost_contracts.outcomes import Failed
from autopost_runtime.http.client import HttpAnswer
from msgspec import Struct

from autopost_adapters.answers import identifier, reader, words
from autopost_adapters.classify import Rule, classify, of_upload_host, snippet_of, unreadable, wait_asked, with_answer
from autopost_adapters.max.classify import RULES, UPLOAD_RULES

T = TypeVar("T")

PAUSE_MS = 1000
"""The wait after a 429 without Retry-After; MAX was never seen to send one."""


class MessageBody(Struct, frozen=True):
    mid: Any


class SentMessage(Struct, frozen=True):
    body: MessageBody


class SendResponse(Struct, frozen=True):
    message: SentMessage


class ErrorResponse(Struct, frozen=True):
    code: Any = ""
    message: Any = ""


_sent = reader(SendResponse)
_refusal = reader(ErrorResponse)


def read(answer: HttpAnswer) -> str | Failed:
    """The id of the message that was sent."""
    response = parse(answer, _sent)
    if isinstance(response, Failed):
        return response
    return identifier(response.message.body.mid) or with_answer(unreadable(answer), answer)


def parse(answer: HttpAnswer, decode: Callable[[bytes], T], rules: Sequence[Rule] = RULES) -> T | Failed:
    if answer.status != 200:
        return with_answer(_refused(answer, rules), answer)
    try:
        return decode(answer.body)
    except msgspec.DecodeError:
        return with_answer(unreadable(answer), answer)


def parse_upload(answer: HttpAnswer, decode: Callable[[bytes], T]) -> T | Failed:
    """Parse the response of an upload host."""
    read = parse(answer, decode, UPLOAD_RULES)
    return of_upload_host(read) if isinstance(read, Failed) else read


def _refused(answer: HttpAnswer, rules: Sequence[Rule]) -> Failed:
    try:
        error = _refusal(answer.body)
    except msgspec.DecodeError:
        error = ErrorResponse()
    return classify(
        rules,
        answer.status,
        f"{words(error.code)} {words(error.message)}".strip(),
        retry_after_ms=_wait(answer),
        snippet=snippet_of(answer),
    )


def _wait(answer: HttpAnswer) -> int | None:
    asked = wait_asked(answer) if answer.status in (429, 503) else None
    return PAUSE_MS if asked is None and answer.status == 429 else asked
