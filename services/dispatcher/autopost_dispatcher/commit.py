"""Commit how sends ended, many at a time.

While one batch is on its way to the database the next one gathers, so batches grow with the load and a lone
outcome waits for nobody. An outcome is dropped only when the database says that it was committed, or that the
claim passed on: a call whose answer was lost is read back first.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from autopost_contracts.ids import WorkspaceId
from autopost_contracts.outcomes import Failed, Outcome, Sent
from autopost_runtime import telemetry
from autopost_runtime.backoff import Backoff
from autopost_runtime.logs import get_logger
from autopost_runtime.postgres import is_retryable
from msgspec import Struct

from autopost_dispatcher.gateway import Claim, Committed, Gateway
from autopost_dispatcher.send import Released

BATCH = 500
SNIPPET = 500

commit_seconds = telemetry.histogram("autopost_commit_seconds", "How long commit_deliveries took.")
stale_total = telemetry.counter("autopost_stale_commits_total", "Outcomes of claims that had passed on.")


class Ended(Struct, frozen=True):
    claim: Claim
    outcome: Outcome | Released
    payload_ref: str | None = None


class Committer:
    def __init__(
        self, gateway: Gateway, *, pause: timedelta, disable_streak: int, committed: Callable[[WorkspaceId], None]
    ) -> None:
        self._gateway = gateway
        self._pause = pause
        self._disable_streak = disable_streak
        self._committed = committed
        self._waiting: asyncio.Queue[Ended] = asyncio.Queue()

    def put(self, ended: Ended) -> None:
        self._waiting.put_nowait(ended)

    async def run(self) -> None:
        while True:
            batch = [await self._waiting.get()]
            while len(batch) < BATCH and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            try:
                await self._commit(batch)
            finally:
                for _ in batch:
                    self._waiting.task_done()

    async def flush(self) -> None:
        """Returns when everything put so far is committed."""
        await self._waiting.join()

    async def _commit(self, batch: list[Ended]) -> None:
        by_workspace: dict[WorkspaceId, list[Ended]] = defaultdict(list)
        for ended in batch:
            by_workspace[ended.claim.workspace_id].append(ended)
        for workspace, outcomes in by_workspace.items():
            await self._commit_in(workspace, outcomes)
            self._committed(workspace)

    async def _commit_in(self, workspace: WorkspaceId, ended: list[Ended]) -> None:
        backoff = Backoff()
        while ended:
            try:
                started = time.monotonic()
                verdicts = await self._gateway.commit_deliveries(
                    workspace,
                    [_outcome(one) for one in ended],
                    self._pause,
                    self._disable_streak,
                )
                commit_seconds.record(time.monotonic() - started)
                _report(verdicts)
                return
            except Exception as exc:
                if not is_retryable(exc):
                    raise
                get_logger().warning("commit.unknown", error=type(exc).__name__, outcomes=len(ended))
            await backoff.wait()
            ended = await self._still_open(workspace, ended)

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


def _report(verdicts: list[Committed]) -> None:
    stale = [str(verdict.delivery_id) for verdict in verdicts if verdict.verdict == "stale"]
    if stale:
        stale_total.add(len(stale))
        get_logger().warning("commit.stale", deliveries=stale)


def _outcome(ended: Ended) -> dict[str, Any]:
    base: dict[str, Any] = {"delivery_id": ended.claim.delivery_id, "claim_token": ended.claim.claim_token}
    match outcome := ended.outcome:
        case Sent():
            return base | {
                "result": "sent",
                "provider_message_id": outcome.provider_message_id,
                "parts": outcome.parts,
            }
        case Failed():
            return base | {
                "result": "failed",
                "category": outcome.category,
                "scope": outcome.scope,
                "code": outcome.code,
                "message": outcome.message[:SNIPPET],
                "snippet": outcome.raw.get("snippet", "")[:SNIPPET] or None,
                "retry_after_ms": outcome.retry_after_ms,
                "ambiguous": outcome.ambiguous,
                "payload_ref": ended.payload_ref,
            }
        case Released():
            return base | {"result": "released"}
