"""Decide what a chat needs next: the one entrance for the service.

    next_turns(ruleset, conversation, updates) → turns; only the last one replies or changes the conversation

All of them are committed together. Whatever goes wrong with an update ends that update and no other.
"""

from collections.abc import Sequence

from autopost_contracts.plan import Plan
from msgspec.structs import replace

from autopost_bot.engine.decide import decide, escalate_reply
from autopost_bot.engine.normal_form import normal_form
from autopost_bot.engine.reply import compile_reply
from autopost_bot.engine.ruleset import Ruleset
from autopost_bot.engine.talk import Talk
from autopost_bot.engine.turn import (
    DEFAULT_STATE,
    Conversation,
    Escalation,
    LogLine,
    NextConversation,
    Reply,
    Turn,
    Update,
)

MOST_TAKES = 3
"""A chat that was taken so often without a commit has an update that kills its worker."""


def next_turns(
    ruleset: Ruleset, conversation: Conversation, updates: Sequence[Update], *, takes: int = 1
) -> tuple[Turn, ...]:
    """``takes``: how often the chat was taken since its last commit, with this time."""
    if updates and takes >= MOST_TAKES:
        return (failed_turn(ruleset, conversation, updates[0], "taken_too_often"),)
    turns: list[Turn] = []
    left = list(updates)
    while left:
        group = _gathered(ruleset, conversation, left)
        turns += _turns_of(ruleset, conversation, group)
        if turns[-1].reply is not None or turns[-1].next is not None:
            break
        conversation = after(conversation, *group)
        left = left[len(group) :]
    return tuple(turns)


def after(conversation: Conversation, *updates: Update) -> Conversation:
    """The conversation knows that these updates were handled."""
    written = [update.provider_ms for update in updates if update.provider_ms is not None]
    newest = max(written, default=None)
    if newest is None or newest <= (conversation.newest_ms or 0):
        return conversation
    return replace(conversation, newest_ms=newest)


def gather(updates: Sequence[Update]) -> Update:
    """One update that says what all of them said. It came when the first of them came."""
    if len(updates) == 1:
        return updates[0]
    return replace(updates[-1], text="\n".join(update.text for update in updates), at=updates[0].at)


def safe_turn(ruleset: Ruleset, conversation: Conversation, update: Update) -> Turn:
    """With its plan; an update on which the engine fails escalates."""
    try:
        turn = decide(ruleset, conversation, update)
        return _with_plan(turn, None if turn.reply is None else compile_reply(turn.reply))
    except Exception as exc:
        return failed_turn(ruleset, conversation, update, type(exc).__name__)


def failed_turn(ruleset: Ruleset, conversation: Conversation, update: Update, error: str) -> Turn:
    """The words of an escalation, if even these can be said; the conversation starts anew."""
    reply, plan = _last_words(ruleset, update)
    turn = Turn(
        key=update.key,
        outcome="failed",
        reply=reply,
        next=NextConversation(state=DEFAULT_STATE, context={"turns": 0}),
        escalation=Escalation("engine_failed"),
        log=LogLine(
            message_text=update.text[:4000],
            state_before=conversation.state,
            state_after=DEFAULT_STATE,
            response_preview=reply.text[:200] if reply else None,
            meta={"outcome": "failed", "ruleset": ruleset.hash, "error": error},
        ),
    )
    return _with_plan(turn, plan)


def _last_words(ruleset: Ruleset, update: Update) -> tuple[Reply | None, Plan | None]:
    nobody = Conversation()
    try:
        reply = escalate_reply(Talk(ruleset=ruleset, update=update, before=nobody, now=nobody, meta={}))
        return reply, None if reply is None else compile_reply(reply)
    except Exception:
        return None, None


def _with_plan(turn: Turn, plan: Plan | None) -> Turn:
    return turn if plan is None else replace(turn, plan=plan, response_hash=plan.digest())


def _turns_of(ruleset: Ruleset, conversation: Conversation, group: Sequence[Update]) -> list[Turn]:
    turn = safe_turn(ruleset, conversation, gather(group))
    if len(group) == 1:
        return [turn]
    keys = [update.key for update in group[:-1]]
    log = replace(turn.log, message_text=group[-1].text, meta={**turn.log.meta, "gathered": keys})
    return [*(_joined(ruleset, conversation, update) for update in group[:-1]), replace(turn, log=log)]


def _joined(ruleset: Ruleset, conversation: Conversation, update: Update) -> Turn:
    return Turn(
        key=update.key,
        outcome="gathered",
        log=LogLine(
            message_text=update.text,
            state_before=conversation.state,
            state_after=conversation.state,
            meta={"outcome": "gathered", "ruleset": ruleset.hash},
        ),
    )


def _gathered(ruleset: Ruleset, conversation: Conversation, updates: Sequence[Update]) -> Sequence[Update]:
    """The first update, and those after it whose texts make one turn with it."""
    count = 0
    for update in updates[: ruleset.settings.gather]:
        if not _is_plain(ruleset, conversation, update):
            break
        count += 1
    return updates[: max(count, 1)]


def _is_plain(ruleset: Ruleset, conversation: Conversation, update: Update) -> bool:
    """Words and nothing else, in time, and no word that ends a scenario."""
    words = normal_form(update.text)
    late = ruleset.settings.late_after.total_seconds() * 1000
    is_late = update.provider_ms is not None and (conversation.newest_ms or 0) - update.provider_ms > late
    plain = update.kind == "message" and bool(words) and not update.attachments and not update.flooded
    return plain and not is_late and words not in ruleset.cancel_words
