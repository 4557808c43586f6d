"""Reading the log: which entries a reader asked for."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import msgspec

from autopost_simulator.journal import Journal

BATCH = 500
_FILTERS = ("platform", "chat", "method", "token", "verdict", "fault")
_NUMBERS = ("after", "limit", "last")


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


@dataclass(frozen=True, slots=True)
class LogQuery:
    """``last`` counts from the end and gives newest entries only, still oldest first."""

    after: int | None
    limit: int | None
    last: int | None
    wanted: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "LogQuery":
        unknown = [name for name in query if name not in _FILTERS + _NUMBERS]
        if unknown:
            raise QueryError(f"`{unknown[0]}` is not a filter of the log: {', '.join(_FILTERS + _NUMBERS)}")
        after, limit, last = (whole_number(query, name) for name in _NUMBERS)
        return cls(after, limit, last, tuple((name, query[name].lower()) for name in _FILTERS if name in query))

    def batches(self, journal: Journal) -> Iterator[bytes]:
        """Perhaps empty ones: a reader of a long log lets others run between two."""
        if self.last is not None:
            newest = list(islice(filter(self._asked_for, journal.newest()), self.last))
            yield b"".join(reversed(newest))
            return
        lines = journal.read(self.after)
        left = sys.maxsize if self.limit is None else self.limit
        while left > 0 and (batch := list(islice(lines, BATCH))):
            kept = list(filter(self._asked_for, batch))[:left]
            left -= len(kept)
            yield b"".join(kept)

    def _asked_for(self, line: bytes) -> bool:
        if not self.wanted:
            return True
        entry = _decode(line)
        return all((getattr(entry, name) or "").lower() == value for name, value in self.wanted)
