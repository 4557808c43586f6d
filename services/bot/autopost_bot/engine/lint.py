"""Say what is wrong with rules before they answer anybody. Exact for this matcher: nothing is guessed from samples.

    L0 unreadable            L4 state nobody enters     L8 answer too long          L12 same keyword twice
    L1 never wins            L5 no way out              L9 too few turns            L13 button that nothing matches
    L2 only the id decides   L6 no cancel word          L10 `any` without a state   L14 intent of the five missing
    L3 unknown next_state    L7 variable not captured   L11 short keyword           L15 live chats in an unknown state
                                                                                    L16 scenario in a group

Errors break the bot for somebody; warnings may be meant.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import combinations
from typing import Literal

from msgspec import Struct

from autopost_bot.engine.hours import check_hours, opens_at
from autopost_bot.engine.keywords import read_keyword
from autopost_bot.engine.lint_states import lint_states, settings_texts
from autopost_bot.engine.match import match
from autopost_bot.engine.normal_form import normal_form
from autopost_bot.engine.reply import UnsendableReply, compile_reply
from autopost_bot.engine.rules import Accept, Rule, RuleButton
from autopost_bot.engine.ruleset import Ruleset, buttons_of
from autopost_bot.engine.talk import GIVEN_NAMES, ButtonRows, rule_rows, say_rows
from autopost_bot.engine.turn import DEFAULT_STATE, OPERATOR_STATE, Reply

INTENTS = ("delivery", "payment", "returns", "warranty", "contacts")
SHORTEST_KEYWORD = 3
ANY_MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


class Finding(Struct, frozen=True):
    code: str
    severity: Literal["error", "warning"]
    rule_id: str | None
    message: str


def lint(ruleset: Ruleset, live_states: Mapping[str, int] | None = None) -> list[Finding]:
    """Sorted by rule. ``live_states``: how many chats are in each state now, where a database can say."""
    found = [Finding(code, severity, rule_id, message) for code, severity, rule_id, message in _all(ruleset)]
    for state, chats in sorted((live_states or {}).items()):
        if state not in (*ruleset.states, DEFAULT_STATE, OPERATOR_STATE):
            message = f"{chats} chats are in state {state!r}, which no rule has: they start anew"
            found.append(Finding("L15", "error", None, message))
    return sorted(found, key=lambda one: (one.severity, one.rule_id or "", int(one.code[1:]), one.message))


Row = tuple[str, Literal["error", "warning"], str | None, str]


def _all(ruleset: Ruleset) -> Iterator[Row]:
    yield from (("L0", "error", None, problem) for problem in ruleset.refused)
    yield from _templates(ruleset)
    yield from _hours(ruleset)
    if problem := _unsendable(say_rows(ruleset.settings.menu)):
        yield "L0", "error", None, f"the menu cannot be sent: {problem}"
    for rule in ruleset.rules:
        yield from _own(ruleset, rule)
    yield from _ties(ruleset.rules)
    yield from _buttons(ruleset)
    if not any(code == "L0" for code, *_ in _templates(ruleset)):
        yield from lint_states(ruleset)
    yield from _groups(ruleset)
    for intent in INTENTS:
        if all(rule.intent != intent for rule in ruleset.rules):
            yield "L14", "warning", None, f"no rule has the intent {intent!r}"


def _templates(ruleset: Ruleset) -> Iterator[Row]:
    for rule in ruleset.rules:
        for body in filter(None, (rule.response_template, rule.invalid_template)):
            if problem := _template_problem(ruleset, body):
                yield "L0", "error", rule.rule_id, f"the template cannot be read: {problem}"
    for name, body in settings_texts(ruleset.settings):
        if problem := _template_problem(ruleset, body):
            yield "L0", "error", None, f"texts.{name} cannot be read: {problem}"


def _hours(ruleset: Ruleset) -> Iterator[Row]:
    settings = ruleset.settings
    try:
        check_hours(settings.hours, settings.timezone)
        if opens_at(settings.hours, settings.timezone, ANY_MOMENT) is None:
            yield "L0", "warning", None, "hours: operators are never there"
    except Exception as exc:
        message = f"hours or timezone cannot be read: {type(exc).__name__}: {str(exc)[:80]}"
        yield "L0", "error", None, f'{message}; write {{"mon": [["09:00", "21:00"]]}} and an IANA zone'


def _template_problem(ruleset: Ruleset, body: str) -> str | None:
    try:
        ruleset.template(body)
    except Exception as exc:
        return str(exc)[:200] or type(exc).__name__
    return None


def _own(ruleset: Ruleset, rule: Rule) -> Iterator[Row]:
    """What one rule shows."""
    if rule.pattern.mode == "any" and rule.state is None:
        yield "L10", "error", rule.rule_id, "`any` without a state answers everything, everywhere"
    if (rule.capture or "") in GIVEN_NAMES | {"turns", "opened_by", "prompt", "buttons", "token", "greeted"}:
        yield "L0", "error", rule.rule_id, f"{rule.capture!r} is a name of the bot's own; capture under another one"
    if OPERATOR_STATE in (rule.state, rule.next_state):
        yield "L0", "error", rule.rule_id, f"{OPERATOR_STATE!r} is a state of the bot's own; name yours another way"
    if problem := _takes_nothing(rule):
        yield "L0", "error", rule.rule_id, f"accept takes nothing: {problem}"
    if problem := _unsendable(rule_rows(rule, "token")):
        yield "L0", "error", rule.rule_id, f"the buttons cannot be sent: {problem}"
    if dead := _never_wins(ruleset, rule):
        yield "L1", "error", rule.rule_id, f"never wins: whatever it matches, {dead} comes first"
    if rule.pattern.mode not in ("contains", "words"):
        return
    read = [(written, read_keyword(0, rule.pattern.mode, written)) for written in rule.pattern.keywords]
    for written, keyword in read:
        if keyword is None or len(keyword.letters) < SHORTEST_KEYWORD:
            yield "L11", "warning", rule.rule_id, f"keyword {written!r} has fewer than {SHORTEST_KEYWORD} letters"
    spelled = Counter((keyword.letters, keyword.words) for _, keyword in read if keyword)
    for (letters, _), count in spelled.items():
        if count > 1:
            yield "L12", "warning", rule.rule_id, f"keyword {letters!r} is there {count} times"


def _takes_nothing(rule: Rule) -> str | None:
    accept = rule.accept or Accept()
    if accept.kind == "order" and accept.digits and (accept.digits[0] > accept.digits[1] or accept.digits[1] < 1):
        return f"digits {list(accept.digits)} must be the fewest and the most"
    if accept.kind == "number" and accept.min is not None and accept.max is not None and accept.min > accept.max:
        return f"min {accept.min:g} is more than max {accept.max:g}"
    if accept.kind == "choice" and not any(map(normal_form, accept.options)):
        return "a choice must have options"
    return None


def _unsendable(buttons: ButtonRows) -> str | None:
    try:
        compile_reply(Reply(text="text", buttons=buttons))
    except UnsendableReply as exc:
        return str(exc)[:200]
    return None


def _never_wins(ruleset: Ruleset, rule: Rule) -> str | None:
    """The rules that always come before it, if it can never win in the first pass and takes part in no other."""
    if rule.pattern.mode not in ("contains", "words") or rule.pattern.fuzzy or rule.pattern.layout:
        return None
    before = [other for other in ruleset.rules if other is not rule and _always_comes(other, rule)]
    if any(other.pattern.mode == "any" and other.priority > rule.priority for other in before):
        return next(repr(other.rule_id) for other in before if other.pattern.mode == "any")
    winners = [_winner(before, rule, written) for written in rule.pattern.keywords]
    return ", ".join(sorted({repr(winner) for winner in winners})) if winners and all(winners) else None


def _always_comes(other: Rule, rule: Rule) -> bool:
    """Wherever the rule is a candidate the other one is, and nothing but its keywords decides whether it matches."""
    everywhere = other.state is None or other.state == rule.state
    return everywhere and other.capture is None and not other.pattern.stop and other.priority >= rule.priority


def _winner(before: Iterable[Rule], rule: Rule, written: str) -> str | None:
    """A rule with a keyword that every text with this keyword has, too, and that wins then."""
    keyword = read_keyword(0, rule.pattern.mode, written)
    if keyword is None:
        return rule.rule_id  # it matches nothing
    parts = [word.letters for word in keyword.words] or [keyword.letters]
    for other in before:
        for letters in map(normal_form, other.pattern.keywords if other.pattern.mode == "contains" else ()):
            if other.priority > rule.priority and letters and any(letters in part for part in parts):
                return other.rule_id
            same = letters == keyword.letters and rule.pattern.mode == "contains"
            if other.priority == rule.priority and same and other.rule_id < rule.rule_id:
                return other.rule_id
    return None


def _ties(rules: Iterable[Rule]) -> Iterator[Row]:
    for one, other in combinations(rules, 2):
        meet = None in (one.state, other.state) or one.state == other.state
        if one.priority == other.priority and meet and (shared := _spelled(one) & _spelled(other)):
            first, second = sorted((one.rule_id, other.rule_id))
            words = ", ".join(map(repr, sorted(shared)))
            yield (
                "L2",
                "warning",
                second,
                f"has {words} and priority {one.priority} like {first!r}: only the ids decide",
            )


def _spelled(rule: Rule) -> set[str]:
    if rule.pattern.mode not in ("contains", "words"):
        return set()
    read = (read_keyword(0, rule.pattern.mode, written) for written in rule.pattern.keywords)
    return {keyword.letters for keyword in read if keyword}


def _buttons(ruleset: Ruleset) -> Iterator[Row]:
    for row in ruleset.settings.menu:
        for button in buttons_of(row):
            if _is_unmatched(ruleset, DEFAULT_STATE, button):
                yield "L13", "error", None, f"the menu says {button.text!r}, which no rule matches"
    for rule in ruleset.rules:
        state = rule.next_state or rule.state or DEFAULT_STATE
        for button in (button for row in rule.buttons for button in buttons_of(row)):
            if button.callback and (rule.next_state in (None, DEFAULT_STATE)):
                yield "L13", "error", rule.rule_id, f"the button {button.text!r} is stale at once: no state follows"
            elif _is_unmatched(ruleset, state, button):
                message = f"the button {button.text!r} is pressed in state {state!r}, where no rule matches it"
                yield "L13", "error", rule.rule_id, message


def _is_unmatched(ruleset: Ruleset, state: str, button: RuleButton) -> bool:
    if button.url or normal_form(button.text) in ruleset.cancel_words:
        return False
    return not match(ruleset, state, button.text).hits


def _groups(ruleset: Ruleset) -> Iterator[Row]:
    others = sorted(set(ruleset.settings.answer_in) - {"dialog"})
    if others and ruleset.states:
        yield "L16", "error", None, f"answer_in has {', '.join(others)}: a scenario there would mix people up"
