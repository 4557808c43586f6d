"""What each platform's refusals mean, row by row: all that its simulator can say, and what was only heard of."""

from typing import Any

import msgspec
import pytest
from autopost_adapters.classify import Rule, classify
from autopost_adapters.max import answers as max_
from autopost_adapters.telegram import answers as telegram
from autopost_contracts.outcomes import Category, Failed, Scope
from autopost_runtime.http.client import HttpAnswer
from autopost_simulator.catalogue import entry_reply, names

CHANNEL, DELIVERY, PLATFORM = "channel", "delivery", "platform"
P, T = "PERMANENT", "TRANSIENT"

NOT_SENT_BY_US = [
    "cant_parse_json",
    "boundary_not_found",
    "parameter_is_required",
    "message_to_be_replied_not_found",
    "message_to_edit_not_found",
    "message_cant_be_edited",
    "no_text_to_edit",
    "no_caption_to_edit",
    "message_is_not_modified",
    "message_to_delete_not_found",
    "message_cant_be_deleted",
    "message_identifier_is_not_specified",
    "invalid_user_id",
    "participant_id_invalid",
    "cant_parse_message_entity",
    "object_expected_as_reply_markup",
    "keyboard_must_be_an_array",
    "keyboard_must_be_arrays",
    "cant_use_button_in_channel",
    "user_link_in_button",
    "query_is_too_old",
]
"""About editing, deleting, members, or a request that makes no sense: our mistake, if it ever comes."""

CATALOGUE = {
    **{f"telegram.{name}": (P, DELIVERY, "bad_request") for name in NOT_SENT_BY_US},
    "telegram.not_found": (P, CHANNEL, "unauthorized"),
    "telegram.method_not_found": (P, PLATFORM, "method_not_found"),
    "telegram.unauthorized": (P, CHANNEL, "unauthorized"),
    "telegram.unallowed_token": (P, PLATFORM, "token_unallowed"),
    "telegram.chat_id_is_empty": (P, CHANNEL, "chat_not_found"),
    "telegram.chat_not_found": (P, CHANNEL, "chat_not_found"),
    "telegram.private_chat_not_found": (P, CHANNEL, "chat_not_found"),
    "telegram.bot_was_kicked": (P, CHANNEL, "bot_kicked"),
    "telegram.bot_is_not_a_member": (P, CHANNEL, "not_a_member"),
    "telegram.bot_was_blocked": (P, CHANNEL, "bot_blocked"),
    "telegram.cant_initiate_conversation": (P, CHANNEL, "not_started"),
    "telegram.user_is_deactivated": (P, CHANNEL, "user_deactivated"),
    "telegram.group_was_deleted": (P, CHANNEL, "chat_deleted"),
    "telegram.need_administrator_rights": (P, CHANNEL, "no_rights"),
    "telegram.not_enough_rights": (P, CHANNEL, "no_rights"),
    "telegram.have_no_write_access": (P, CHANNEL, "no_rights"),
    "telegram.chat_write_forbidden": (P, CHANNEL, "no_rights"),
    "telegram.message_thread_not_found": (P, CHANNEL, "thread_not_found"),
    "telegram.topic_closed": (P, CHANNEL, "thread_not_found"),
    "telegram.message_text_is_empty": (P, DELIVERY, "message_empty"),
    "telegram.message_is_too_long": (P, DELIVERY, "message_too_long"),
    "telegram.edited_message_is_too_long": (P, DELIVERY, "message_too_long"),
    "telegram.text_is_too_long": (P, DELIVERY, "message_too_long"),
    "telegram.message_caption_is_too_long": (P, DELIVERY, "message_too_long"),
    "telegram.media_caption_too_long": (P, DELIVERY, "message_too_long"),
    "telegram.unsupported_parse_mode": (P, DELIVERY, "markup_invalid"),
    "telegram.cant_parse_entities": (P, DELIVERY, "markup_invalid"),
    "telegram.cant_parse_media_json": (P, DELIVERY, "album_invalid"),
    "telegram.expected_an_array_of_media": (P, DELIVERY, "album_invalid"),
    "telegram.cant_parse_input_media": (P, DELIVERY, "album_invalid"),
    "telegram.cant_parse_reply_markup": (P, DELIVERY, "buttons_invalid"),
    "telegram.cant_parse_button": (P, DELIVERY, "buttons_invalid"),
    "telegram.button_url_invalid": (P, DELIVERY, "buttons_invalid"),
    "telegram.button_url_is_wrong": (P, DELIVERY, "buttons_invalid"),
    "telegram.button_text_must_be_non_empty": (P, DELIVERY, "buttons_invalid"),
    "telegram.button_type_invalid": (P, DELIVERY, "buttons_invalid"),
    "telegram.button_copy_text_invalid": (P, DELIVERY, "buttons_invalid"),
    "telegram.button_data_invalid": (P, DELIVERY, "buttons_invalid"),
    "telegram.reply_markup_is_too_long": (P, DELIVERY, "buttons_invalid"),
    "telegram.there_is_no_file": (P, DELIVERY, "media_empty"),
    "telegram.file_must_be_non_empty": (P, DELIVERY, "media_empty"),
    "telegram.file_id_not_specified": (P, DELIVERY, "media_empty"),
    "telegram.photo_is_too_big": (P, DELIVERY, "media_too_large"),
    "telegram.file_is_too_big": (P, DELIVERY, "media_too_large"),
    "telegram.entity_too_large": (P, DELIVERY, "media_too_large"),
    "telegram.wrong_file_identifier": (T, DELIVERY, "media_expired"),
    "telegram.wrong_remote_file_identifier": (T, DELIVERY, "media_expired"),
    "telegram.cant_use_file_of_type": (T, DELIVERY, "media_expired"),
    "telegram.invalid_file_id": (T, DELIVERY, "media_expired"),
    "telegram.file_temporarily_unavailable": (T, DELIVERY, "media_expired"),
    "telegram.invalid_file_url": (P, DELIVERY, "media_url_refused"),
    "telegram.wrong_url": (P, DELIVERY, "media_url_refused"),
    "telegram.failed_to_get_url_content": (P, DELIVERY, "media_url_refused"),
    "telegram.wrong_type_of_web_page": (P, DELIVERY, "media_url_refused"),
    "telegram.image_process_failed": (P, DELIVERY, "media_invalid"),
    "telegram.photo_invalid_dimensions": (P, DELIVERY, "media_dimensions"),
    "telegram.there_are_no_messages": (P, DELIVERY, "album_invalid"),
    "telegram.too_many_messages": (P, DELIVERY, "album_invalid"),
    "telegram.cant_be_mixed": (P, DELIVERY, "album_invalid"),
    "telegram.cant_use_media_in_album": (P, DELIVERY, "album_invalid"),
    "telegram.captions_placed_differently": (P, DELIVERY, "album_invalid"),
    "telegram.group_send_failed": (P, DELIVERY, "album_invalid"),
    "telegram.failed_to_send_item": (P, DELIVERY, "album_refused"),
    "telegram.terminated_by_other_get_updates": (T, PLATFORM, "conflict"),
    "telegram.webhook_is_active": (T, PLATFORM, "conflict"),
    "telegram.internal_server_error": (T, PLATFORM, "http_500"),
    "telegram.bad_gateway": (T, PLATFORM, "http_502"),
    "telegram.gateway_timeout": (T, PLATFORM, "http_504"),
    "max.verify_token": (P, CHANNEL, "unauthorized"),
    "max.chat_denied": (P, CHANNEL, "chat_denied"),
    "max.forwarding_prohibited": (P, DELIVERY, "forward_forbidden"),
    "max.no_write_right": (P, CHANNEL, "chat_denied"),
    "max.chat_not_found": (P, CHANNEL, "chat_not_found"),
    "max.user_chat_not_found": (P, CHANNEL, "chat_not_found"),
    "max.dialog_not_found": (P, CHANNEL, "chat_not_found"),
    "max.message_not_found": (P, DELIVERY, "message_not_found"),
    "max.not_found": (P, PLATFORM, "method_not_found"),
    "max.method_not_allowed": (P, PLATFORM, "method_not_allowed"),
    "max.webhook_is_set": (P, PLATFORM, "method_not_allowed"),
    "max.attachment_not_ready": (T, DELIVERY, "attachment.not.ready"),
    "max.media_not_ready": (T, DELIVERY, "attachment.not.ready"),
    "max.text_too_long": (P, DELIVERY, "message_too_long"),
    "max.missing_token": (P, DELIVERY, "attachments_invalid"),
    "max.no_photos": (P, DELIVERY, "attachments_invalid"),
    "max.movie_not_owner": (T, PLATFORM, "media_not_owned"),
    "max.media_not_owner": (T, DELIVERY, "media_expired"),
    "max.token_unknown": (T, DELIVERY, "media_expired"),
    "max.media_not_supported": (P, DELIVERY, "media_unsupported"),
    "max.payload": (P, DELIVERY, "bad_request"),
    "max.web_app_null": (P, DELIVERY, "buttons_invalid"),
    "max.extension_forbidden": (P, DELIVERY, "media_unsupported"),
    "max.upload_unknown": (T, DELIVERY, "upload_refused"),
    "max.upload_used": (P, DELIVERY, "upload_refused"),
    "max.upload_too_large": (P, DELIVERY, "media_too_large"),
    "max.upload_pieces_missing": (P, DELIVERY, "upload_refused"),
    "max.internal_error": (T, PLATFORM, "http_500"),
    "max.service_unavailable": (T, PLATFORM, "http_503"),
    "max.too_many_requests": (T, PLATFORM, "rate_limited"),
}
OF_UPLOAD_HOSTS = ("max.extension_forbidden", "max.upload_")

HEARD_OF = [
    (400, "Bad Request: not enough rights to send photos to the chat", P, CHANNEL, "no_rights"),
    (403, "Forbidden: CHAT_SEND_PHOTOS_FORBIDDEN", P, CHANNEL, "no_rights"),
    (400, "Bad Request: CHAT_ADMIN_REQUIRED", P, CHANNEL, "no_rights"),
    (400, "Bad Request: CHAT_RESTRICTED", P, CHANNEL, "no_rights"),
    (400, "Bad Request: CHANNEL_PRIVATE", P, CHANNEL, "no_rights"),
    (403, "Forbidden: somebody is unhappy", P, CHANNEL, "forbidden"),
    (400, "Bad Request: group chat was upgraded to a supergroup chat", T, DELIVERY, "chat_migrated"),
    (400, "Bad Request: FILE_REFERENCE_EXPIRED", T, DELIVERY, "media_expired"),
    (400, "Bad Request: can't parse InputMedia: Can't parse entities: oh", P, DELIVERY, "markup_invalid"),
    (400, "Bad Request: never seen before", P, DELIVERY, "bad_request"),
    (429, "Too Many Requests: retry after 5", T, PLATFORM, "rate_limited"),
]

MAX_HEARD_OF = [
    (403, "verify.token", "Invalid access_token", P, CHANNEL, "unauthorized"),
    (
        400,
        "attachment.not.ready",
        "Key: errors.process.attachment.video.not.processed",
        T,
        DELIVERY,
        "attachment.not.ready",
    ),
    (400, "proto.payload", "attachments: size must be between 0 and 12", P, DELIVERY, "attachments_invalid"),
    (400, "proto.payload", "buttons: at most 3 buttons are allowed in this row", P, DELIVERY, "buttons_invalid"),
    (400, "proto.payload", "never seen before", P, DELIVERY, "bad_request"),
]


def verdict(failed: object) -> tuple[str, str, str]:
    assert isinstance(failed, Failed)
    return failed.category, failed.scope, failed.code


def telegram_says(description: str, status: int = 400, **parameters: Any) -> Failed:
    body = {"ok": False, "error_code": status, "description": description, "parameters": parameters}
    failed = telegram.read(HttpAnswer(status, {}, msgspec.json.encode(body)))
    assert isinstance(failed, Failed)
    return failed


def test_every_refusal_that_a_simulator_knows_has_a_meaning_here() -> None:
    assert set(names()) == set(CATALOGUE)


@pytest.mark.parametrize("name", CATALOGUE)
def test_what_a_refusal_of_the_catalogue_means(name: str) -> None:
    reply = entry_reply(name, None)
    answer = HttpAnswer(reply.status, reply.headers, reply.body)
    read: Any = telegram.read if name.startswith("telegram.") else max_.read
    if name.startswith(OF_UPLOAD_HOSTS):
        read = lambda answer: max_.parse_upload(answer, msgspec.json.decode)  # noqa: E731

    failed = read(answer)

    assert verdict(failed) == CATALOGUE[name]
    assert failed.ambiguous == (reply.status >= 500)


@pytest.mark.parametrize(("status", "description", "category", "scope", "code"), HEARD_OF)
def test_telegram_refusals_that_were_only_heard_of(
    status: int, description: str, category: str, scope: str, code: str
) -> None:
    assert verdict(telegram_says(description, status)) == (category, scope, code)


@pytest.mark.parametrize(("status", "word", "message", "category", "scope", "code"), MAX_HEARD_OF)
def test_max_refusals_that_were_only_heard_of(
    status: int, word: str, message: str, category: str, scope: str, code: str
) -> None:
    body = msgspec.json.encode({"code": word, "message": message})

    assert verdict(max_.read(HttpAnswer(status, {}, body))) == (category, scope, code)


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("WEBPAGE_MEDIA_EMPTY", (P, DELIVERY, "album_refused")),
        ("PHOTO_INVALID_DIMENSIONS", (P, DELIVERY, "album_refused")),
        ("MEDIA_CAPTION_TOO_LONG", (P, DELIVERY, "message_too_long")),
        ("Wrong file identifier/HTTP URL specified", (T, DELIVERY, "media_expired")),
        ("FILE_REFERENCE_EXPIRED", (T, DELIVERY, "media_expired")),
        ("CHAT_WRITE_FORBIDDEN", (P, CHANNEL, "no_rights")),
        ("never seen before", (P, DELIVERY, "album_refused")),
    ],
)
def test_an_album_is_judged_by_what_is_wrong_with_its_item_and_tells_which_one(
    inner: str, expected: tuple[str, str, str]
) -> None:
    failed = telegram_says(f'Bad Request: failed to send message #7 with the error message "{inner}"')

    assert verdict(failed) == expected
    assert "#7" in failed.message
    assert inner in failed.message


def test_where_a_chat_has_moved_is_told() -> None:
    moved = telegram_says("Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=-100200)

    assert (moved.code, moved.migrated_to) == ("chat_migrated", "-100200")


def test_a_wait_asked_for_in_seconds_comes_out_in_milliseconds() -> None:
    assert telegram_says("Too Many Requests: retry after 14", 429, retry_after=14).retry_after_ms == 14_000
    for read in (telegram.read, max_.read):
        asked = read(HttpAnswer(429, {"Retry-After": "3"}, b"<html>slow down</html>"))
        assert verdict(asked) == (T, PLATFORM, "rate_limited")
        assert asked.retry_after_ms == 3_000  # type: ignore[union-attr]


@pytest.mark.parametrize("header", ["Wed, 21 Oct 2026 07:28:00 GMT", "-1", "soon", "²"])
def test_a_wait_that_is_no_number_of_seconds_is_none(header: str) -> None:
    answer = HttpAnswer(503, {"Retry-After": header}, b"")

    assert telegram.read(answer).retry_after_ms is None  # type: ignore[union-attr]
    assert max_.read(answer).retry_after_ms is None  # type: ignore[union-attr]


def test_max_is_given_a_second_when_it_names_no_wait() -> None:
    assert max_.read(HttpAnswer(429, {}, b"")).retry_after_ms == 1_000  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'{"ok": true}', b'{"message": {}}', b"\xff\xfe", b'{"ok": true, "result": []}']
)
def test_a_success_that_cannot_be_read_may_have_been_accepted(body: bytes) -> None:
    for read in (telegram.read, max_.read):
        failed = read(HttpAnswer(200, {}, body))
        assert verdict(failed) == (T, PLATFORM, "unreadable_answer")
        assert failed.ambiguous  # type: ignore[union-attr]


@pytest.mark.parametrize("status", [500, 502, 503, 504, 520])
def test_a_gateway_error_in_html_may_have_been_obeyed(status: int) -> None:
    for read in (telegram.read, max_.read):
        failed = read(HttpAnswer(status, {}, b"<html><h1>Bad Gateway</h1></html>"))
        assert verdict(failed) == (T, PLATFORM, f"http_{status}")
        assert failed.ambiguous  # type: ignore[union-attr]


def test_a_redirect_was_not_obeyed_and_may_be_gone_soon() -> None:
    for read in (telegram.read, max_.read):
        failed = read(HttpAnswer(302, {"Location": "https://elsewhere.example/"}, b""))
        assert verdict(failed) == (T, PLATFORM, "redirected")
        assert not failed.ambiguous  # type: ignore[union-attr]


@pytest.mark.parametrize("body", ["x" * 2_000, "я" * 2_000, '{"code": "' + "я" * 2_000])
@pytest.mark.parametrize("status", [200, 400, 502])
def test_of_a_long_answer_only_the_beginning_is_kept(status: int, body: str) -> None:
    for read in (telegram.read, max_.read):
        failed = read(HttpAnswer(status, {}, body.encode()))
        assert isinstance(failed, Failed)
        assert failed.raw["status"] == status
        assert failed.raw["snippet"] == body[:500]


def test_the_first_rule_that_fits_decides_and_the_status_alone_comes_last() -> None:
    rules = (
        Rule(404, "room", Category.PERMANENT, Scope.CHANNEL, "room_gone"),
        Rule(None, "ROOM|later", Category.TRANSIENT, Scope.DELIVERY, "later"),
    )

    assert classify(rules, 404, "no such room").code == "room_gone"
    assert classify(rules, 400, "the room is full").code == "later"
    assert classify(rules, 401, "who are you").code == "unauthorized"
    assert verdict(classify(rules, 418, "tea")) == (P, DELIVERY, "http_418")
