"""Resolve entities that overlap, as the server does.

Bold, italic, underline, strikethrough and spoiler are split wherever another entity begins or ends, and removed
inside code. Links, mentions and the other continuous entities exclude each other: the first wins. A quote can contain
all of them but is not crossed.
"""

from itertools import pairwise

from autopost_simulator.telegram.markup.span import Span, in_order

_SPLITTABLE = ("bold", "italic", "underline", "strikethrough", "spoiler")
_QUOTES = ("blockquote", "expandable_blockquote")
_VERBATIM = ("pre", "code", "date_time")


def resolve(spans: list[Span]) -> list[Span]:
    spans = in_order(spans)
    if _is_simple(spans):
        return spans
    splittable, quotes, continuous = _by_class(spans)
    return _combined(splittable, _first_of_each(quotes), _first_of_each(continuous))


def merge(spans: list[Span], found: list[Span]) -> list[Span]:
    """Add entities found in the text where none of the author's is in the way."""
    if not found:
        return spans
    splittable, quotes, continuous = _by_class(spans)
    found = _not_crossing(found, quotes)
    free = [one for one in found if not any(one.begin < given.end and given.begin < one.end for given in continuous)]
    return _combined(splittable, quotes, in_order(continuous + free))


def _is_simple(spans: list[Span]) -> bool:
    """True when no span touches the next one."""
    return all(one.end < following.begin for one, following in pairwise(spans))


def _by_class(spans: list[Span]) -> tuple[list[Span], list[Span], list[Span]]:
    splittable = [span for span in spans if span.kind in _SPLITTABLE]
    quotes = [span for span in spans if span.kind in _QUOTES]
    return splittable, quotes, [span for span in spans if span.kind not in _SPLITTABLE + _QUOTES]


def _first_of_each(spans: list[Span]) -> list[Span]:
    kept: list[Span] = []
    for span in spans:
        if not kept or span.begin >= kept[-1].end:
            kept.append(span)
    return kept


def _combined(splittable: list[Span], quotes: list[Span], continuous: list[Span]) -> list[Span]:
    others = in_order(_not_crossing(continuous, quotes) + quotes)
    return in_order(others + _split(splittable, others))


def _not_crossing(spans: list[Span], quotes: list[Span]) -> list[Span]:
    return [span for span in spans if not any(_crosses(span, quote) for quote in quotes)]


def _crosses(span: Span, quote: Span) -> bool:
    apart = span.end <= quote.begin or quote.end <= span.begin
    within = quote.begin <= span.begin and span.end <= quote.end
    return not apart and not within


def _split(splittable: list[Span], others: list[Span]) -> list[Span]:
    """Pieces of the union of each kind, cut at the borders of the others and of the splittable ones before them."""
    if not splittable:
        return []
    splitter = _Splitter(splittable)
    open_: list[Span] = []
    for other in others:
        splitter.close(open_, other.begin)
        open_.append(other)
    splitter.close(open_, None)
    return in_order(splitter.pieces)


class _Splitter:
    def __init__(self, splittable: list[Span]) -> None:
        self._waiting = splittable[::-1]
        self._running: dict[str, tuple[int, int]] = {}
        self.pieces: list[Span] = []

    def close(self, open_: list[Span], until: int | None) -> None:
        """Cut at the ends of the others that are over, then at ``until``; ``None`` is the end of the text."""
        while open_ and (until is None or until >= open_[-1].end):
            over = open_.pop()
            kept = len(self.pieces)
            self._advance(over.end)
            if over.kind in _VERBATIM:
                del self.pieces[kept:]
        self._advance(until)

    def _advance(self, until: int | None) -> None:
        while self._waiting and (until is None or self._waiting[-1].begin < until):
            span = self._waiting.pop()
            begin, end = self._running.get(span.kind, (0, -1))
            if span.begin <= end:
                self._running[span.kind] = begin, max(end, span.end)
            else:
                self._cut(span.begin)
                self._running[span.kind] = span.begin, span.end
        self._cut(until)

    def _cut(self, at: int | None) -> None:
        for kind in _SPLITTABLE:
            begin, end = self._running.get(kind, (0, 0))
            if kind not in self._running or (at is not None and begin >= at):
                continue
            if at is None or end <= at:
                self.pieces.append(Span(kind, begin, end))
                del self._running[kind]
            else:
                self.pieces.append(Span(kind, begin, at))
                self._running[kind] = at, end
