"""Which rules match a text in a state, and which of them wins.

Passes run one after the other, each only if the one before found nothing: exact, typo (rules with ``fuzzy``), layout
(rules with ``layout``). Within a pass the order is total: priority, then the longest keyword that was found, then
``rule_id``, then the newer version. So the order in which a database returns the rules never decides.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from autopost_bot.engine.accept import chosen, read_value
from autopost_bot.engine.keywords import Keyword, Word
from autopost_bot.engine.normal_form import as_russian_layout, normal_form
from autopost_bot.engine.rules import Rule
from autopost_bot.engine.ruleset import Ruleset

Pass = Literal["exact", "typo", "layout"]


class Hit(Struct, frozen=True):
    rule: Rule
    keywords: tuple[str, ...] = ()
    """As they stand in the rule, the longest first."""
    length: int = 0
    """Letters of the longest one."""
    value: str | None = None
    """What a capture takes."""


class Match(Struct, frozen=True):
    hits: tuple[Hit, ...] = ()
    """The winner first."""
    refused: tuple[Hit, ...] = ()
    """Rules of the state that would match but do not accept the text as their value."""
    by: Pass = "exact"


def match(ruleset: Ruleset, state: str | None, text: str, attachments: tuple[str, ...] = ()) -> Match:
    """Rules of this state and global ones; with ``None`` only global ones."""
    said = normal_form(text)
    refused: tuple[Hit, ...] = ()
    for by, found, heard in _passes(ruleset, said, text):
        hits = _hits(ruleset, state, found, heard, text if by == "exact" else None)
        accepted, refused_now = _judged(ruleset, hits, text, attachments)
        refused = refused or refused_now
        if accepted:
            return Match(accepted, refused, by)
    return Match((), refused)


def _passes(ruleset: Ruleset, said: str, text: str) -> Iterator[tuple[Pass, Iterable[Keyword], str]]:
    yield "exact", ruleset.index.found_in(said), said
    if ruleset.has_typo_pass:
        yield "typo", ruleset.typo_index.found_in(said), said
    if ruleset.has_layout_pass and (heard := as_russian_layout(text)):
        by_layout = (one for one in ruleset.index.found_in(heard) if ruleset.rules[one.rule].pattern.layout)
        yield "layout", by_layout, heard


def _hits(ruleset: Ruleset, state: str | None, found: Iterable[Keyword], said: str, text: str | None) -> list[Hit]:
    """In the order in which they win. ``text`` only in the first pass, for rules that match without keywords."""
    keywords: dict[int, dict[str, int]] = {}
    for keyword in found:
        keywords.setdefault(keyword.rule, {})[keyword.written] = len(keyword.letters)
    if text is not None:
        keywords.update((n, {}) for n in _without_keywords(ruleset, text))
    words = said.split(" ")
    hits = [
        _hit(ruleset.rules[n], lengths)
        for n, lengths in sorted(keywords.items())
        if ruleset.rules[n].state in (None, state) and not _is_stopped(ruleset.stops[n], words)
    ]
    return sorted(hits, key=lambda hit: (-hit.rule.priority, -hit.length, hit.rule.rule_id, -hit.rule.version))


def _without_keywords(ruleset: Ruleset, text: str) -> Iterator[int]:
    yield from ruleset.any_rules
    for n in ruleset.choice_rules:
        if chosen(ruleset.options[ruleset.rules[n].rule_id], text) is not None:
            yield n


def _hit(rule: Rule, lengths: dict[str, int]) -> Hit:
    written = sorted(lengths, key=lambda keyword: (-lengths[keyword], keyword))
    return Hit(rule, tuple(written), max(lengths.values(), default=0))


def _is_stopped(stops: tuple[tuple[Word, ...], ...], words: list[str]) -> bool:
    return any(_spelled(stop, words) for stop in stops)


def _spelled(stop: tuple[Word, ...], words: list[str]) -> bool:
    return any(
        all(mine.matches(word) for mine, word in zip(stop, words[place:], strict=False))
        for place in range(len(words) - len(stop) + 1)
    )


def _judged(
    ruleset: Ruleset, hits: list[Hit], text: str, attachments: tuple[str, ...]
) -> tuple[tuple[Hit, ...], tuple[Hit, ...]]:
    accepted: list[Hit] = []
    refused: list[Hit] = []
    for hit in hits:
        value = _value(ruleset, hit.rule, text, attachments)
        if hit.rule.capture is None or value is not None:
            accepted.append(Hit(hit.rule, hit.keywords, hit.length, value))
        else:
            refused.append(hit)
    return tuple(accepted), tuple(refused)


def _value(ruleset: Ruleset, rule: Rule, text: str, attachments: tuple[str, ...]) -> str | None:
    if rule.capture is None:
        return None
    if rule.pattern.mode == "choice" and rule.accept is None:
        return chosen(ruleset.options[rule.rule_id], text)
    return read_value(rule.accept, text, attachments)
