"""Record how replies ended, in batches, and give their chats back.

The outcomes of a workspace are collected while the ones before are being committed, so batches grow with the load and a
single outcome does not wait. A commit may be repeated: the token of a chat that was given back is no longer current.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from autopost_contracts.ids import WorkspaceId
from autopost_contracts.outcomes import Failed, Outcome, Sent
from autopost_runtime.lifecycle.backoff import Backoff
from autopost_runtime.lifecycle.set_aside import error_name
from autopost_runtime.postgres.pool import is_retryable, may_have_committed
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger
from msgspec import Struct

from autopost_bot.conversation.gateway import ConversationGateway, ReplyVerdict
from autopost_bot.conversation.taken import ReplyJob

BATCH = 500
TRIED_FOR = timedelta(seconds=60)
"""How long a commit is repeated; by then another worker has the chat and looks for the reply."""

replies_total = metrics.counter("autopost_bot_replies_total", "Attempts to send a reply by result.")
reply_seconds = metrics.histogram("autopost_bot_reply_seconds", "From the storing of an update to its accepted reply.")


class EndedReply(Struct, frozen=True, eq=False):
    job: ReplyJob
    outcome: Outcome | timedelta
    """A duration: given back unsent, to be looked at after it."""
    ended_at: datetime


class ReplyCommitter:
    def __init__(
        self, gateway: ConversationGateway, committed: Callable[[ReplyJob, ReplyVerdict | None], None]
    ) -> None:
        self._gateway = gateway
        self._committed = committed
        self._queued: dict[WorkspaceId, list[EndedReply]] = defaultdict(list)
        self._busy: dict[WorkspaceId, asyncio.Task[None]] = {}

    def put(self, job: ReplyJob, outcome: Outcome | timedelta) -> None:
        workspace = job.chat.workspace_id
        self._queued[workspace].append(EndedReply(job, outcome, datetime.now(UTC)))
        if workspace not in self._busy:
            self._busy[workspace] = asyncio.create_task(self._work_off(workspace))

    async def flush(self) -> None:
        while self._busy:
            await asyncio.gather(*self._busy.values())

    async def _work_off(self, workspace: WorkspaceId) -> None:
        try:
            while batch := self._queued.pop(workspace, None):
                if batch[BATCH:]:
                    self._queued[workspace] = batch[BATCH:]
                await self._commit(workspace, batch[:BATCH])
        finally:
            del self._busy[workspace]

    async def _commit(self, workspace: WorkspaceId, batch: Sequence[EndedReply]) -> None:
        """One by one if the database refuses the batch, so that one bad outcome does not affect the others."""
        try:
            verdicts = await self._call(workspace, batch)
        except Exception as exc:
            get_logger().error("replies.refused", exc_info=exc, replies=len(batch))
            if len(batch) == 1:  # its lease ends, and whoever takes the chat looks for it
                self._committed(batch[0].job, None)
            else:
                for ended in batch:
                    await self._commit(workspace, [ended])
            return
        by_chat = {verdict.chat_id: verdict for verdict in verdicts}
        for ended in batch:
            verdict = by_chat[ended.job.chat.chat_id]
            _report(ended, verdict)
            self._committed(ended.job, verdict)

    async def _call(self, workspace: WorkspaceId, batch: Sequence[EndedReply]) -> list[ReplyVerdict]:
        backoff, until = Backoff(), asyncio.get_running_loop().time() + TRIED_FOR.total_seconds()
        documents = list(map(_document, batch))
        while True:
            try:
                return await self._gateway.commit_replies(workspace, documents)
            except Exception as exc:
                unknown = is_retryable(exc) or may_have_committed(exc)
                if not unknown or asyncio.get_running_loop().time() > until:
                    raise
                get_logger().warning("replies.unknown", error=error_name(exc), replies=len(batch))
            await backoff.wait()


def _document(ended: EndedReply) -> dict[str, Any]:
    """The outcome as ``commit_replies`` takes it."""
    chat = ended.job.chat
    of: dict[str, Any]
    match ended.outcome:
        case Sent() as sent:
            of = {"result": "sent", "provider_message_id": sent.provider_message_id, "parts": sent.parts}
        case Failed() as failed:
            of = {
                "result": "failed",
                "category": failed.category,
                "scope": failed.scope,
                "code": failed.code,
                "message": failed.message,
                "retry_after_ms": failed.retry_after_ms,
                "ambiguous": failed.ambiguous,
                "answered": failed.answered,
            }
        case wait:
            of = {"result": "released", "retry_after_ms": round(wait.total_seconds() * 1000)}
    return {"chat_id": chat.chat_id, "lease_token": chat.lease.token, **of}


def _report(ended: EndedReply, verdict: ReplyVerdict) -> None:
    outcome, job = ended.outcome, ended.job
    result = "sent" if isinstance(outcome, Sent) else "released"
    if isinstance(outcome, Failed):
        result = "failed" if verdict.failed else "retried"
    replies_total.add(1, {"result": result if verdict.verdict == "committed" else "stale"})
    if isinstance(outcome, Sent):
        reply_seconds.record(max(0.0, (ended.ended_at - job.stored_at).total_seconds()))
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
