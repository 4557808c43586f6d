"""What MAX's refusals mean. There is no official list of codes: these are documented or were seen."""

import msgspec
from autopost_contracts.outcomes import Category, Failed, Scope
from autopost_runtime.http import HttpAnswer
from msgspec import Struct

from autopost_adapters.classify import Rule, classify, unreadable

P, T = Category.PERMANENT, Category.TRANSIENT
CHANNEL, DELIVERY, PLATFORM = Scope.CHANNEL, Scope.DELIVERY, Scope.PLATFORM

RULES = (
    Rule(None, "attachment.not.ready|not.processed", T, DELIVERY, "attachment.not.ready"),
    Rule(None, "verify.token", P, CHANNEL, "unauthorized"),
    Rule(403, "Forwarding messages", P, DELIVERY, "forward_forbidden"),
    Rule(403, "chat.denied", P, CHANNEL, "chat_denied"),
    Rule(None, "(chat|dialog).not.?found", P, CHANNEL, "chat_not_found"),
    Rule(400, "movie.not.owner", T, PLATFORM, "media_not_owned"),
    Rule(400, "size must be between", P, DELIVERY, "message_too_long"),
    Rule(400, "", P, DELIVERY, "bad_request"),
)


class Body(Struct, frozen=True):
    mid: str


class Message(Struct, frozen=True):
    body: Body


class Answer(Struct, frozen=True):
    message: Message


class Refusal(Struct, frozen=True):
    code: str = ""
    message: str = ""


_decode = msgspec.json.Decoder(Answer).decode
_refusal = msgspec.json.Decoder(Refusal).decode


def read(answer: HttpAnswer) -> Message | Failed:
    if answer.status == 200:
        try:
            return _decode(answer.body).message
        except (msgspec.DecodeError, UnicodeDecodeError):
            return unreadable(answer.status, answer.body)
    try:
        told = _refusal(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        told = Refusal()
    return classify(
        RULES,
        answer.status,
        f"{told.code} {told.message}".strip(),
        retry_after_ms=_wait(answer),
        snippet=answer.body[:500].decode("utf-8", "replace"),
    )


def _wait(answer: HttpAnswer) -> int | None:
    """Only a 429 or 503 may ask for one; MAX documents no header, so its absence is the usual case."""
    seconds = answer.headers.get("Retry-After", "")
    if answer.status == 429:
        return int(seconds) * 1000 if seconds.isdigit() else 1000
    return int(seconds) * 1000 if answer.status == 503 and seconds.isdigit() else None
