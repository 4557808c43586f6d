"""Record how replies ended, those that end during a commit together in the next, and give their chats back.

A commit may be repeated: the token of a chat that was given back is no longer current.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from autopost_contracts.ids import WorkspaceId
from autopost_contracts.outcomes import Failed, Outcome, Sent
from autopost_runtime.lifecycle.backoff import Backoff
from autopost_runtime.lifecycle.set_aside import error_name
from autopost_runtime.postgres.batches import Batches
from autopost_runtime.postgres.pool import is_away, is_retryable, may_have_committed
from autopost_runtime.telemetry.logs import get_logger

from autopost_bot.conversation.gateway import ConversationGateway, ReplyVerdict
from autopost_bot.conversation.refusals import Refusals
from autopost_bot.conversation.report import report_replies
from autopost_bot.conversation.taken import EndedReply, ReplyJob

MOST = 200
"""Outcomes of one commit."""
TRIED_FOR = timedelta(seconds=60)
"""How long a commit is repeated; by then another worker has the chat and looks for the reply."""


class ReplyCommitter:
    def __init__(self, gateway: ConversationGateway, refusals: Refusals) -> None:
        self._gateway = gateway
        self._refusals = refusals
        self._batches = Batches(self._call, key=id, holder=_workspace_of, most=MOST)

    async def commit(self, job: ReplyJob, outcome: Outcome | timedelta) -> ReplyVerdict | None:
        """``None``: the database refuses it. Its lease ends, and whoever takes the chat looks for the reply."""
        ended = EndedReply(job, outcome, datetime.now(UTC))
        try:
            verdict = await self._commit(ended)
        except Exception as exc:
            get_logger().error("reply.refused", exc_info=exc, chat=job.chat.token, error=error_name(exc))
            await self._refusals.refused(job.chat, exc)
            return None
        await self._refusals.worked(job.chat.workspace_id)
        return verdict

    async def _commit(self, ended: EndedReply) -> ReplyVerdict:
        ask, backoff, until = self._batches.ask, Backoff(), time.monotonic() + TRIED_FOR.total_seconds()
        while True:
            try:
                return await ask(ended)
            except Exception as exc:
                unknown = is_retryable(exc) or may_have_committed(exc)
                if not unknown or time.monotonic() > until:
                    raise
                get_logger().warning("reply.unknown", error=error_name(exc), chat=ended.job.chat.token)
                ask = self._batches.ask if is_away(exc) else self._batches.ask_alone
            await backoff.wait()

    async def _call(self, batch: list[EndedReply]) -> list[ReplyVerdict]:
        verdicts = await self._gateway.commit_replies(list(map(_document, batch)))
        report_replies(batch, verdicts)
        return verdicts


def _workspace_of(ended: EndedReply) -> WorkspaceId:
    return ended.job.chat.workspace_id


def _document(ended: EndedReply) -> dict[str, Any]:
    """The outcome as ``commit_replies_across`` takes it."""
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
    return {"workspace_id": chat.workspace_id, "chat_id": chat.chat_id, "lease_token": chat.lease.token, **of}
