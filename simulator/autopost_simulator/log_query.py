"""Queries of the log: filters and position."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

import msgspec

from autopost_simulator.journal import INDEX_EVERY, Journal

BATCH = INDEX_EVERY
_FILTERS = ("platform", "chat", "method", "token", "verdict", "fault")
_NUMBERS = ("after", "limit", "last")
_KNOWN = (*_FILTERS, *_NUMBERS, "follow")


class QueryError(Exception):
    """Names the parameter."""


class _Filtered(msgspec.Struct):
    platform: str
    chat: str | None
    method: str
    token: str
    verdict: str
    fault: str | None


_decode = msgspec.json.Decoder(_Filtered).decode


def whole_number(query: Mapping[str, str], name: str) -> int | None:
    given = query.get(name)
    if given is None:
        return None
    if not (given.isascii() and given.isdigit()):
        raise QueryError(f"`{name}` must be a whole number, not {given!r}")
    return int(given)


def flag(query: Mapping[str, str], name: str) -> bool:
    given = query.get(name, "0")
    if given not in ("0", "1"):
        raise QueryError(f"`{name}` must be 1 or 0, not {given!r}")
    return given == "1"


def refuse_unknown(query: Mapping[str, str], *known: str) -> None:
    for name in query:
        if name not in known:
            raise QueryError(f"unknown parameter `{name}`; known are {', '.join(known)}")


@dataclass(frozen=True, slots=True)
class LogQuery:
    """``last``: only the newest entries, still oldest first."""

    after: int | None
    limit: int | None
    last: int | None
    follow: bool
    wanted: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "LogQuery":
        refuse_unknown(query, *_KNOWN)
        after, limit, last = (whole_number(query, name) for name in _NUMBERS)
        wanted = tuple((name, query[name].lower()) for name in _FILTERS if name in query)
        return cls(after, limit, last, flag(query, "follow"), wanted)

    def asks_for(self, line: bytes) -> bool:
        if not self.wanted:
            return True
        entry = _decode(line)
        return all((getattr(entry, name) or "").lower() == value for name, value in self.wanted)


class LogReader:
    """A reader of the log: its position, and how many entries it may still return."""

    def __init__(self, query: LogQuery, journal: Journal) -> None:
        self._query = query
        self._journal = journal
        self._left = sys.maxsize if query.limit is None else query.limit
        self.position = journal.start if query.after is None else query.after

    @property
    def finished(self) -> bool:
        return self._left <= 0

    def take_newest(self, count: int) -> bytes:
        """The newest ``count`` entries in memory; later reads continue after them."""
        asked_for = filter(self._query.asks_for, self._journal.newest())
        self.position = self._journal.last
        return self._give(list(islice(asked_for, min(count, self._left)))[::-1])

    def take(self) -> bytes:
        """The next batch; it may be empty, so that reading a long log does not block others."""
        lines, self.position = self._journal.read(self.position, BATCH)
        return self._give([line for line in lines if self._query.asks_for(line)][: self._left])

    def _give(self, lines: list[bytes]) -> bytes:
        self._left -= len(lines)
        return b"".join(lines)
