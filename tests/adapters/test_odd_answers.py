"""Whatever a platform answers, what is made of it is bounded and can be stored, and an acceptance stays one."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from autopost_adapters.answers import LONGEST_ID, LONGEST_TEXT, LONGEST_WAIT_MS
from autopost_adapters.max import answers as max_
from autopost_adapters.max.find import find
from autopost_adapters.max.upload import upload
from autopost_adapters.telegram import answers as telegram
from autopost_adapters.telegram.send import TelegramAdapter
from autopost_contracts.outcomes import Failed
from autopost_contracts.plan import PlannedMedia, TextPart
from autopost_runtime.http.client import HttpAnswer
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.max_parts import TARGET
from adapters.media_sources import Bytes

Read = Callable[[HttpAnswer], Any]

DAY_MS = 24 * 60 * 60 * 1000
PICTURE = PlannedMedia(type="image", blob_ref="sha256:x", content_type="image/png", name="picture.png")


def _max_sent(mid: str) -> bytes:
    return b'{"message":{"body":{"mid":%s,"text":"x"},"stat":null}}' % mid.encode()


def _telegram_sent(message_id: str) -> bytes:
    return b'{"ok":true,"result":{"message_id":%s,"photo":[]}}' % message_id.encode()


ODD_IDS = {
    "a NUL": (r'"mid.\u0000a"', "mid.\ufffda"),
    "a lone surrogate": (r'"mid.\ud800a"', "mid.\ufffda"),
    "not UTF-8": ('"mid.\udcff"', None),
    "a control character": ('"mid.\x01"', "mid.\x01"),
    "very long": (f'"{"m" * 900_000}"', "m" * LONGEST_ID),
    "a number": ("17", "17"),
    "a number with a point": ("17.0", "17"),
    "a huge number": ("1" + "0" * 30, "1" + "0" * 30),
    "an endless number": ("9" * 5_000, "9" * LONGEST_ID),
    "a text of digits": ('"17"', "17"),
}


@pytest.mark.parametrize("odd", ODD_IDS)
def test_what_was_accepted_under_an_odd_id_is_accepted_under_a_storable_one(odd: str) -> None:
    written, expected = ODD_IDS[odd]
    bodies = [sent(written) for sent in (_ascii_safe(_max_sent), _ascii_safe(_telegram_sent))]

    named = max_.read(HttpAnswer(200, {}, bodies[0]))
    messages = telegram.read(HttpAnswer(200, {}, bodies[1]))

    assert not isinstance(named, Failed)
    assert not isinstance(messages, Failed)
    assert named == next(one.message_id for one in messages)
    assert expected in (None, named)
    assert_storable(named)


def _ascii_safe(sent: Callable[[str], bytes]) -> Callable[[str], bytes]:
    """As a platform would write it that lets bytes through which are no text."""
    return lambda written: sent("@").replace(b"@", written.encode("utf-8", "surrogateescape"))


@pytest.mark.parametrize("nothing", ["null", "true", '""', "{}", "[]"])
def test_an_acceptance_that_names_nothing_is_in_doubt(nothing: str) -> None:
    for answer in (
        max_.read(HttpAnswer(200, {}, _max_sent(nothing))),
        telegram.read(HttpAnswer(200, {}, _telegram_sent(nothing))),
    ):
        assert isinstance(answer, Failed)
        assert (answer.code, answer.ambiguous) == ("unreadable_answer", True)


def test_an_acceptance_is_not_lost_over_what_else_it_says() -> None:
    odd = b'{"ok":true,"result":[{"message_id":1,"photo":"none"},{"message_id":2,"video":[{}],"x":1e999}]}'

    messages = telegram.read(HttpAnswer(200, {}, odd))

    assert not isinstance(messages, Failed)
    assert [one.message_id for one in messages] == ["1", "2"]


def test_an_album_names_as_many_messages_as_an_album_has() -> None:
    many = ",".join(f'{{"message_id":{number}}}' for number in range(telegram.MOST_OBJECTS - 1))

    messages = telegram.read(HttpAnswer(200, {}, f'{{"ok":true,"result":[{many}]}}'.encode()))

    assert not isinstance(messages, Failed)
    assert [one.message_id for one in messages] == [str(number) for number in range(telegram.MOST_MESSAGES)]


def test_an_answer_of_very_many_objects_is_not_read() -> None:
    """Reading it would take as long as sending hundreds of posts."""
    many = ",".join(["{}"] * telegram.MOST_OBJECTS)

    answer = telegram.read(HttpAnswer(200, {}, f'{{"ok":true,"result":{{"message_id":1,"x":[{many}]}}}}'.encode()))

    assert isinstance(answer, Failed)
    assert answer.ambiguous


@pytest.mark.parametrize("file_id", [r"a\u0000b", r"a\ud800b", "f" * 5_000, ""])
def test_a_file_id_that_cannot_be_kept_as_it_is_is_not_kept(file_id: str) -> None:
    photo = f'{{"file_id":"{file_id}","width":1,"height":1}}'
    body = f'{{"ok":true,"result":{{"message_id":1,"photo":[{photo}]}}}}'

    messages = telegram.read(HttpAnswer(200, {}, body.encode()))

    assert not isinstance(messages, Failed)
    assert telegram.held([PICTURE], messages) == (None,)


WAITS = {
    "a day": (str(DAY_MS // 1000), DAY_MS),
    "nine digits": ("999999999", 999_999_999_000),
    "2e13": ("20000000000000", LONGEST_WAIT_MS),
    "endless": ("9" * 5_000, LONGEST_WAIT_MS),
}


@pytest.mark.parametrize("asked", WAITS)
def test_what_was_asked_for_stands_in_the_outcome_and_is_bounded(asked: str) -> None:
    written, expected = WAITS[asked]
    in_header = {"Retry-After": written}
    in_body = b'{"ok":false,"error_code":429,"description":"","parameters":{"retry_after":%s}}' % written.encode()

    answers = [
        telegram.read(HttpAnswer(429, {}, in_body)),
        telegram.read(HttpAnswer(429, in_header, b"<html>")),
        telegram.read(HttpAnswer(429, in_header, b'{"ok":false,"error_code":429,"description":""}')),
        max_.read(HttpAnswer(429, in_header, b"{}")),
        max_.read(HttpAnswer(503, in_header, b"")),
    ]

    for one in answers:
        assert isinstance(one, Failed)
        # An endless number is a text by then: as good as the header's.
        assert one.retry_after_ms == expected


@pytest.mark.parametrize("wait", ["-1", "null", "true", "{}", '"soon"', "NaN"])
def test_a_wait_that_is_none_does_not_hide_what_was_refused(wait: str) -> None:
    asked = f'"parameters":{{"retry_after":{wait}}}'
    body = f'{{"ok":false,"error_code":400,"description":"chat not found",{asked}}}'

    answer = telegram.read(HttpAnswer(400, {}, body.encode()))

    assert isinstance(answer, Failed)
    assert (answer.code, answer.retry_after_ms) == ("chat_not_found", None)


@pytest.mark.parametrize("number", ["0", "-5", "200", "99999999999", '"x"', "[]"])
def test_an_error_number_that_is_none_does_not_become_a_code(number: str) -> None:
    body = f'{{"ok":false,"error_code":{number},"description":"odd"}}'

    answer = telegram.read(HttpAnswer(400, {}, body.encode()))

    assert isinstance(answer, Failed)
    assert answer.code == "bad_request"


@pytest.mark.parametrize("size", [10_000, 900_000])
def test_a_long_description_is_cut(size: int) -> None:
    words = "CHAT_" * (size // 5)
    told = json.dumps({"ok": False, "error_code": 400, "description": words}).encode()
    said = json.dumps({"code": "proto.payload", "message": words}).encode()

    for answer in (telegram.read(HttpAnswer(400, {}, told)), max_.read(HttpAnswer(400, {}, said))):
        assert isinstance(answer, Failed)
        assert len(answer.message) <= LONGEST_TEXT


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=True)
    | st.text(st.characters(codec=None), max_size=20)  # type: ignore[arg-type]  # lone surrogates too
    | st.sampled_from(["a\x00b", "\ud800", 2 * 10**13, 10**400, "x" * 3000])
)
ODD: st.SearchStrategy[Any] = st.recursive(LEAVES, lambda one: st.lists(one, max_size=3), max_leaves=4)


@settings(max_examples=300)
@given(st.data(), st.sampled_from([200, 400, 403, 429, 500, 503]))
def test_no_answer_makes_a_reader_raise_or_lets_through_what_cannot_be_stored(data: st.DataObject, status: int) -> None:
    def odd(sound: Any) -> Any:
        return data.draw(st.just(sound) | ODD)

    told = {
        "ok": odd(status == 200),
        "result": odd({"message_id": odd(1), "photo": odd([{"file_id": odd("f"), "width": odd(1)}])}),
        "error_code": odd(status),
        "description": odd("Bad Request: chat not found"),
        "parameters": odd({"retry_after": odd(3), "migrate_to_chat_id": odd(-5)}),
    }
    said = {"message": odd({"body": odd({"mid": odd("m")})}), "code": odd("chat.denied")}
    headers = {"Retry-After": str(odd("7"))}

    assert_storable(telegram.read(HttpAnswer(status, headers, json.dumps(told).encode())))
    assert_storable(max_.read(HttpAnswer(status, headers, json.dumps(said).encode())))


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"ok":' + b"[" * 50_000, b"\xff\xfe", b"", b"null", b"\x00" * 50])
@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("read", [telegram.read, max_.read], ids=["telegram", "max"])
def test_garbage_is_an_outcome(read: Read, status: int, body: bytes) -> None:
    answer = read(HttpAnswer(status, {}, body))

    assert isinstance(answer, Failed)
    assert_storable(answer)


class Answering:
    """An HTTP client that gets the same answer to everything."""

    def __init__(self, body: bytes, status: int = 200) -> None:
        self._answer = HttpAnswer(status, {}, body)

    @property
    def http(self) -> Any:
        return self

    async def request(self, *_: Any, **__: Any) -> HttpAnswer:
        return self._answer

    async def call(self, *_: Any) -> HttpAnswer:
        return self._answer

    async def hand_over(self, *_: Any) -> HttpAnswer:
        return self._answer


@pytest.mark.parametrize("token", [r'"a\u0000"', r'"\ud800"', "17", "null", '"%s"' % ("t" * 5_000)])
async def test_an_upload_token_that_cannot_be_kept_is_no_token(token: str) -> None:
    body = b'{"url":"http://127.0.0.1:1/","photos":{"a":{"token":%s}}}' % token.encode()

    answer = await upload(Answering(body), PICTURE, Bytes(), TARGET.token)  # type: ignore[arg-type]

    assert isinstance(answer, Failed)
    assert (answer.code, answer.ambiguous) == ("unreadable_answer", False)


async def test_an_odd_message_in_the_chat_is_found_under_a_storable_id() -> None:
    body = rb'{"messages":[{"timestamp":99999999999999,"body":{"mid":"m\u0000","text":"hello"}}]}'
    since = datetime(2026, 1, 1, tzinfo=UTC)

    found = await find(Answering(body), TextPart(text="hello"), TARGET, since, ())  # type: ignore[arg-type]

    assert found is not None
    assert not isinstance(found, Failed)
    assert found.provider_ids == ("m\ufffd",)


@pytest.mark.parametrize("chat", ["²", "--5", "-", "9" * 5_000, "@name"])
async def test_an_odd_address_is_the_platforms_to_refuse(chat: str) -> None:
    refusing = Answering(b'{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}', 400)
    minute = timedelta(minutes=1)
    adapter = TelegramAdapter(refusing, "http://127.0.0.1:1", minute, minute)

    answer = await adapter.send(TextPart(text="hello"), msgspec.structs.replace(TARGET, chat=chat))

    assert isinstance(answer, Failed)
    assert answer.code == "chat_not_found"


def assert_storable(told: Any) -> None:
    for text in _texts(msgspec.to_builtins(told)):
        text.encode()  # no lone surrogate
        assert "\x00" not in text
        assert len(text) <= 4096
    if isinstance(told, Failed) and told.retry_after_ms is not None:
        assert 0 <= told.retry_after_ms <= LONGEST_WAIT_MS


def _texts(value: Any, name: str = "") -> Iterator[str]:
    """But for the body, which goes to the object store alone."""
    match value:
        case str() if name != "body":
            yield value
        case dict():
            for key, inner in value.items():
                yield from _texts(inner, key)
        case list() | tuple():
            for inner in value:
                yield from _texts(inner, name)
