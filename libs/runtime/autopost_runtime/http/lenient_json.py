"""Read JSON of platforms whatever is wrong in it, as a value that Postgres can store.

Lone surrogates, NUL and control characters, NaN and huge numbers are accepted: characters that cannot be stored are
replaced, numbers that cannot be stored become strings. For JSON of senders there is ``strict_json``.
"""

import json
import math
import re
from typing import Any

from autopost_runtime.http.strict_json import zeros_of

MOST_DIGITS = 18
MOST_ZEROS = 64
"""Of a number with an exponent; one with more stays text, because the database would write all of them."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def read(body: bytes) -> Any:
    """Raises ``ValueError`` or ``RecursionError``."""
    return _storable(_decoder.decode(body.decode("utf-8-sig", "replace")))


def storable_text(text: str) -> str:
    """Postgres stores no NUL, and UTF-8 has no lone surrogates."""
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def _storable(value: Any) -> Any:
    match value:
        case str():
            return storable_text(value)
        case dict():
            return {_storable(key): _storable(inner) for key, inner in value.items()}
        case list():
            return [_storable(inner) for inner in value]
        case _:
            return value


def _whole(digits: str) -> int | str:
    return int(digits) if len(digits.removeprefix("-")) <= MOST_DIGITS else digits


def _real(digits: str) -> float | str:
    number = float(digits)
    return number if math.isfinite(number) and zeros_of(number) <= MOST_ZEROS else digits


_decoder = json.JSONDecoder(parse_int=_whole, parse_float=_real, parse_constant=lambda name: None, strict=False)
