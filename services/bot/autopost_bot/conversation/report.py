"""Report what a commit recorded, in metrics and in the log.

In a small commit each turn and each reply gets a log line. In a large one those that went as usual get one line with
their number: ``bot_logs`` and the events have every one of them anyway.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

from autopost_contracts.outcomes import Failed, Sent
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

from autopost_bot.conversation.decided import Decided
from autopost_bot.conversation.gateway import ReplyVerdict, TurnVerdict
from autopost_bot.conversation.taken import EndedReply, StoredUpdate
from autopost_bot.engine.turn import Turn

LOGGED_ONE_BY_ONE = 20

turns_total = metrics.counter("autopost_bot_turns_total", "Handled updates by outcome.")
replies_total = metrics.counter("autopost_bot_replies_total", "Attempts to send a reply by result.")
reply_seconds = metrics.histogram("autopost_bot_reply_seconds", "From the storing of an update to its accepted reply.")


def report_turns(batch: Sequence[Decided], verdicts: Sequence[TurnVerdict]) -> None:
    summed_up, counts = 0, Counter[str]()
    for decided, verdict in zip(batch, verdicts, strict=True):
        if verdict.verdict == "stale":
            get_logger().info("turn.stale", chat=decided.taken.chat.token)
            continue
        counts.update(turn.outcome for turn in decided.turns)
        if len(batch) > LOGGED_ONE_BY_ONE and verdict.verdict == "committed" and decided.last.outcome == "matched":
            summed_up += len(decided.turns)
            continue
        for turn, stored in zip(decided.turns, decided.updates, strict=True):
            _report_turn(decided, turn, stored, verdict)
    for outcome, count in counts.items():
        turns_total.add(count, {"outcome": outcome})
    if summed_up:
        get_logger().info("turns.handled", count=summed_up)


def _report_turn(decided: Decided, turn: Turn, stored: StoredUpdate, verdict: TurnVerdict) -> None:
    chat = decided.taken.chat
    get_logger().info(
        "turn.handled",
        workspace_id=str(chat.workspace_id),
        chat=chat.token,
        outcome=turn.outcome,
        verdict=verdict.verdict,
        rule_id=turn.log.matched_rule_id,
        rule_version=turn.log.rule_version,
        state_before=turn.log.state_before,
        state_after=turn.log.state_after,
        reply_id=str(verdict.reply_id) if verdict.reply_id else None,
        takes=decided.taken.takes,
        trace_id=stored.trace_id,
    )


def report_replies(batch: Sequence[EndedReply], verdicts: Sequence[ReplyVerdict]) -> None:
    summed_up, counts = 0, Counter[str]()
    for ended, verdict in zip(batch, verdicts, strict=True):
        result = _result(ended, verdict)
        counts[result] += 1
        if isinstance(ended.outcome, Sent):
            reply_seconds.record(max(0.0, (ended.ended_at - ended.job.stored_at).total_seconds()))
        if len(batch) > LOGGED_ONE_BY_ONE and result == "sent":
            summed_up += 1
        else:
            _report_reply(ended, verdict, result)
    for result, count in counts.items():
        replies_total.add(count, {"result": result})
    if summed_up:
        get_logger().info("replies.sent", count=summed_up)


def _result(ended: EndedReply, verdict: ReplyVerdict) -> str:
    if verdict.verdict == "stale":
        return "stale"
    match ended.outcome:
        case Sent():
            return "sent"
        case timedelta():
            return "released"
        case _:
            return "failed" if verdict.failed else "retried"


def _report_reply(ended: EndedReply, verdict: ReplyVerdict, result: str) -> None:
    outcome, job = ended.outcome, ended.job
    get_logger().info(
        "reply.attempted",
        workspace_id=str(job.chat.workspace_id),
        chat=job.chat.token,
        reply_id=str(job.reply_id),
        result=result,
        verdict=verdict.verdict,
        code=outcome.code if isinstance(outcome, Failed) else None,
        ambiguous=outcome.ambiguous if isinstance(outcome, Failed) else None,
    )
