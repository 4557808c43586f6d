"""What is wrong with the states of the rules: dead ends, cycles, variables, turns."""

from collections.abc import Iterator, Mapping
from typing import Literal

from autopost_bot.engine.accept import LONGEST_VALUE
from autopost_bot.engine.rules import Rule, Settings, Texts
from autopost_bot.engine.ruleset import Ruleset
from autopost_bot.engine.talk import GIVEN_NAMES
from autopost_bot.engine.turn import DEFAULT_STATE

Row = tuple[str, Literal["error", "warning"], str | None, str]
Names = frozenset[str]

LONGEST_MESSAGE = 4000
NOTHING: Names = frozenset()


def lint_states(ruleset: Ruleset) -> Iterator[Row]:
    scenario = Scenario(ruleset)
    yield from scenario.dead_ends()
    yield from scenario.cycles()
    yield from scenario.short_guards()
    yield from scenario.variables()
    yield from scenario.long_answers()


class Scenario:
    """The graph of the states: a rule of a state leads to its ``next_state``."""

    def __init__(self, ruleset: Ruleset) -> None:
        self._ruleset = ruleset
        self._rules = ruleset.rules
        self._states = sorted(ruleset.states - {DEFAULT_STATE})
        self._openers = [rule for rule in self._rules if _opens(rule)]

    def dead_ends(self) -> Iterator[Row]:
        entered = {rule.next_state for rule in self._rules}
        for rule in self._rules:
            if rule.next_state not in (None, DEFAULT_STATE, *self._states):
                yield "L3", "error", rule.rule_id, f"next_state {rule.next_state!r} is a state that no rule has"
        for state in self._states:
            if state not in entered:
                yield "L4", "warning", None, f"no rule leads to state {state!r}"
        if self._states and not self._ruleset.cancel_words and not any(rule.state is None for rule in self._openers):
            yield "L6", "warning", None, "a customer cannot leave a scenario: there are no cancel words"

    def cycles(self) -> Iterator[Row]:
        distances = self._distances()
        for state in self._states:
            leaves = [rule for rule in self._of(state) if rule.next_state not in (None, state)]
            known = all(rule.next_state in (DEFAULT_STATE, *self._states) for rule in leaves)
            if state not in distances and known:
                yield "L5", "error", None, f"from state {state!r} no rule leads to the end"

    def short_guards(self) -> Iterator[Row]:
        distances = self._distances()
        for rule in self._openers:
            if rule.next_state in distances and rule.max_turns <= (least := 1 + distances[rule.next_state]):
                message = f"max_turns {rule.max_turns} ends the scenario, which takes {least} messages: use more"
                yield "L9", "error", rule.rule_id, message

    def variables(self) -> Iterator[Row]:
        perhaps, surely = self._captured(any_path=True), self._captured(any_path=False)
        for rule in self._rules:
            may, must = self._known(rule, perhaps), self._known(rule, surely)
            for name in sorted(self._used(rule) - GIVEN_NAMES - must):
                if name in may:
                    yield "L7", "warning", rule.rule_id, f"{{{{ {name} }}}} is empty on some ways to this rule"
                else:
                    yield "L7", "error", rule.rule_id, f"{{{{ {name} }}}} is captured on no way to this rule"
        for _, text in settings_texts(self._ruleset.settings):
            template = self._ruleset.template(text)
            for name in sorted((template.names if template else NOTHING) - GIVEN_NAMES):
                yield "L7", "warning", None, f"a text of the settings uses {{{{ {name} }}}}, which may be empty"

    def long_answers(self) -> Iterator[Row]:
        longest = {rule.rule_id: self._longest(rule) for rule in self._rules}
        prompts = max((longest[rule.rule_id] for rule in self._rules if rule.next_state in self._states), default=0)
        for rule in self._rules:
            length = longest[rule.rule_id] + (prompts + 2 if rule.state is None and rule.next_state is None else 0)
            if length > LONGEST_MESSAGE:
                message = f"the answer may have {length} characters and goes out in parts of {LONGEST_MESSAGE}"
                yield "L8", "warning", rule.rule_id, message

    def _of(self, state: str) -> list[Rule]:
        return [rule for rule in self._rules if rule.state == state]

    def _distances(self) -> dict[str | None, int]:
        """From each state, the fewest messages to the end of the scenario."""
        found: dict[str | None, int] = {DEFAULT_STATE: 0}
        while True:
            more: dict[str | None, int] = {
                rule.state: 1 + found[rule.next_state]
                for rule in sorted(self._rules, key=lambda rule: -found.get(rule.next_state, 0))
                if rule.state in self._states and rule.next_state in found and rule.state not in found
            }
            if not more:
                return found
            found |= more

    def _captured(self, *, any_path: bool) -> Mapping[str, Names]:
        """What was captured when a state is reached: on any way to it, or on every one."""
        known: dict[str, Names] = {}
        for _ in range(len(self._rules) + 1):
            for rule in self._rules:
                if rule.next_state in self._states:
                    brought = (NOTHING if _opens(rule) else known.get(rule.state or "", NOTHING)) | _own(rule)
                    had = known.get(rule.next_state, brought)
                    known[rule.next_state] = had | brought if any_path else had & brought
        return known

    def _known(self, rule: Rule, captured: Mapping[str, Names]) -> Names:
        return (captured.get(rule.state, NOTHING) if rule.state else NOTHING) | _own(rule)

    def _used(self, rule: Rule) -> Names:
        template = self._ruleset.template(rule.response_template)
        return template.names if template else NOTHING

    def _longest(self, rule: Rule) -> int:
        template = self._ruleset.template(rule.response_template)
        if template is None:
            return len(rule.response_template)
        try:
            return len(template.render(dict.fromkeys(template.names, "ы" * LONGEST_VALUE)))
        except Exception:  # a loop over a text, say: the answer is not longer than a template may make it
            return 0


def _opens(rule: Rule) -> bool:
    return rule.state in (None, DEFAULT_STATE) and rule.next_state not in (None, DEFAULT_STATE)


def _own(rule: Rule) -> Names:
    return frozenset({rule.capture} if rule.capture else ())


def settings_texts(settings: Settings) -> list[tuple[str, str]]:
    """The templates of the settings, by name; ``shop`` is a value of theirs."""
    texts = ((name, getattr(settings.texts, name)) for name in Texts.__struct_fields__ if name != "shop")
    return [(name, text) for name, text in texts if text]
