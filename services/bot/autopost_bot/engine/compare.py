"""Run the updates of a time through two rulesets, and tell where their turns differ.

    observed: what the log says      today: the rules of now      new: the rules that somebody wants to enable

Observed and today differ only where rules were changed since; today and new differ by what the change does.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Literal

from msgspec import Struct

from autopost_bot.engine.next_turns import gather, safe_turn
from autopost_bot.engine.replay import apply
from autopost_bot.engine.ruleset import Ruleset
from autopost_bot.engine.turn import Conversation, Turn, Update

Change = Literal[
    "same", "other_rule", "other_text", "other_state", "other_outcome", "fallback_to_answered", "answered_to_fallback"
]
FALLBACK = ("clarified", "escalated", "failed", "invalid")
NOT_DECIDED = ("gathered", "answered", "released")


class Observed(Struct, frozen=True, kw_only=True):
    """An update and what the log says of its turn."""

    chat: str
    update: Update
    logged_at: datetime
    outcome: str
    rule_id: str | None
    state_after: str
    gathered: tuple[str, ...] = ()


class Compared(Struct, frozen=True, kw_only=True):
    observed: Observed
    today: Turn
    new: Turn
    is_observed: bool
    """Today's rules decide what was observed."""
    change: Change
    """From today's rules to the new ones."""


def compare(today: Ruleset, new: Ruleset, history: Iterable[Observed]) -> Iterator[Compared]:
    """A chat after the other, each in the order in which its updates were handled."""
    chat, lanes, waiting = None, (Conversation(), Conversation()), dict[str, Update]()
    for observed in history:
        if observed.chat != chat:
            chat, lanes, waiting = observed.chat, (Conversation(), Conversation()), {}
        if observed.outcome in NOT_DECIDED:
            waiting[observed.update.key] = observed.update
            lanes = lanes if observed.outcome != "released" else (Conversation(), Conversation())
            continue
        joined = [waiting.pop(key) for key in observed.gathered if key in waiting]
        update = gather([*joined, observed.update])
        first, second = safe_turn(today, lanes[0], update), safe_turn(new, lanes[1], update)
        lanes = (
            apply(lanes[0], update, first, observed.logged_at),
            apply(lanes[1], update, second, observed.logged_at),
        )
        yield Compared(
            observed=observed,
            today=first,
            new=second,
            is_observed=_was(observed) == (first.outcome, first.log.matched_rule_id, first.log.state_after),
            change=_change(first, second),
        )


def _was(observed: Observed) -> tuple[str, str | None, str]:
    return observed.outcome, observed.rule_id, observed.state_after


def _change(before: Turn, after: Turn) -> Change:
    fell, falls = before.outcome in FALLBACK, after.outcome in FALLBACK
    if fell != falls:
        return "fallback_to_answered" if fell else "answered_to_fallback"
    if before.log.matched_rule_id != after.log.matched_rule_id:
        return "other_rule"
    if before.log.state_after != after.log.state_after:
        return "other_state"
    if before.reply != after.reply:
        return "other_text"
    return "same" if before.outcome == after.outcome else "other_outcome"
