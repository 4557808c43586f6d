"""What a platform answers, made fit to be kept: every string and number is bounded, and a database can store it.

One place for all platforms. An odd answer costs at most what it says: never the outcome that it belongs to.
"""

import json
import math
import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

LONGEST_ID = 512
LONGEST_TOKEN = 4096
LONGEST_TEXT = 4000
"""More than redaction looks at, so it knows that what it looks at goes on."""
LONGEST_WAIT_MS = 10**15
"""Far beyond the cap of a wait, so that the event shows what was asked."""
LONGEST_LENIENT = 64 * 1024
"""Bytes of an answer that are read a second time, slowly."""
MOST_DIGITS = 18

T = TypeVar("T")

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT = "\ufffd"
_ALTERED = re.compile("[\x00\ud800-\udfff\ufffd]")


def storable(text: str, longest: int = LONGEST_TEXT) -> str:
    """Postgres stores no NUL, and UTF-8 has no lone surrogates."""
    return _UNSTORABLE.sub(_REPLACEMENT, text[:longest])


def words(value: Any) -> str:
    """Of a platform, for people to read; anything but a text is none."""
    return storable(value) if isinstance(value, str) else ""


def identifier(value: Any) -> str | None:
    """What the platform calls a message, a chat or a bot; ``None`` when it names nothing."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = f"{value:.0f}" if isinstance(value, float) else str(value)
    return storable(text, LONGEST_ID) or None


def token(value: Any) -> str | None:
    """What something is sent again by: only exactly as it was given, so one that cannot be kept is none."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_TOKEN or _ALTERED.search(value):
        return None
    return value


def wait_ms(seconds: Any) -> int | None:
    """A wait as it was asked for, in milliseconds; ``None`` for what is no number of seconds."""
    if isinstance(seconds, str):
        text = seconds.strip()
        seconds = int(text[: MOST_DIGITS + 1]) if text.isascii() and text.isdigit() else None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        return None
    return LONGEST_WAIT_MS if seconds >= LONGEST_WAIT_MS / 1000 else int(seconds * 1000)


def http_status(told: Any, otherwise: int) -> int:
    """An error's number as a body tells it, where it can be the number of an error."""
    return told if isinstance(told, int) and 400 <= told <= 599 else otherwise


def reader(kind: type[T]) -> Callable[[bytes], T]:
    """Reads an answer as ``kind``; raises ``msgspec.DecodeError`` and nothing else."""
    decode = msgspec.json.Decoder(kind).decode

    def read(body: bytes) -> T:
        try:
            return decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return msgspec.convert(_leniently(body), kind)

    return read


def _leniently(body: bytes) -> Any:
    """What JSON allows and few readers take: lone surrogates, endless numbers, NaN, control characters."""
    if len(body) > LONGEST_LENIENT:
        raise msgspec.DecodeError("too long to be read twice")
    try:
        return _clean(_decoder.decode(body.decode("utf-8-sig", "replace")))
    except (ValueError, RecursionError):
        raise msgspec.DecodeError("not valid JSON") from None


def _clean(value: Any) -> Any:
    match value:
        case str():
            return _UNSTORABLE.sub(_REPLACEMENT, value)
        case dict():
            return {_clean(key): _clean(inner) for key, inner in value.items()}
        case list():
            return [_clean(inner) for inner in value]
        case _:
            return value


def _whole(digits: str) -> int | str:
    return int(digits) if len(digits.removeprefix("-")) <= MOST_DIGITS else digits


def _real(digits: str) -> float | str:
    return number if math.isfinite(number := float(digits)) else digits


_decoder = json.JSONDecoder(parse_int=_whole, parse_float=_real, parse_constant=lambda name: None, strict=False)
