"""What the engine decided for a chat, and the job that follows when it is committed."""

import time
from typing import Any

from autopost_runtime.telemetry import metrics
from msgspec import Struct
from msgspec.structs import replace

from autopost_bot.conversation import spans
from autopost_bot.conversation.gateway import TurnVerdict
from autopost_bot.conversation.taken import Bot, ReplyJob, Slot, StoredUpdate, TakenChat
from autopost_bot.engine.next_turns import next_turns
from autopost_bot.engine.turn import Turn

turn_seconds = metrics.histogram("autopost_bot_turn_seconds", "How long the engine took for the turns of a chat.")


class Decided(Struct, frozen=True, eq=False):
    """The turns of one chat; only the last one may reply."""

    taken: TakenChat
    bot: Bot
    turns: tuple[Turn, ...]
    updates: tuple[StoredUpdate, ...]
    """Those that the turns handle."""
    traceparent: str | None
    """Of the last turn."""

    @property
    def last(self) -> Turn:
        return self.turns[-1]


def decide_chat(taken: TakenChat, bot: Bot) -> Decided:
    began_ns, started = time.time_ns(), time.perf_counter()
    turns = next_turns(bot.ruleset, taken.conversation, [stored.update for stored in taken.updates], takes=taken.takes)
    turn_seconds.record(time.perf_counter() - started)
    handled = taken.updates[: len(turns)]
    return Decided(taken, bot, turns, handled, spans.turn(taken.chat, turns[-1], handled[-1], began_ns))


def turn_document(decided: Decided) -> dict[str, Any]:
    """The turn as ``commit_turns_across`` takes it."""
    last, stored = decided.last, decided.updates[-1]
    following = last.next
    return {
        "workspace_id": decided.taken.chat.workspace_id,
        "chat_id": decided.taken.chat.chat_id,
        "lease_token": decided.taken.chat.lease.token,
        "trace_id": stored.trace_id,
        "traceparent": decided.traceparent,
        "updates": [{"key": turn.key, "log": turn.log} for turn in decided.turns],
        "next": following
        and {
            "state": following.state,
            "context": following.context,
            "expires_in": following.expires_in and following.expires_in.total_seconds(),
        },
        "reply": last.plan
        and {
            "key": last.key,
            "kind": "notice" if last.outcome == "flooded" else "reply",
            "plan": last.plan,
            "plan_hash": last.plan.digest(),
            "response_hash": last.response_hash,
        },
        "escalation": next((turn.escalation for turn in decided.turns if turn.escalation), None),
    }


def without_text(decided: Decided) -> Decided:
    turns = tuple(replace(turn, log=replace(turn.log, message_text="")) for turn in decided.turns)
    return replace(decided, turns=turns)


def reply_job(decided: Decided, verdict: TurnVerdict) -> ReplyJob:
    now, plan, stored = time.monotonic(), decided.last.plan, decided.updates[-1]
    if plan is None or verdict.reply_id is None:
        raise ValueError("a turn without a reply has nothing to send")
    wait = 0.0 if verdict.wait is None else verdict.wait.total_seconds()
    slot = None if verdict.slot_at is None else Slot(now + wait, verdict.slot_at)
    return ReplyJob(
        chat=decided.taken.chat,
        bot=decided.bot,
        reply_id=verdict.reply_id,
        plan=plan,
        slot=slot,
        ask_at=now + wait,
        created_at=stored.update.at,
        stored_at=stored.update.at,
        granted_at=now,
        traceparent=decided.traceparent,
    )


def pending_job(taken: TakenChat, bot: Bot) -> ReplyJob:
    reply = taken.reply
    if reply is None:
        raise ValueError("the chat has no reply that waits")
    return ReplyJob(
        chat=taken.chat,
        bot=bot,
        reply_id=reply.reply_id,
        plan=reply.plan,
        slot=None,
        progress=reply.progress,
        maybe_sent=reply.maybe_sent,
        sent_ids=reply.sent_ids,
        created_at=reply.created_at,
        stored_at=reply.created_at,
        granted_at=time.monotonic(),
        traceparent=reply.traceparent,
    )
