"""Commit how sends ended, many at a time.

While one batch is on its way to the database the next one gathers, so batches grow with the load and a lone
outcome waits for nobody. An outcome is dropped only when the database says that it was committed, or that the
claim passed on: a call whose answer was lost is read back first.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Any, cast

from autopost_contracts.ids import DeliveryId, RunId, WorkspaceId
from autopost_contracts.outcomes import Failed, Outcome, Sent
from autopost_runtime import metrics
from autopost_runtime.backoff import Backoff
from autopost_runtime.logs import get_logger
from autopost_runtime.postgres import is_retryable
from autopost_runtime.redaction import redact

from autopost_dispatcher.ended import Ended
from autopost_dispatcher.gateway import Gateway
from autopost_dispatcher.over import Released
from autopost_dispatcher.tell import tell

BATCH = 1000
SNIPPET = 500

commit_seconds = metrics.histogram("autopost_commit_seconds", "How long commit_deliveries took.")


class Committer:
    def __init__(
        self,
        gateway: Gateway,
        *,
        run_id: RunId,
        pause: timedelta,
        disable_streak: int,
        committed: Callable[[WorkspaceId], None],
    ) -> None:
        self._gateway = gateway
        self._run_id = run_id
        self._pause = pause
        self._disable_streak = disable_streak
        self._committed = committed
        self._gathered: list[Ended] = []
        self._under_way = 0
        self._came = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()

    @property
    def waiting(self) -> int:
        """Ended, and not known to be committed."""
        return len(self._gathered) + self._under_way

    def put(self, ended: Ended) -> None:
        self._gathered.append(ended)
        if len(self._gathered) == 1:
            self._came.set()
            self._settled.clear()

    async def run(self) -> None:
        try:
            while await self._came.wait():
                batch, self._gathered = self._gathered[:BATCH], self._gathered[BATCH:]
                self._under_way = len(batch)
                await self._commit(batch)
                if not self._gathered:
                    self._came.clear()
                    self._settled.set()
        finally:
            self._settled.set()

    async def flush(self) -> None:
        """Returns when everything put so far is committed, or nobody commits any more."""
        await self._settled.wait()

    async def _commit(self, batch: list[Ended]) -> None:
        by_workspace: dict[WorkspaceId, list[Ended]] = defaultdict(list)
        for ended in batch:
            by_workspace[ended.claim.workspace_id].append(ended)
        for workspace, outcomes in by_workspace.items():
            await self._commit_in(workspace, outcomes)
            self._under_way -= len(outcomes)
            self._committed(workspace)

    async def _commit_in(self, workspace: WorkspaceId, ended: list[Ended]) -> None:
        backoff = Backoff()
        while ended:
            try:
                started = time.monotonic()
                stale = await self._call(workspace, ended)
                commit_seconds.record(time.monotonic() - started)
                tell(ended, stale)
                return
            except Exception as exc:
                if not is_retryable(exc):
                    raise
                get_logger().warning("commit.unknown", error=type(exc).__name__, outcomes=len(ended))
            await backoff.wait()
            ended = await self._still_open(workspace, ended)

    async def _call(self, workspace: WorkspaceId, ended: list[Ended]) -> Collection[DeliveryId]:
        """Those that came too late. What arrived, all of it in one message each, goes a shorter way."""
        if all(_is_one_message(one.outcome) for one in ended):
            ended = await self._call_sent(workspace, ended)
        if not ended:
            return ()
        outcomes = [_outcome(one) for one in ended]
        return await self._gateway.commit_deliveries(
            workspace, self._run_id, outcomes, self._pause, self._disable_streak
        )

    async def _call_sent(self, workspace: WorkspaceId, ended: list[Ended]) -> list[Ended]:
        """Those that cannot go this way."""
        left = await self._gateway.commit_sent(
            workspace,
            self._run_id,
            [one.claim.delivery_id for one in ended],
            [one.claim.claim_token for one in ended],
            [cast(Sent, one.outcome).provider_message_id for one in ended],
        )
        return [ended[place] for place in left]

    async def _still_open(self, workspace: WorkspaceId, ended: list[Ended]) -> list[Ended]:
        try:
            open_ids = await self._gateway.read_outcomes(
                workspace, [one.claim.delivery_id for one in ended], [one.claim.claim_token for one in ended]
            )
        except Exception as exc:
            if not is_retryable(exc):
                raise
            return ended
        return [one for one in ended if one.claim.delivery_id in open_ids]


def _is_one_message(outcome: Outcome | Released) -> bool:
    return isinstance(outcome, Sent) and outcome.parts in ((), ((outcome.provider_message_id,),))


def _outcome(ended: Ended) -> dict[str, Any]:
    claim = ended.claim
    match outcome := ended.outcome:
        case Sent():
            sent = {
                "delivery_id": claim.delivery_id,
                "claim_token": claim.claim_token,
                "result": "sent",
                "provider_message_id": outcome.provider_message_id,
            }
            return sent if _is_one_message(outcome) else sent | {"parts": outcome.parts}
        case Failed():
            return {
                "delivery_id": claim.delivery_id,
                "claim_token": claim.claim_token,
                "result": "failed",
                "category": outcome.category,
                "scope": outcome.scope,
                "code": outcome.code,
                "message": _storable(outcome.message),
                "snippet": _storable(outcome.raw.get("snippet", "")) or None,
                "retry_after_ms": outcome.retry_after_ms,
                "ambiguous": outcome.ambiguous,
                "hold": outcome.hold,
                "migrated_to": outcome.migrated_to,
                "payload_ref": ended.payload_ref,
            }
        case Released():
            return {"delivery_id": claim.delivery_id, "claim_token": claim.claim_token, "result": "released"}


def _storable(text: str) -> str:
    """Postgres stores no text with a NUL in it; one answer of garbage would take its whole batch down.

    It is the platform's text, and events are read by many: nobody's number or address is in it.
    """
    return redact(text[: 8 * SNIPPET].replace("\x00", "\ufffd"))[:SNIPPET]
