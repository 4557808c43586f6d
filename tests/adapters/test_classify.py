"""What each platform's refusals mean, row by row."""

import msgspec
import pytest
from autopost_adapters.max import classify as max_
from autopost_adapters.telegram import classify as telegram
from autopost_contracts.outcomes import Failed
from autopost_runtime.http import HttpAnswer

TELEGRAM = [
    (400, "Bad Request: chat not found", "PERMANENT", "channel", "chat_not_found"),
    (400, "Bad Request: need administrator rights in the channel chat", "PERMANENT", "channel", "no_rights"),
    (400, "Bad Request: not enough rights to send photos to the chat", "PERMANENT", "channel", "no_rights"),
    (400, "Bad Request: CHAT_WRITE_FORBIDDEN", "PERMANENT", "channel", "no_rights"),
    (400, "Bad Request: message thread not found", "PERMANENT", "channel", "thread_not_found"),
    (400, "Bad Request: group chat was upgraded to a supergroup chat", "TRANSIENT", "delivery", "chat_migrated"),
    (400, "Bad Request: message is too long", "PERMANENT", "delivery", "message_too_long"),
    (400, "Bad Request: message text is empty", "PERMANENT", "delivery", "message_empty"),
    (400, "Bad Request: can't parse entities: Unsupported start tag", "PERMANENT", "delivery", "markup_invalid"),
    (400, "Bad Request: BUTTON_URL_INVALID", "PERMANENT", "delivery", "buttons_invalid"),
    (400, "Bad Request: wrong file identifier/HTTP URL specified", "TRANSIENT", "delivery", "media_expired"),
    (400, "Bad Request: never seen before", "PERMANENT", "delivery", "bad_request"),
    (401, "Unauthorized", "PERMANENT", "channel", "unauthorized"),
    (403, "Forbidden: bot was kicked from the channel chat", "PERMANENT", "channel", "bot_kicked"),
    (403, "Forbidden: bot is not a member of the channel chat", "PERMANENT", "channel", "not_a_member"),
    (403, "Forbidden: bot was blocked by the user", "PERMANENT", "channel", "bot_blocked"),
    (403, "Forbidden: user is deactivated", "PERMANENT", "channel", "forbidden"),
    (404, "Not Found", "PERMANENT", "channel", "not_found"),
    (409, "Conflict: terminated by other getUpdates request", "TRANSIENT", "platform", "conflict"),
    (413, "Request Entity Too Large", "PERMANENT", "delivery", "too_large"),
    (429, "Too Many Requests: retry after 5", "TRANSIENT", "platform", "rate_limited"),
    (500, "Internal Server Error", "TRANSIENT", "platform", "http_500"),
]

MAX = [
    (401, "verify.token", "Invalid access_token", "PERMANENT", "channel", "unauthorized"),
    (403, "verify.token", "Invalid access_token", "PERMANENT", "channel", "unauthorized"),
    (403, "chat.denied", "Key: error.dialog.suspended, args: [1,].", "PERMANENT", "channel", "chat_denied"),
    (403, "chat.denied", "Forwarding messages is prohibited", "PERMANENT", "delivery", "forward_forbidden"),
    (404, "chat.not.found", "Chat with user 1 not found", "PERMANENT", "channel", "chat_not_found"),
    (404, "dialog.not.found", "error.dialog.notfound", "PERMANENT", "channel", "chat_not_found"),
    (400, "attachment.not.ready", "…file.not.processed", "TRANSIENT", "delivery", "attachment.not.ready"),
    (400, "proto.payload", "…attachment.movie.not.owner", "TRANSIENT", "platform", "media_not_owned"),
    (400, "proto.payload", "text: size must be between 0 and 4000", "PERMANENT", "delivery", "message_too_long"),
    (400, "proto.payload", "Missing `token` in video attachment", "PERMANENT", "delivery", "bad_request"),
    (429, "too.many.requests", "slow down", "TRANSIENT", "platform", "rate_limited"),
    (500, "internal.error", "id 1", "TRANSIENT", "platform", "http_500"),
    (503, "", "", "TRANSIENT", "platform", "http_503"),
]


@pytest.mark.parametrize(("status", "description", "category", "scope", "code"), TELEGRAM)
def test_telegram_refusals(status: int, description: str, category: str, scope: str, code: str) -> None:
    body = msgspec.json.encode({"ok": False, "error_code": status, "description": description})

    failed = telegram.read(HttpAnswer(status, {}, body))

    assert isinstance(failed, Failed)
    assert (failed.category, failed.scope, failed.code) == (category, scope, code)


@pytest.mark.parametrize(("status", "word", "message", "category", "scope", "code"), MAX)
def test_max_refusals(status: int, word: str, message: str, category: str, scope: str, code: str) -> None:
    body = msgspec.json.encode({"code": word, "message": message})

    failed = max_.read(HttpAnswer(status, {}, body))

    assert isinstance(failed, Failed)
    assert (failed.category, failed.scope, failed.code) == (category, scope, code)


def test_a_wait_asked_for_in_seconds_comes_out_in_milliseconds() -> None:
    body = msgspec.json.encode(
        {"ok": False, "error_code": 429, "description": "Too Many Requests", "parameters": {"retry_after": 14}}
    )

    assert telegram.read(HttpAnswer(429, {}, body)).retry_after_ms == 14_000  # type: ignore[union-attr]
    assert max_.read(HttpAnswer(429, {"Retry-After": "3"}, b"")).retry_after_ms == 3_000  # type: ignore[union-attr]
    assert max_.read(HttpAnswer(429, {}, b"")).retry_after_ms == 1_000  # type: ignore[union-attr]


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"ok": true}', b'{"message": {}}', b"\xff\xfe"])
def test_a_success_that_cannot_be_read_may_have_been_accepted(body: bytes) -> None:
    for read in (telegram.read, max_.read):
        failed = read(HttpAnswer(200, {}, body))
        assert isinstance(failed, Failed)
        assert failed.ambiguous
