"""Commit the outcomes of sends in batches.

The next batch is collected while one is being committed, so batches grow with the load and a single outcome does not
wait. An outcome is dropped only when the database confirms that it was committed or that its claim is no longer valid;
after a lost answer the outcomes are read back first.

If the database refuses a batch, its outcomes are committed one by one; a refused one then in a shortened form. If that
is refused too, the outcome is set aside and retried with a growing delay, while all others are committed.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection
from datetime import timedelta
from math import inf
from typing import Any, cast

from autopost_adapters.answers import LONGEST_ID, storable
from autopost_contracts.ids import DeliveryId, RunId, WorkspaceId
from autopost_contracts.outcomes import Failed, Outcome, Sent
from autopost_runtime.lifecycle.backoff import Backoff
from autopost_runtime.lifecycle.set_aside import SetAside, error_name
from autopost_runtime.postgres.pool import is_away, is_retryable
from autopost_runtime.secrets.redaction import beginning
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger
from msgspec import Struct

from autopost_dispatcher.claim.claim import SendJob
from autopost_dispatcher.commit.finished import FinishedDelivery
from autopost_dispatcher.commit.publication_metrics import PublicationMetrics
from autopost_dispatcher.commit.report import report_batch
from autopost_dispatcher.gateway import Claim, Gateway
from autopost_dispatcher.send.end_delivery import Released

BATCH = 1000
SNIPPET = 500
CONFLICTS = 2
"""How often a batch is retried after a conflict with another transaction."""
FEW = 20
"""Outcomes of one workspace up to which they are committed together with those of others."""
INTERVAL = 0.016
"""Seconds between the starts of two commits while many workspaces are busy: a commit has a fixed cost."""
BUSY = 4
"""Workspaces."""
BLOCKED_AT = 100
DECISIVE = frozenset(
    {"delivery_id", "claim_token", "result", "category", "scope", "ambiguous", "hold", "retry_after_ms", "answered"}
)

Stale = Collection[DeliveryId]

commit_seconds = metrics.histogram("autopost_commit_seconds", "How long commit_deliveries took.")


class SetAsideOutcome(Struct):
    """An outcome that the database refuses, and its backoff."""

    ended: FinishedDelivery
    waits: SetAside
    is_waiting: bool = False
    """Queued for another commit."""


class Committer:
    def __init__(
        self,
        gateway: Gateway,
        *,
        run_id: RunId,
        pause: timedelta,
        disable_streak: int,
        committed: Callable[..., None],
    ) -> None:
        self._gateway = gateway
        self._publications = PublicationMetrics(gateway)
        self._run_id = run_id
        self._pause = pause
        self._disable_streak = disable_streak
        self._committed = committed
        self._queued: list[FinishedDelivery] = []
        self._aside: dict[DeliveryId, SetAsideOutcome] = {}
        self._set_aside_now: set[DeliveryId] = set()
        """Outcomes of the current batch that were just set aside."""
        self._in_progress = 0
        self._batch: list[FinishedDelivery] = []
        self._has_work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def waiting(self) -> int:
        """Outcomes not known to be committed."""
        return len(self._queued) + self._in_progress

    def put(self, ended: FinishedDelivery) -> None:
        self._queued.append(ended)
        if len(self._queued) == 1:
            self._has_work.set()
            self._idle.clear()

    def claims(self) -> list[Claim]:
        """The claims of outcomes not known to be committed."""
        return [one.claim for one in (*self._queued, *self._batch, *(aside.ended for aside in self._aside.values()))]

    def leased(self) -> list[SendJob]:
        """Deliveries not known to be committed: without a renewed lease another worker would send them again."""
        asides = (aside.ended for aside in self._aside.values())
        ended = {one.claim.delivery_id: one for one in (*self._queued, *self._batch, *asides)}
        return [SendJob(one.claim, 0.0, one.lease, None) for one in ended.values() if one.lease is not None]

    def is_blocked(self, workspace: WorkspaceId) -> bool:
        """Whether so many outcomes of this workspace are set aside that it must not claim more."""
        return sum(1 for one in self._aside.values() if one.ended.claim.workspace_id == workspace) >= BLOCKED_AT

    def try_again(self, only: DeliveryId | None = None) -> None:
        """Queue outcomes that were set aside, without waiting for their backoff."""
        for one in [aside for key, aside in self._aside.items() if only in (None, key) and not aside.is_waiting]:
            one.is_waiting = True
            self.put(one.ended)

    async def run(self) -> None:
        try:
            while await self._has_work.wait():
                started = time.monotonic()
                batch, self._queued = self._queued[:BATCH], self._queued[BATCH:]
                self._in_progress, self._batch = len(batch), batch
                await self._commit(batch)
                self._batch = []
                await self._collect(batch, started)
                if not self._queued:
                    self._has_work.clear()
                    self._idle.set()
        finally:
            self._idle.set()

    async def _collect(self, last: list[FinishedDelivery], started: float) -> None:
        """Wait for more outcomes while many workspaces are busy with a few each."""
        left = started + INTERVAL - time.monotonic()
        if left > 0 and len({one.claim.workspace_id for one in last}) >= BUSY and len(self._queued) < BATCH:
            await asyncio.sleep(left)

    async def flush(self) -> None:
        """Returns when all outcomes put so far are committed, or the committer has stopped."""
        await self._idle.wait()

    async def _commit(self, batch: list[FinishedDelivery]) -> None:
        """Few outcomes in each of many workspaces in one call, all others workspace by workspace."""
        by_workspace: dict[WorkspaceId, list[FinishedDelivery]] = defaultdict(list)
        for ended in batch:
            by_workspace[ended.claim.workspace_id].append(ended)
        for workspace in await self._commit_across(by_workspace):
            del by_workspace[workspace]
        for workspace, outcomes in by_workspace.items():
            self._set_aside_now.clear()
            try:
                await self._commit_in(workspace, outcomes)
                await self._drop_settled(workspace, outcomes)
            except Exception as exc:  # a bug: these are recovered when their leases expire, the others are committed
                get_logger().error("commit.failed", exc_info=exc, outcomes=len(outcomes))
            self._in_progress -= len(outcomes)
            self._committed(workspace)

    async def _commit_across(self, by_workspace: dict[WorkspaceId, list[FinishedDelivery]]) -> list[WorkspaceId]:
        """The workspaces whose outcomes are all committed. A failure leaves all of them, after reading them back."""
        failing = {aside.ended.claim.workspace_id for aside in self._aside.values()}
        among = [one for one in by_workspace if len(by_workspace[one]) <= FEW and one not in failing]
        batch = [ended for one in among for ended in by_workspace[one] if _is_one_message(ended.outcome)]
        if len(among) < 2 or not batch:
            return []
        started = time.monotonic()
        try:
            left, dues = await self._call_across(batch)
        except Exception as exc:
            get_logger().warning("commit.unknown", error=error_name(exc), outcomes=len(batch))
            for one in among:
                still_open = await self._still_open(one, by_workspace[one])
                self._in_progress -= len(by_workspace[one]) - len(still_open)
                by_workspace[one] = still_open
            return [one for one in among if not by_workspace[one]]
        commit_seconds.record(time.monotonic() - started)
        unsettled = {id(batch[place]) for place in left}
        done = [ended for ended in batch if id(ended) not in unsettled]
        report_batch(done, ())
        await self._publications.count(done, ())
        self._in_progress -= len(done)
        settled = {id(ended) for ended in done}
        for one in among:
            by_workspace[one] = [ended for ended in by_workspace[one] if id(ended) not in settled]
        for one in {ended.claim.workspace_id for ended in done}:
            self._committed(one, dues.get(one, inf))
        return [one for one in among if not by_workspace[one]]

    async def _call_across(self, batch: list[FinishedDelivery]) -> tuple[list[int], dict[WorkspaceId, float]]:
        return await self._gateway.commit_sent_across(
            self._run_id,
            [one.claim.workspace_id for one in batch],
            [one.claim.delivery_id for one in batch],
            [one.claim.claim_token for one in batch],
            [cast(Sent, one.outcome).provider_message_id for one in batch],
        )

    async def _commit_in(self, workspace: WorkspaceId, ended: list[FinishedDelivery]) -> None:
        """Commit one batch; one by one if the database refuses the batch."""
        refused = await self._settle(workspace, ended, self._call)
        if refused is None:
            return
        for one in await self._still_open(workspace, ended):
            await self._commit_one(workspace, one)

    async def _commit_one(self, workspace: WorkspaceId, ended: FinishedDelivery) -> None:
        refused = await self._settle(workspace, [ended], self._call)
        if refused is not None:
            refused = await self._settle(workspace, [ended], self._call_shortened)
        if refused is not None:
            await self._set_aside(ended, refused)

    async def _settle(
        self,
        workspace: WorkspaceId,
        ended: list[FinishedDelivery],
        call: Callable[[WorkspaceId, list[FinishedDelivery]], Awaitable[Stale]],
    ) -> Exception | None:
        """Retry while the database is unavailable. Returns the exception if the database refuses the outcomes."""
        backoff, conflicts = Backoff(), 0
        while ended:
            try:
                started = time.monotonic()
                stale = await call(workspace, ended)
                commit_seconds.record(time.monotonic() - started)
                report_batch(ended, stale)
                await self._publications.count(ended, stale)
                return None
            except Exception as exc:
                conflicts += not is_away(exc)
                if not is_retryable(exc) or conflicts > CONFLICTS:
                    return exc
                get_logger().warning("commit.unknown", error=type(exc).__name__, outcomes=len(ended))
            await backoff.wait()
            ended = await self._still_open(workspace, ended)
        return None

    async def _drop_settled(self, workspace: WorkspaceId, ended: list[FinishedDelivery]) -> None:
        """Forget outcomes that were set aside and are settled now."""
        for one in ended if self._aside else ():
            aside = self._aside.get(one.claim.delivery_id)
            if aside and one.claim.delivery_id not in self._set_aside_now:
                del self._aside[one.claim.delivery_id]
                if not any(other.ended.claim.workspace_id == workspace for other in self._aside.values()):
                    await aside.waits.worked(workspace)

    async def _set_aside(self, ended: FinishedDelivery, exc: Exception) -> None:
        """Keep the outcome and its lease: an accepted message must not be sent again because its commit fails."""
        claim = ended.claim
        aside = self._aside.setdefault(claim.delivery_id, SetAsideOutcome(ended, SetAside("commit", self._gateway)))
        aside.is_waiting = False
        self._set_aside_now.add(claim.delivery_id)
        get_logger().warning("commit.set_aside", delivery_id=str(claim.delivery_id), error=error_name(exc))
        wait = await aside.waits.failed(claim.workspace_id, exc)
        asyncio.get_running_loop().call_later(wait.total_seconds(), self.try_again, claim.delivery_id)

    async def _call_shortened(self, workspace: WorkspaceId, ended: list[FinishedDelivery]) -> Stale:
        return await self._gateway.commit_deliveries(
            workspace, self._run_id, [_shortened(_outcome(one)) for one in ended], self._pause, self._disable_streak
        )

    async def _call(self, workspace: WorkspaceId, ended: list[FinishedDelivery]) -> Stale:
        """Returns the stale deliveries. Batches of single-message successes use the faster ``commit_sent``."""
        if all(_is_one_message(one.outcome) for one in ended):
            ended = await self._call_sent(workspace, ended)
        if not ended:
            return ()
        outcomes = [_outcome(one) for one in ended]
        return await self._gateway.commit_deliveries(
            workspace, self._run_id, outcomes, self._pause, self._disable_streak
        )

    async def _call_sent(self, workspace: WorkspaceId, ended: list[FinishedDelivery]) -> list[FinishedDelivery]:
        """Returns the outcomes that ``commit_sent`` cannot commit."""
        left = await self._gateway.commit_sent(
            workspace,
            self._run_id,
            [one.claim.delivery_id for one in ended],
            [one.claim.claim_token for one in ended],
            [cast(Sent, one.outcome).provider_message_id for one in ended],
        )
        return [ended[place] for place in left]

    async def _still_open(self, workspace: WorkspaceId, ended: list[FinishedDelivery]) -> list[FinishedDelivery]:
        try:
            open_ids = await self._gateway.read_outcomes(
                workspace, [one.claim.delivery_id for one in ended], [one.claim.claim_token for one in ended]
            )
        except Exception as exc:
            get_logger().warning("commit.unread", error=error_name(exc), outcomes=len(ended))
            return ended
        return [one for one in ended if one.claim.delivery_id in open_ids]


def _is_one_message(outcome: Outcome | Released) -> bool:
    return isinstance(outcome, Sent) and outcome.parts in ((), ((outcome.provider_message_id,),))


def _outcome(ended: FinishedDelivery) -> dict[str, Any]:
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
                "answered": outcome.answered,
                "migrated_to": outcome.migrated_to,
                "payload_ref": ended.payload_ref,
            }
        case Released():
            return {"delivery_id": claim.delivery_id, "claim_token": claim.claim_token, "result": "released"}


def _shortened(outcome: dict[str, Any]) -> dict[str, Any]:
    """The fields that decide about the delivery, without the platform's texts."""
    short = {name: value for name, value in outcome.items() if name in DECISIVE}
    if outcome["result"] == "sent":
        return short | {"provider_message_id": storable(str(outcome["provider_message_id"]), LONGEST_ID)}
    return short | {"code": "unstorable_outcome"} if outcome["result"] == "failed" else short


def _storable(text: str) -> str:
    """The platform's text, redacted: events must not contain phone numbers or addresses."""
    return beginning(storable(text), SNIPPET)
