"""JSON that means one thing to every reader: what the next one could take differently, or not at all, is refused.

NUL and half surrogates do not fit into the database, of two equal keys one would win silently, NaN and numbers past
64 bits change on their way, and nesting costs a stack somewhere. The first of them is named by its place.
"""

import json
import math
import re
from typing import Any

DEEPEST = 32
MOST_KEYS = 1000
MOST_DIGITS = 18
"""Of a whole number; it then fits into 64 bits whatever its digits are."""

LONGEST_PLACE = 200

_BOM = b"\xef\xbb\xbf"
_NUL = re.compile("\x00")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPE_WORTH_A_LOOK = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_UNSHOWN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class Trap(Exception):  # noqa: N818  named for what it is
    """``place`` is a path like ``meta.a[0]``; empty when it is the whole body or the words say where."""

    def __init__(self, reason: str, place: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place[:LONGEST_PLACE]


class _Odd:
    """Stands in the tree where something was that may not be there."""

    def __init__(self, reason: str, key: str | None = None) -> None:
        self.reason = reason
        self.key = key


def refuse_traps(body: bytes) -> None:
    """Raises ``Trap``."""
    text = _text(body)
    oddities = _oddities
    try:
        tree = oddities.read(text)
    except json.JSONDecodeError as exc:
        raise Trap(f"the body is not JSON: {exc.msg} in line {exc.lineno}, column {exc.colno}") from None
    except RecursionError:
        raise Trap(f"nested deeper than {DEEPEST} levels") from None
    if oddities.keys > MOST_KEYS:
        raise Trap(f"the body has more than {MOST_KEYS} keys")
    deep = text.count("[") + text.count("{") > DEEPEST
    if oddities.found or deep or _ESCAPE_WORTH_A_LOOK.search(text):
        _look(tree, "", 0)


def _text(body: bytes) -> str:
    if body.startswith(_BOM):
        raise Trap("the body starts with a byte order mark; send plain UTF-8")
    try:
        return body.decode()
    except UnicodeDecodeError as exc:
        raise Trap(f"the body is not UTF-8: byte {exc.start}") from None


class _Oddities:
    """What the parser met on its way, from the leaves up; where it was is found out only when there was something."""

    def __init__(self) -> None:
        self.found = False
        self.keys = 0
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._object, parse_int=self._whole, parse_float=self._real, parse_constant=self._constant
        )

    def read(self, text: str) -> Any:
        """Raises ``JSONDecodeError``."""
        self.found, self.keys = False, 0
        if text.startswith("{"):
            tree, end = self._decoder.raw_decode(text)
            if end == len(text):
                return tree
            self.found, self.keys = False, 0
        return self._decoder.decode(text)

    def _object(self, pairs: list[tuple[str, Any]]) -> Any:
        self.keys += len(pairs)
        known: dict[str, Any] = {}
        for key, value in pairs:
            if key in known:
                return self._odd("this key stands here twice", key)
            known[key] = value
        return known

    def _whole(self, digits: str) -> Any:
        if len(digits.removeprefix("-")) > MOST_DIGITS:
            return self._odd(f"a whole number may have at most {MOST_DIGITS} digits")
        return 0

    def _real(self, digits: str) -> Any:
        return 0.0 if math.isfinite(float(digits)) else self._odd("this number is too large")

    def _constant(self, name: str) -> Any:
        return self._odd(f"{name} is not JSON")

    def _odd(self, reason: str, key: str | None = None) -> _Odd:
        self.found = True
        return _Odd(reason, key)


_oddities = _Oddities()
"""One for all: a parser takes longer to make than to read a small body. Nothing here waits, so it has one user."""


def _look(value: Any, place: str, depth: int) -> None:
    match value:
        case _Odd():
            raise Trap(value.reason, place if value.key is None else _under(place, value.key))
        case str():
            _look_at_text(value, place)
        case dict():
            _go_down(depth, place)
            for key, inner in value.items():
                _look_at_text(key, _under(place, key))
                _look(inner, _under(place, key), depth + 1)
        case list():
            _go_down(depth, place)
            for index, inner in enumerate(value):
                _look(inner, f"{place}[{index}]", depth + 1)
        case _:
            return  # numbers, true, false, null


def _look_at_text(text: str, place: str) -> None:
    if _NUL.search(text):
        raise Trap("the NUL character is not allowed in any text", place)
    if _SURROGATE.search(text):
        raise Trap("half of a surrogate pair is not a character", place)


def _go_down(depth: int, place: str) -> None:
    if depth >= DEEPEST:
        raise Trap(f"nested deeper than {DEEPEST} levels", place)


def _under(place: str, key: str) -> str:
    shown = _UNSHOWN.sub("�", key[:LONGEST_PLACE])
    return f"{place}.{shown}" if place else shown
