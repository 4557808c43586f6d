"""Strict JSON: refuse documents that two parsers could read differently, or that the database cannot store.

NUL and unpaired surrogates cannot be stored, duplicate keys lose a value, NaN and numbers over 64 bits change, and deep
nesting overflows a stack. The first such place is named in the error.
"""

import json
import math
import re
from typing import Any

from autopost_runtime.secrets.redaction import quoted

MAX_DEPTH = 32
MAX_KEYS = 1000
MAX_VALUES = 50_000
"""Numbers, strings, arrays and objects together: each takes memory in every process that parses the body."""
MAX_DIGITS = 18
"""Longest integer that always fits into 64 bits."""
MAX_ZEROS = 100_000
"""Of all numbers with an exponent: the database writes 1e308 as 309 digits, so 256 KiB of them come back as 13 MB."""

HINT = "workspace_id"
MAX_HINT_LENGTH = 64
"""Characters. Senders use workspace ids of their own, so a hint is cut and never refused."""
MAX_PATH_LENGTH = 200

_BOM = b"\xef\xbb\xbf"
_NUL = re.compile("\x00")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPE_WORTH_A_LOOK = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


class InvalidJson(Exception):  # noqa: N818  named for what it is
    """``place`` is a path like ``meta.a[0]``; empty when the whole body is wrong."""

    def __init__(self, reason: str, place: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place[:MAX_PATH_LENGTH]


class _Invalid:
    """Marks a refused value in the parsed tree."""

    def __init__(self, reason: str, key: str | None = None, *, is_number: bool = False) -> None:
        self.reason = reason
        self.key = key
        self.is_number = is_number
        """Of too many digits, or out of range."""


def check_json(body: bytes) -> None:
    """Raises ``InvalidJson``."""
    text = _text(body)
    parser = _parser
    try:
        tree = parser.read(text)
    except json.JSONDecodeError as exc:
        raise InvalidJson(f"the body is not valid JSON: {exc.msg} at line {exc.lineno}, column {exc.colno}") from None
    except RecursionError:
        raise InvalidJson(f"must not be nested deeper than {MAX_DEPTH} levels") from None
    if parser.zeros > MAX_ZEROS:
        raise InvalidJson(f"numbers of the body must not have more than {MAX_ZEROS} digits without their exponents")
    if parser.keys > MAX_KEYS:
        raise InvalidJson(f"the body must not have more than {MAX_KEYS} keys")
    if text.count(",") >= MAX_VALUES and _has_too_many_values(tree):
        raise InvalidJson(f"the body must not have more than {MAX_VALUES} values")
    deep = text.count("[") + text.count("{") > MAX_DEPTH
    if parser.found or deep or _ESCAPE_WORTH_A_LOOK.search(text):
        _check(tree, "", 0)


def _has_too_many_values(tree: Any) -> bool:
    found, left = 1, [tree]
    while left:
        inner = left.pop()
        values = inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else ()
        found += len(values)
        if found > MAX_VALUES:
            return True
        left += [value for value in values if isinstance(value, list | dict)]
    return False


def _text(body: bytes) -> str:
    if body.startswith(_BOM):
        raise InvalidJson("the body starts with a byte order mark; send UTF-8 without it")
    try:
        return body.decode()
    except UnicodeDecodeError as exc:
        raise InvalidJson(f"the body is not valid UTF-8 at byte {exc.start}") from None


class _StrictParser:
    """Parses and marks refused values. Their path is computed only when there is one."""

    def __init__(self) -> None:
        self.found = False
        self.keys = 0
        self.zeros = 0
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._object, parse_int=self._whole, parse_float=self._real, parse_constant=self._constant
        )

    def read(self, text: str) -> Any:
        """Raises ``JSONDecodeError``."""
        self.found, self.keys, self.zeros = False, 0, 0
        if text.startswith("{"):
            tree, end = self._decoder.raw_decode(text)
            if end == len(text):
                return tree
            self.found, self.keys, self.zeros = False, 0, 0
        return self._decoder.decode(text)

    def _object(self, pairs: list[tuple[str, Any]]) -> Any:
        self.keys += len(pairs)
        known: dict[str, Any] = {}
        for key, value in pairs:
            if key in known:
                return self._odd("duplicate key", key)
            known[key] = value
        return known

    def _whole(self, digits: str) -> Any:
        if len(digits.removeprefix("-")) > MAX_DIGITS:
            self.found = True
            return _Invalid(f"integers must not have more than {MAX_DIGITS} digits", is_number=True)
        return 0

    def _real(self, digits: str) -> Any:
        if math.isfinite(number := float(digits)):
            self.zeros += zeros_of(number)
            return 0.0
        self.found = True
        return _Invalid("number is out of range", is_number=True)

    def _constant(self, name: str) -> Any:
        return self._odd(f"{name} is not valid JSON")

    def _odd(self, reason: str, key: str | None = None) -> _Invalid:
        self.found = True
        return _Invalid(reason, key)


_parser = _StrictParser()
"""Shared: creating a parser takes longer than parsing a small body. Parsing never awaits, so there is one user."""


def zeros_of(number: float) -> int:
    """About how many digits the database adds when it writes the number without an exponent."""
    return abs(math.frexp(number)[1]) * 3 // 10


def _is_number(value: Any) -> bool:
    return isinstance(value, _Invalid) and value.is_number


def _check(value: Any, place: str, depth: int) -> None:
    match value:
        case _Invalid():
            raise InvalidJson(value.reason, place if value.key is None else _path(place, value.key))
        case str():
            _check_text(value, place)
        case dict():
            _check_depth(depth, place)
            for key, inner in value.items():
                _check_text(key, _path(place, key))
                if not (depth == 0 and key == HINT and _is_number(inner)):
                    _check(inner, _path(place, key), depth + 1)
        case list():
            _check_depth(depth, place)
            for index, inner in enumerate(value):
                _check(inner, f"{place}[{index}]", depth + 1)
        case _:
            return  # numbers, true, false, null


def _check_text(text: str, place: str) -> None:
    if _NUL.search(text):
        raise InvalidJson("the NUL character is not allowed", place)
    if _SURROGATE.search(text):
        raise InvalidJson("unpaired surrogate; send valid Unicode", place)


def _check_depth(depth: int, place: str) -> None:
    if depth >= MAX_DEPTH:
        raise InvalidJson(f"must not be nested deeper than {MAX_DEPTH} levels", place)


def _path(place: str, key: str) -> str:
    return f"{place}.{quoted(key)}" if place else quoted(key)
