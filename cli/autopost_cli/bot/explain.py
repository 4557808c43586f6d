"""Why a rule won, and why the others did not."""

from collections.abc import Iterator

from autopost_bot.engine.match import match
from autopost_bot.engine.rules import Rule
from autopost_bot.engine.ruleset import Ruleset
from autopost_bot.engine.turn import Conversation, Update


def why_lines(ruleset: Ruleset, update: Update | None, before: Conversation | None) -> Iterator[str]:
    """One line per rule, the winner first."""
    if update is None or before is None:
        yield "nothing was said yet"
        return
    if before.expires_at is not None and before.expires_at < update.at:
        before = Conversation()
    found = match(ruleset, before.state, update.text, update.attachments)
    yield f"«{update.text[:80]}» in state {before.state}, {found.by} pass"
    order = {hit.rule.rule_id: place for place, hit in enumerate(found.hits)}
    refused = {hit.rule.rule_id for hit in found.refused}
    for rule in sorted(ruleset.rules, key=lambda one: order.get(one.rule_id, len(order))):
        if rule.rule_id in order:
            hit = found.hits[order[rule.rule_id]]
            what = "wins" if order[rule.rule_id] == 0 else "matches, but comes later"
            yield f"{rule.rule_id}: {what}: priority {rule.priority}, {', '.join(hit.keywords) or rule.pattern.mode}"
        else:
            yield f"{rule.rule_id}: {_why_not(rule, before.state, rule.rule_id in refused)}"


def _why_not(rule: Rule, state: str, is_refused: bool) -> str:
    if rule.state not in (None, state):
        return f"answers only in state {rule.state}"
    if is_refused:
        kind = rule.accept.kind if rule.accept else "text"
        return f"waits for a value of kind {kind}, which is not there"
    return "none of its keywords is there" if rule.pattern.keywords else f"{rule.pattern.mode} does not match"
