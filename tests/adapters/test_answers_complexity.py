"""To read what a platform answers takes time in step with its length, up to the size that is read."""

from collections.abc import Callable

import pytest
from autopost_adapters.classify import snippet_of, unreadable, with_answer
from autopost_adapters.max import answers as max_answers
from autopost_adapters.telegram import answers as telegram_answers
from autopost_runtime.http.client import ANSWER_LIMIT, HttpAnswer
from harness.growth import assert_linear

Body = Callable[[int], bytes]


def _filled(unit: bytes, before: bytes = b"", after: bytes = b"") -> Body:
    return lambda size: before + unit * ((size - len(before + after)) // len(unit)) + after


BODIES: dict[str, Body] = {
    "open lists": _filled(b"["),
    "digits": _filled(b"9", b'{"ok":true,"result":', b"}"),
    "NULs": _filled(rb"\u0000", b'{"ok":false,"code":"x","message":"', b'"}'),
    "half surrogates": _filled(rb"\ud800", b'{"ok":false,"description":"', b'"}'),
    "bytes that are no text": _filled(b"\xff="),
    "messages": _filled(b'{"message_id":1},', b'{"ok":true,"result":[', b'{"message_id":1}]}'),
    "photos": _filled(b'{"file_id":"a"},', b'{"ok":true,"result":{"message_id":1,"photo":[', b'{"file_id":"a"}]}}'),
    "passwords": _filled(b"://a:", b'{"ok":false,"description":"', b'"}'),
    "tokens": _filled(rb"\"token\":\"", b'{"code":"x","message":"', b'"}'),
    "spaces": _filled(b" ", b"<retval>"),
}
READERS: dict[str, Callable[[HttpAnswer], object]] = {
    "Telegram": telegram_answers.read,
    "MAX": max_answers.read,
    "snippet": snippet_of,
    "kept": lambda answer: with_answer(unreadable(answer), answer),
}


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("body", BODIES)
def test_an_answer_twice_as_long_takes_about_twice_the_time(body: str, reader: str, status: int) -> None:
    make = BODIES[body]

    assert_linear(READERS[reader], lambda size: HttpAnswer(status, {}, make(size)), ANSWER_LIMIT)
