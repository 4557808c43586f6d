"""What Telegram's refusals mean. Its 400 is often about the channel, so the description decides."""

import msgspec
from autopost_contracts.outcomes import Category, Failed, Scope
from autopost_runtime.http import HttpAnswer
from msgspec import Struct

from autopost_adapters.classify import Rule, classify, unreadable

P, T = Category.PERMANENT, Category.TRANSIENT
CHANNEL, DELIVERY, PLATFORM = Scope.CHANNEL, Scope.DELIVERY, Scope.PLATFORM

RULES = (
    Rule(400, "upgraded to a supergroup", T, DELIVERY, "chat_migrated"),
    Rule(400, "chat not found", P, CHANNEL, "chat_not_found"),
    Rule(400, "need administrator rights|not enough rights|have no (write access|rights)", P, CHANNEL, "no_rights"),
    Rule(400, "CHAT_WRITE_FORBIDDEN|CHAT_ADMIN_REQUIRED|CHANNEL_PRIVATE|CHAT_RESTRICTED", P, CHANNEL, "no_rights"),
    Rule(400, "message thread not found|TOPIC_CLOSED|TOPIC_DELETED", P, CHANNEL, "thread_not_found"),
    Rule(
        400,
        "message is too long|text is too long|caption is too long|MESSAGE_TOO_LONG",
        P,
        DELIVERY,
        "message_too_long",
    ),
    Rule(400, "text is empty|text must be non-empty", P, DELIVERY, "message_empty"),
    Rule(400, "can't parse entities|unsupported parse_mode", P, DELIVERY, "markup_invalid"),
    Rule(400, "BUTTON_|reply markup|inline keyboard", P, DELIVERY, "buttons_invalid"),
    Rule(400, "wrong file identifier|FILE_REFERENCE_", T, DELIVERY, "media_expired"),
    Rule(400, "", P, DELIVERY, "bad_request"),
    Rule(401, "", P, CHANNEL, "unauthorized"),
    Rule(403, "kicked", P, CHANNEL, "bot_kicked"),
    Rule(403, "not a member", P, CHANNEL, "not_a_member"),
    Rule(403, "blocked", P, CHANNEL, "bot_blocked"),
    Rule(409, "", T, PLATFORM, "conflict"),
)


class Parameters(Struct, frozen=True):
    retry_after: int | None = None
    migrate_to_chat_id: int | None = None


class Message(Struct, frozen=True):
    message_id: int


class Answer(Struct, frozen=True):
    ok: bool
    result: Message | None = None
    error_code: int | None = None
    description: str = ""
    parameters: Parameters = Parameters()


_decode = msgspec.json.Decoder(Answer).decode


def read(answer: HttpAnswer) -> Message | Failed:
    try:
        told = _decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _without_json(answer)
    if told.ok and told.result is not None:
        return told.result
    if told.ok:
        return unreadable(answer.status, answer.body)
    wait, moved = told.parameters.retry_after, told.parameters.migrate_to_chat_id
    failed = classify(
        RULES,
        told.error_code or answer.status,
        told.description,
        retry_after_ms=None if wait is None else wait * 1000,
        snippet=told.description,
    )
    return failed if moved is None else msgspec.structs.replace(failed, migrated_to=str(moved))


def _without_json(answer: HttpAnswer) -> Failed:
    """A gateway in between answered, in HTML or not at all."""
    if 200 <= answer.status < 300:
        return unreadable(answer.status, answer.body)
    return classify(RULES, answer.status, "", snippet=answer.body[:500].decode("utf-8", "replace"))
