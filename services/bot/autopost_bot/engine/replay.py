"""Run stored updates through the engine again, and compare with what was logged.

    conversation ─ update ─▶ turn ─ commit ─▶ conversation ─ update ─▶ …

The fold is exact: a turn depends on the update, the conversation and the ruleset that its log line names, and an expiry
on the moment of the commit, which is the moment of the log line. Retention takes the beginning of a chat away; then the
fold starts after the first turn that leaves a conversation whatever was before it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from autopost_bot.engine.next_turns import after, failed_turn, gather, safe_turn
from autopost_bot.engine.ruleset import Ruleset
from autopost_bot.engine.turn import DEFAULT_STATE, OPERATOR_STATE, Conversation, Turn, Update, written_ms

LEAST_PERIOD = timedelta(hours=1)
"""Retention keeps a conversation for at least this long after it expired."""
BEGINNINGS = ("greeted", "cancelled", "failed", "escalated")
"""Outcomes that leave the same conversation whatever was before."""


class Handled(Struct, frozen=True, kw_only=True):
    """A turn as it was logged, with its update."""

    update: Update
    logged_at: datetime
    ruleset: str
    outcome: str
    error: str | None = None
    late: bool = False
    expired: bool = False
    gathered: tuple[str, ...] = ()
    """Keys of the updates before it whose texts were joined with its text."""
    rule: str | None = None
    state_before: str
    state_after: str
    preview: str | None = None
    """The beginning of the reply in the log."""
    response_hash: str | None = None
    """``None``: there is no reply."""
    must_have_reply: bool = True
    """If a reply was decided, it is still kept."""


class Released(Struct, frozen=True, kw_only=True):
    """An operator gave the chat back to the bot."""

    logged_at: datetime


class Difference(Struct, frozen=True):
    """``logged`` and ``folded`` are never words of a customer."""

    key: str
    field: str
    logged: str | None = None
    folded: str | None = None


def apply(conversation: Conversation, update: Update, turn: Turn, committed_at: datetime) -> Conversation:
    """The conversation after a turn, as the commit stores it."""
    conversation = after(conversation, update)
    if turn.next is None:
        return conversation
    left = turn.next
    expires_at = None if left.expires_in is None else committed_at + left.expires_in
    return replace(conversation, state=left.state, context=left.context, expires_at=expires_at)


def replay(
    rulesets: Mapping[str, Ruleset],
    history: Iterable[Handled | Released],
) -> Iterator[Difference]:
    """Of one chat, in the order of its log lines."""
    fold = Fold(rulesets.get)
    for line in history:
        yield from fold.add(line)


class Fold:
    """The conversation of one chat, line by line of its log."""

    def __init__(self, ruleset: Callable[[str], Ruleset | None], *, whole: bool = True) -> None:
        """``whole``: nothing of the chat is forgotten, so it begins with an empty conversation."""
        self._ruleset = ruleset
        self._whole = whole
        self._waiting: dict[str, Update] = {}
        self.conversation: Conversation | None = Conversation() if whole else None
        """``None``: not known."""
        self.folded = 0
        self.skipped = 0
        """Lines whose conversation is not known any more."""

    def add(self, line: Handled | Released) -> list[Difference]:
        if isinstance(line, Released):
            self.conversation = Conversation(newest_ms=self.conversation.newest_ms if self.conversation else None)
            return []
        if line.outcome == "gathered":
            self._waiting[line.update.key] = line.update
            return []
        joined = [self._waiting[key] for key in line.gathered if key in self._waiting]
        self._waiting = {}
        ruleset = self._ruleset(line.ruleset)
        if ruleset is None:
            self.lose()
            return [Difference(line.update.key, "ruleset", line.ruleset)]
        return self._fold(ruleset, [*joined, line.update], line)

    def lose(self) -> None:
        """A turn cannot be decided again, so what it left is not known."""
        self.skipped += 1
        self.conversation = None

    def _fold(self, ruleset: Ruleset, group: list[Update], line: Handled) -> list[Difference]:
        before = self.conversation and _without_forgotten(self.conversation, line)
        if before is None:
            self.skipped += 1
            self.conversation = _beginning(ruleset, line)
            return []
        if line.outcome == "answered":  # before, by somebody else: the conversation stayed as it was
            self.conversation = after(before, *group)
            return []
        turn = _decide(ruleset, before, gather(group), line)
        if line.late and not turn.log.meta.get("late") and not self._whole:  # than one that is forgotten
            self.skipped += 1
            return []
        self.folded += 1
        self.conversation = _stored(after(apply(before, line.update, turn, line.logged_at), *group))
        return list(_differences(line, turn))


def _stored(conversation: Conversation) -> Conversation:
    """As the database returns it."""
    context: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(conversation.context))
    return replace(conversation, context=context)


def _without_forgotten(conversation: Conversation, line: Handled) -> Conversation:
    """Retention deletes conversations that expired long ago; then the log line does not speak of an expiry."""
    over = conversation.expires_at is not None and line.logged_at - conversation.expires_at > LEAST_PERIOD
    if over and line.state_before == DEFAULT_STATE and not line.expired and not line.late:
        return Conversation(newest_ms=conversation.newest_ms)
    return conversation


def _beginning(ruleset: Ruleset, line: Handled) -> Conversation | None:
    """What the turn left, if it leaves that whatever was before."""
    ends_flow = line.outcome in ("matched", "captured") and line.state_after == DEFAULT_STATE
    if line.outcome not in BEGINNINGS and not ends_flow:
        return None
    context = {"turns": 0} | ({"greeted": written_ms(line.update)} if line.outcome == "greeted" else {})
    held = line.state_after == OPERATOR_STATE
    expires_at = line.logged_at + ruleset.settings.escalation.hold if held else None
    left = Conversation(state=line.state_after, context=context, expires_at=expires_at)
    return after(left, line.update)


def _decide(ruleset: Ruleset, conversation: Conversation, update: Update, line: Handled) -> Turn:
    """A chat that was taken too often is no matter of the engine, so its turn is taken from the log."""
    if line.error == "taken_too_often":
        return failed_turn(ruleset, conversation, update, line.error)
    return safe_turn(ruleset, conversation, update)


def _differences(line: Handled, turn: Turn) -> Iterator[Difference]:
    log = turn.log
    key = line.update.key
    reply = line.response_hash if line.response_hash or line.must_have_reply else turn.response_hash
    compared = (
        ("outcome", line.outcome, turn.outcome),
        ("rule", line.rule, rule_name(log.matched_rule_id, log.rule_version)),
        ("state_before", line.state_before, log.state_before),
        ("state_after", line.state_after, log.state_after),
        ("response_hash", reply, turn.response_hash),
    )
    for field, logged, folded in compared:
        if logged != folded:
            yield Difference(key, field, logged, folded)
    if line.preview != log.response_preview:
        yield Difference(key, "response_preview")


def rule_name(rule_id: str | None, version: int | None) -> str | None:
    return None if rule_id is None else f"{rule_id} v{version}"
