"""Commit turns, before anything is sent: those that were decided while a commit was under way, together in the next.

After the commit the reply goes first, by whoever takes the chat. A turn that the database refuses waits for the end of
its lease, and is poison the third time.
"""

from collections.abc import Callable, Collection

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.lifecycle.backoff import Backoff
from autopost_runtime.lifecycle.set_aside import error_name
from autopost_runtime.postgres.batches import Batches
from autopost_runtime.postgres.pool import is_away, is_retryable, may_have_committed
from autopost_runtime.telemetry.logs import get_logger

from autopost_bot.conversation.decided import Decided, turn_document, without_text
from autopost_bot.conversation.gateway import ConversationGateway, TurnVerdict
from autopost_bot.conversation.refusals import Refusals
from autopost_bot.conversation.report import report_turns
from autopost_bot.conversation.slots import PATIENCE

MOST = 200
"""Turns of one commit."""


class TurnCommitter:
    def __init__(
        self, gateway: ConversationGateway, refusals: Refusals, behind: Callable[[], Collection[WorkspaceId]]
    ) -> None:
        """``behind``: where replies wait for slots."""
        self._gateway = gateway
        self._refusals = refusals
        self._behind = behind
        self._batches = Batches(self._call, key=id, holder=_workspace_of, most=MOST)

    async def commit(self, decided: Decided) -> TurnVerdict | None:
        """``None``: nothing was committed, and its lease ends."""
        verdict: TurnVerdict | None
        try:
            verdict = await self._commit(decided)
        except Exception as exc:
            verdict = await self._refused(decided, exc)
        if verdict is not None:
            await self._refusals.worked(decided.taken.chat.workspace_id)
        return verdict

    async def _commit(self, decided: Decided) -> TurnVerdict:
        """A commit without an answer is read back by its token: it happened, or it is done again; never both."""
        ask, backoff = self._batches.ask, Backoff()
        while True:
            try:
                return await ask(decided)
            except Exception as exc:
                if not (is_retryable(exc) or may_have_committed(exc)) or decided.taken.chat.lease.left() < 0:
                    raise
                get_logger().warning("turn.unknown", error=error_name(exc), chat=decided.taken.chat.token)
                ask = self._batches.ask if is_away(exc) else self._batches.ask_alone
            await backoff.wait()
            if (verdict := await self._read_back(decided)) is not None:
                return verdict

    async def _read_back(self, decided: Decided) -> TurnVerdict | None:
        """``None``: nothing is known yet, or it was not committed."""
        try:
            found = await self._gateway.read_turn(decided.taken.chat)
        except Exception as exc:
            if not is_retryable(exc):
                raise
            return None
        if found is None:  # given back by the commit, or passed on
            verdict = TurnVerdict("silent", more=True)
        elif found.committed:
            verdict = TurnVerdict("committed", found.reply_id, found.attempt, found.slot_at, found.wait)
        else:
            return None
        report_turns([decided], [verdict])
        return verdict

    async def _refused(self, decided: Decided, exc: Exception) -> TurnVerdict | None:
        if decided.last.outcome == "failed":
            try:
                return await self._batches.ask_alone(without_text(decided))
            except Exception as again:
                exc = again
        chat = decided.taken.chat
        get_logger().error("turn.refused", exc_info=exc, chat=chat.token, takes=decided.taken.takes)
        await self._refusals.refused(chat, exc)
        return None

    async def _call(self, batch: list[Decided]) -> list[TurnVerdict]:
        verdicts = await self._gateway.commit_turns(list(map(turn_document, batch)), PATIENCE, self._behind())
        report_turns(batch, verdicts)
        return verdicts


def _workspace_of(decided: Decided) -> WorkspaceId:
    return decided.taken.chat.workspace_id
