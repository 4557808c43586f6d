"""All enabled rules and the settings of a workspace, made ready for matching.

A rule that cannot be read is set aside and named in ``refused``; the others answer.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import cached_property
from hashlib import sha256
from typing import Any

import msgspec

from autopost_bot.engine.intervals import read_interval
from autopost_bot.engine.keywords import Keyword, KeywordIndex, Word, read_keyword, read_words
from autopost_bot.engine.normal_form import normal_form
from autopost_bot.engine.rules import ButtonRow, Rule, RuleButton, Settings
from autopost_bot.engine.turn import DEFAULT_STATE
from autopost_bot.engine.typos import TypoIndex


class InvalidRule(Exception):  # noqa: N818  named for what happened
    """A rule or the settings cannot be read; the message names the field."""


def read_rule(row: Mapping[str, Any]) -> Rule:
    """A row of ``bot_rules`` or an entry of a rules file; columns that are not of the rule are left out."""
    fields = {name: row[name] for name in Rule.__struct_fields__ if row.get(name) is not None}
    try:
        return msgspec.convert(fields, Rule, strict=False)
    except msgspec.ValidationError as exc:
        raise InvalidRule(f"rule {str(row.get('rule_id'))[:80]!r}: {exc}") from None


def read_settings(row: Mapping[str, Any] | None) -> Settings:
    """A row of ``bot_settings``, or the settings of a rules file."""
    if row is not None and not isinstance(row, Mapping):
        raise InvalidRule("settings: must be a mapping")
    fields = {name: value for name, value in (row or {}).items() if value is not None}
    try:
        for name in ("state_ttl", "late_after"):
            if name in fields:
                fields[name] = _interval(name, fields[name])
        escalation = fields.get("escalation")
        if isinstance(escalation, Mapping) and "hold" in escalation:
            fields["escalation"] = {**escalation, "hold": _interval("escalation.hold", escalation["hold"])}
        return msgspec.convert(fields, Settings, strict=False)
    except (msgspec.ValidationError, ValueError) as exc:
        raise InvalidRule(f"settings: {exc}") from None


def _interval(name: str, value: Any) -> timedelta:
    try:
        return read_interval(value)
    except ValueError as exc:
        raise ValueError(f"{name}: {exc}") from None


def load_ruleset(rows: Iterable[Mapping[str, Any]], settings: Mapping[str, Any] | None = None) -> "Ruleset":
    """Of the enabled rules. Raises ``InvalidRule`` for settings that cannot be read."""
    rules: list[Rule] = []
    refused: list[str] = []
    for row in rows:
        try:
            rules.append(read_rule(row))
        except InvalidRule as exc:
            refused.append(str(exc))
    return Ruleset(rules, read_settings(settings), tuple(refused))


def buttons_of(row: ButtonRow) -> tuple[RuleButton, ...]:
    return tuple(RuleButton(button) if isinstance(button, str) else button for button in row)


class Ruleset:
    def __init__(self, rules: Iterable[Rule], settings: Settings, refused: tuple[str, ...] = ()) -> None:
        self.rules = tuple(sorted(rules, key=lambda rule: (-rule.priority, rule.rule_id, -rule.version)))
        """In the order in which they win when keywords are equally long."""
        self.settings = settings
        self.refused = refused
        self.by_id = {rule.rule_id: rule for rule in self.rules}
        self.states = frozenset(rule.state for rule in self.rules if rule.state is not None)
        self.cancel_words = frozenset(map(normal_form, settings.cancel_words)) - {""}
        self.any_rules = tuple(n for n, rule in enumerate(self.rules) if rule.pattern.mode == "any")
        self.choice_rules = tuple(n for n, rule in enumerate(self.rules) if rule.pattern.mode == "choice")
        self.options = {self.rules[n].rule_id: self._options(self.rules[n]) for n in self.choice_rules}
        self.keywords = tuple(self._keywords())
        self.index = KeywordIndex(self.keywords)
        self.stops: tuple[tuple[tuple[Word, ...], ...], ...] = tuple(
            tuple(filter(None, map(read_words, rule.pattern.stop))) for rule in self.rules
        )
        self._templates: dict[str, Any] = {}

    def _options(self, rule: Rule) -> tuple[str, ...]:
        """Those of the rule, else the buttons of the questions that lead to its state."""
        if rule.pattern.options:
            return rule.pattern.options
        asking = (other for other in self.rules if other.next_state == rule.state)
        shown = (button for other in asking for row in other.buttons for button in buttons_of(row))
        return tuple(dict.fromkeys(button.text for button in shown if button.url is None))

    def _keywords(self) -> Iterable[Keyword]:
        for n, rule in enumerate(self.rules):
            if rule.pattern.mode in ("contains", "words"):
                read = (read_keyword(n, rule.pattern.mode, written) for written in rule.pattern.keywords)
                yield from filter(None, read)

    @cached_property
    def typo_index(self) -> TypoIndex:
        return TypoIndex(keyword for keyword in self.keywords if self.rules[keyword.rule].pattern.fuzzy)

    @cached_property
    def has_typo_pass(self) -> bool:
        return any(rule.pattern.fuzzy for rule in self.rules)

    @cached_property
    def has_layout_pass(self) -> bool:
        return any(rule.pattern.layout for rule in self.rules)

    @cached_property
    def say_buttons(self) -> Mapping[str, str]:
        """The button of the menu that each rule answers in the default state, by the id of the rule."""
        from autopost_bot.engine.match import match  # it needs a ruleset itself

        found: dict[str, str] = {}
        for button in (button for row in self.settings.menu for button in buttons_of(row) if button.url is None):
            if hits := match(self, DEFAULT_STATE, button.text).hits:
                found.setdefault(hits[0].rule.rule_id, button.text)
        return found

    def template(self, body: str) -> Any:
        """The parsed template; ``None`` for a text without any marks."""
        if "{{" not in body and "{%" not in body:
            return None
        if body not in self._templates:
            from autopost_adapters.planning.template_engine import parse  # takes 0.3 s

            self._templates[body] = parse(body, is_html=False)
        return self._templates[body]

    @cached_property
    def rules_document(self) -> list[dict[str, Any]]:
        rules = sorted(self.rules, key=lambda rule: (rule.rule_id, rule.version))
        return [msgspec.to_builtins(rule) for rule in rules]

    @cached_property
    def settings_document(self) -> dict[str, Any]:
        document: dict[str, Any] = msgspec.to_builtins(self.settings)
        return document

    @cached_property
    def hash(self) -> str:
        document = {"rules": self.rules_document, "settings": self.settings_document}
        return sha256(msgspec.json.encode(document, order="sorted")).hexdigest()


__all__ = ["DEFAULT_STATE", "InvalidRule", "Ruleset", "buttons_of", "load_ruleset", "read_rule", "read_settings"]
