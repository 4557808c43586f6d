"""Parse the text of an environment variable by the type of its field.

An error says what was expected. It shows the value only where that cannot contain a secret: never for a ``Secret``
and never for a URL, which may contain a password.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from urllib.parse import parse_qs, urlsplit

import msgspec

from autopost_runtime.fetch.addresses import Networks, Ports

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, None: 1}
_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"0", "false", "no", "off"})


def is_host(name: str) -> bool:
    """Whether it can be resolved: a resolver raises on an empty or a too long label."""
    try:
        return bool(name) and not re.search(r"\s", name) and bool(name.encode("idna"))
    except UnicodeError:
        return False


class InvalidValue(Exception):  # noqa: N818  named for what happened
    """The text is invalid for this type; the message says what is valid."""


@dataclass(frozen=True)
class Url:
    """Marks a text field as a URL with certain schemes; with ``off``, the text "off" means not set."""

    schemes: tuple[str, ...]
    example: str
    several: bool = False
    off: bool = False

    def check(self, text: str) -> str:
        for one in text.split(",") if self.several else [text]:
            self._check_one(one.strip())
        return text

    def _check_one(self, text: str) -> None:
        expected = f"expected a URL like {self.example}"
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError:
            raise InvalidValue(f"the host or port cannot be read; {expected}") from None
        if parts.scheme not in self.schemes:
            raise InvalidValue(f"the scheme is not {' or '.join(self.schemes)}; {expected}")
        if port == 0 or not (parts.hostname or "host" in parse_qs(parts.query)):
            raise InvalidValue(f"the host is missing; {expected}")
        if parts.scheme in ("http", "https") and not is_host(parts.hostname or ""):
            raise InvalidValue(f"the host is not a valid host name; {expected}")


@dataclass(frozen=True)
class Named:
    """A second variable name of a field; the field's own name is read too.

    ``unit`` is the unit of a duration when the name contains it, so that the text is a bare number.
    """

    name: str
    unit: str = ""


def parse(text: str, kind: Any, special: dict[type, Callable[[str], Any]]) -> Any:
    """``None`` only for an optional field. ``special`` has the parsers of further types."""
    bare, marks, optional = unwrap(kind)
    url = next((mark for mark in marks if isinstance(mark, Url)), None)
    if optional and (text == "" or (url and url.off and text == "off")):
        return None
    if text == "":
        raise InvalidValue("must not be empty")
    value = url.check(text) if url else _read(text, bare, special)
    for mark in marks:
        if isinstance(mark, msgspec.Meta):
            _check_bounds(value, mark)
    return value


def unwrap(kind: Any) -> tuple[Any, tuple[Any, ...], bool]:
    """The bare type, its annotations, and whether ``None`` is allowed."""
    marks: tuple[Any, ...] = ()
    optional = False
    while True:
        origin = get_origin(kind)
        if origin is Annotated:
            kind, *more = get_args(kind)
            marks += tuple(more)
        elif origin in (Union, UnionType) and NoneType in get_args(kind):
            (kind,) = (member for member in get_args(kind) if member is not NoneType)
            optional = True
        else:
            return kind, marks, optional


def show_duration(value: timedelta) -> str:
    seconds = value.total_seconds()
    return f"{seconds * 1000:g}ms" if 0 < seconds < 1 else f"{seconds:g}s"


def _read(text: str, kind: Any, special: dict[type, Callable[[str], Any]]) -> Any:
    if get_origin(kind) is Literal:
        return _choice(text, get_args(kind))
    if kind in special:
        return special[kind](text)
    reader = _READERS.get(kind)
    if reader is None:
        raise TypeError(f"config fields of type {kind!r} are not supported")
    return reader(text)


def _choice(text: str, choices: tuple[str, ...]) -> str:
    if text not in choices:
        raise InvalidValue(f"expected one of {', '.join(choices)}, got {_shown(text)}")
    return text


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidValue(f"expected a whole number, got {_shown(text)}") from None


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InvalidValue(f"expected a number, got {_shown(text)}") from None
    if value != value or value in (float("inf"), float("-inf")):
        raise InvalidValue(f"expected a finite number, got {_shown(text)}")
    return value


def _switch(text: str) -> bool:
    if text.lower() in _YES:
        return True
    if text.lower() in _NO:
        return False
    raise InvalidValue(f"expected true or false, got {_shown(text)}")


def _duration(text: str) -> timedelta:
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise InvalidValue(f"expected a duration like 250ms, 30s, 5m, 2h or 7d, got {_shown(text)}")
    try:
        return timedelta(seconds=float(match[1]) * _UNITS[match[2]])
    except OverflowError:
        raise InvalidValue(f"the duration {_shown(text)} is too long") from None


def _networks(text: str) -> Networks:
    try:
        return tuple(ip_network(one.strip()) for one in text.split(","))
    except ValueError:
        raise InvalidValue(f"expected networks like 10.1.0.0/16,fd00::/8, got {_shown(text)}") from None


def _ports(text: str) -> Ports:
    ports = frozenset(_whole(one.strip()) for one in text.split(","))
    if not all(0 < port < 65536 for port in ports):
        raise InvalidValue(f"expected ports like 80,443, got {_shown(text)}")
    return ports


_READERS: dict[Any, Callable[[str], Any]] = {
    str: str,
    int: _whole,
    float: _number,
    bool: _switch,
    timedelta: _duration,
    Path: lambda text: Path(text).expanduser(),
    Networks: _networks,
    Ports: _ports,
}


def _check_bounds(value: Any, meta: msgspec.Meta) -> None:
    measured = value.total_seconds() if isinstance(value, timedelta) else value
    unit = " seconds" if isinstance(value, timedelta) else ""
    checks = (
        (meta.ge, "at least", lambda bound: measured >= bound),
        (meta.gt, "more than", lambda bound: measured > bound),
        (meta.le, "at most", lambda bound: measured <= bound),
        (meta.lt, "less than", lambda bound: measured < bound),
        (meta.min_length, "a length of at least", lambda bound: len(value) >= bound),
        (meta.max_length, "a length of at most", lambda bound: len(value) <= bound),
        (meta.pattern, "text that matches", lambda bound: re.search(bound, value) is not None),
    )
    for bound, words, holds in checks:
        if bound is not None and not holds(bound):
            raise InvalidValue(f"expected {words} {bound}{unit}")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")
