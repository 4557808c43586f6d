"""Sanitise responses of platforms: every string and number is bounded and storable in Postgres.

All platforms use it. A malformed value is dropped or replaced; the outcome of its call is kept.
"""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from autopost_runtime.http import lenient_json

LONGEST_ID = 512
LONGEST_TOKEN = 4096
LONGEST_TEXT = 4000
"""Above the limit of redaction, so that redaction knows when a text goes on beyond its limit."""
LONGEST_WAIT_MS = 10**15
"""Far above the cap of a wait, so that the event shows the requested value."""
LONGEST_LENIENT = 64 * 1024
"""The largest response, in bytes, that gets a second, slower parse."""

T = TypeVar("T")

_ALTERED = re.compile("[\x00\ud800-\udfff\ufffd]")


def storable(text: str, longest: int = LONGEST_TEXT) -> str:
    return lenient_json.storable_text(text[:longest])


def words(value: Any) -> str:
    """A text of the platform for people; empty for anything but a string."""
    return storable(value) if isinstance(value, str) else ""


def identifier(value: Any) -> str | None:
    """The platform's id of a message, a chat or a bot; ``None`` when the value is not an id."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = f"{value:.0f}" if isinstance(value, float) else str(value)
    return storable(text, LONGEST_ID) or None


def token(value: Any) -> str | None:
    """An id that is sent back to the platform. It must stay unchanged, so one that cannot be stored is ``None``."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_TOKEN or _ALTERED.search(value):
        return None
    return value


def wait_ms(seconds: Any) -> int | None:
    """The requested wait in milliseconds; ``None`` when the value is not a number of seconds."""
    if isinstance(seconds, str):
        text = seconds.strip()
        seconds = int(text[: lenient_json.MOST_DIGITS + 1]) if text.isascii() and text.isdigit() else None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        return None
    return LONGEST_WAIT_MS if seconds >= LONGEST_WAIT_MS / 1000 else int(seconds * 1000)


def http_status(code: Any, otherwise: int) -> int:
    """The error code of a response body when it is a valid error status, else ``otherwise``."""
    return code if isinstance(code, int) and 400 <= code <= 599 else otherwise


def reader(kind: type[T]) -> Callable[[bytes], T]:
    """Returns a decoder of responses; it raises ``msgspec.DecodeError`` and nothing else."""
    decode = msgspec.json.Decoder(kind).decode

    def read(body: bytes) -> T:
        try:
            return decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return msgspec.convert(_leniently(body), kind)

    return read


def _leniently(body: bytes) -> Any:
    """Also accepts lone surrogates, huge numbers, NaN and control characters."""
    if len(body) > LONGEST_LENIENT:
        raise msgspec.DecodeError("too long for the lenient parser")
    try:
        return lenient_json.read(body)
    except (ValueError, RecursionError):
        raise msgspec.DecodeError("not valid JSON") from None
