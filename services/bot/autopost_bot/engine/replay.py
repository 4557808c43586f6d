"""Run stored updates through the engine again, and compare with what was logged.

    conversation ─ update ─▶ turn ─ commit ─▶ conversation ─ update ─▶ …

The fold is exact: a turn depends on the update, the conversation and the ruleset that its log line names, and an expiry
on the moment of the commit, which is the moment of the log line.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from autopost_bot.engine.next_turns import after, failed_turn, gather, safe_turn
from autopost_bot.engine.ruleset import Ruleset
from autopost_bot.engine.turn import Conversation, Turn, Update


class Handled(Struct, frozen=True, kw_only=True):
    """A turn as it was logged, with its update."""

    update: Update
    logged_at: datetime
    ruleset: str
    outcome: str
    error: str | None = None
    gathered: tuple[str, ...] = ()
    """Keys of the updates before it whose texts were joined with its text."""
    state_after: str
    response_hash: str | None = None
    """``None``: there was no reply, or it is not kept any more."""


class Released(Struct, frozen=True, kw_only=True):
    """An operator gave the chat back to the bot."""

    logged_at: datetime


class Difference(Struct, frozen=True):
    key: str
    field: str
    logged: str | None
    folded: str | None


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
    conversation: Conversation | None = None,
) -> Iterator[Difference]:
    """Of one chat, in the order of its log lines."""
    conversation = conversation or Conversation()
    waiting: dict[str, Update] = {}
    for handled in history:
        if isinstance(handled, Released):
            conversation = Conversation(newest_ms=conversation.newest_ms)
            continue
        if handled.outcome == "gathered":
            waiting[handled.update.key] = handled.update
            continue
        if handled.outcome == "answered":  # before, by somebody else: the conversation stayed as it was
            conversation = after(conversation, handled.update)
            continue
        ruleset = rulesets.get(handled.ruleset)
        if ruleset is None:
            yield Difference(handled.update.key, "ruleset", handled.ruleset, None)
            return
        group = [*(waiting.pop(key) for key in handled.gathered if key in waiting), handled.update]
        turn = _fold(ruleset, conversation, gather(group), handled)
        yield from _differences(handled, turn)
        conversation = after(apply(conversation, handled.update, turn, handled.logged_at), *group)


def _fold(ruleset: Ruleset, conversation: Conversation, update: Update, handled: Handled) -> Turn:
    """A chat that was taken too often is no matter of the engine, so its turn is taken from the log."""
    if handled.error == "taken_too_often":
        return failed_turn(ruleset, conversation, update, handled.error)
    return safe_turn(ruleset, conversation, update)


def _differences(handled: Handled, turn: Turn) -> Iterator[Difference]:
    compared = (
        ("outcome", handled.outcome, turn.outcome),
        ("state_after", handled.state_after, turn.log.state_after),
        ("response_hash", handled.response_hash or turn.response_hash, turn.response_hash),
    )
    for field, logged, folded in compared:
        if logged != folded:
            yield Difference(handled.update.key, field, logged, folded)
