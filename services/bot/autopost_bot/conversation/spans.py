"""Spans of the path: a turn and its reply belong to the trace of the webhook that brought the update."""

from contextlib import AbstractContextManager, nullcontext

from autopost_runtime.telemetry import tracing as telemetry

from autopost_bot.conversation.taken import Chat, ReplyJob, StoredUpdate
from autopost_bot.engine.turn import Turn


def turn(chat: Chat, decided: Turn, stored: StoredUpdate, began_ns: int) -> str | None:
    """The span of a turn that was just decided. Returns the traceparent for its reply."""
    if not telemetry.exporting():
        return stored.traceparent
    with telemetry.tracer().start_as_current_span(
        "turn",
        context=telemetry.context_from(stored.traceparent),
        attributes={**_about(chat), "autopost.outcome": decided.outcome},
        start_time=began_ns,
    ):
        return telemetry.current_traceparent()


def send(job: ReplyJob) -> AbstractContextManager[object]:
    if not telemetry.exporting():
        return nullcontext()
    return telemetry.tracer().start_as_current_span(
        "send",
        context=telemetry.context_from(job.traceparent),
        attributes={
            **_about(job.chat),
            "autopost.reply_id": str(job.reply_id),
            "autopost.platform": job.bot.provider,
        },
    )


def _about(chat: Chat) -> dict[str, str]:
    return {"autopost.workspace_id": str(chat.workspace_id), "autopost.chat": chat.token}
