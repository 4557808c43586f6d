"""Claim due sources and pull a few at a time, independently of each other.

The database assigns sources to replicas by leases, which expire when a replica dies. A replica that stops releases its
leases.
"""

import asyncio
from datetime import timedelta
from secrets import token_hex
from typing import Any

from autopost_runtime.lifecycle.backoff import Backoff
from autopost_runtime.lifecycle.cancelling import end
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.postgres.errors import is_retryable
from autopost_runtime.secrets.redaction import redact
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry import tracing as telemetry
from autopost_runtime.telemetry.logs import get_logger
from msgspec import Struct

from autopost_ingest.errors import log_background_error
from autopost_ingest.pull.endings import Interrupted, PullFailed, PullFinished, PullRejected
from autopost_ingest.pull.gateway import PullClaim, PullGateway, PullOutcome
from autopost_ingest.pull.pull_source import SourcePuller
from autopost_ingest.pull.source_config import Misconfigured

pulls_total = metrics.counter("autopost_pulls_total", "Source pulls by kind and outcome.")

STOP_LIMIT = timedelta(seconds=3)
LONGEST_REST = timedelta(seconds=30)
"""Longest pause after repeated errors of the database."""


class PullLimits(Struct, frozen=True, kw_only=True):
    concurrency: int = 8
    per_workspace: int = 4
    """Concurrent pulls, over all replicas."""
    budget: timedelta = timedelta(seconds=90)
    """For one pull, from claim to end."""
    lease: timedelta = timedelta(seconds=180)
    poll: timedelta = timedelta(seconds=2)


class PullScheduler:
    def __init__(self, gateway: PullGateway, puller: SourcePuller, pace: PullLimits) -> None:
        self._gateway = gateway
        self._puller = puller
        self._pace = pace
        self._pulls: set[asyncio.Task[None]] = set()
        self._faults = Backoff(pace.poll, LONGEST_REST)

    async def run(self, service: Service) -> None:
        try:
            while not service.stopping.is_set():
                claimed = await self._begin()
                if claimed is None:
                    await service.sleep(self._faults.next())
                elif not claimed:
                    await service.sleep(self._pace.poll)
                elif len(self._pulls) >= self._pace.concurrency:
                    await self._wait_for_slot(service)
        finally:
            await self.stop()

    async def round(self) -> int:
        """Pull everything due now and wait for it. Returns the number of pulls."""
        tick = _new_trace()
        claims = await self._claim(tick)
        await asyncio.gather(*(self._pull_source(claim, tick) for claim in claims))
        return len(claims)

    async def stop(self) -> None:
        await end(self._pulls, STOP_LIMIT)

    async def _begin(self) -> int | None:
        """Number of pulls started; ``None`` after an error."""
        if len(self._pulls) >= self._pace.concurrency:
            return 0
        tick = _new_trace()
        try:
            claims = await self._claim(tick)
        except Exception as exc:
            log_background_error(exc, "pull.not_claimed")
            return None
        self._faults.reset()
        for claim in claims:
            task = asyncio.create_task(self._pull_source(claim, tick), name=f"pull {claim.source_id}")
            self._pulls.add(task)
            task.add_done_callback(self._pulls.discard)
        return len(claims)

    async def _wait_for_slot(self, service: Service) -> None:
        stopping = asyncio.create_task(service.stopping.wait())
        await asyncio.wait({stopping, *self._pulls}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()

    async def _claim(self, tick: str) -> list[PullClaim]:
        pace = self._pace
        room = pace.concurrency - len(self._pulls)
        trace_id = telemetry.trace_id_of(tick)
        return await self._gateway.claim_pull_sources(room, pace.lease, pace.per_workspace, trace_id)

    async def _pull_source(self, claim: PullClaim, tick: str) -> None:
        with telemetry.tracer().start_as_current_span("pull_source", context=telemetry.context_from(tick)) as span:
            span.set_attribute("autopost.workspace_id", str(claim.workspace_id))
            span.set_attribute("autopost.source_id", claim.source_id)
            try:
                await self._finish(claim, await self._result_of(claim))
            except asyncio.CancelledError:
                await asyncio.shield(self._finish(claim, _PullResult(outcome="interrupted")))
                raise

    async def _result_of(self, claim: PullClaim) -> "_PullResult":
        """Catches everything: an error of one source ends only its own pull."""
        try:
            async with asyncio.timeout(self._pace.budget.total_seconds()):
                ended = await self._puller.pull(claim)
            return _PullResult(outcome=ended.outcome, ended=ended)
        except Misconfigured as exc:
            return _PullResult(outcome="config_error", error=_error(exc.code, exc))
        except PullRejected as exc:
            return _PullResult(outcome="rejected", error=_error(exc.code, exc), wait=exc.wait)
        except PullFailed as exc:
            return _PullResult(outcome="failed", error=_error(exc.code, exc), wait=exc.wait)
        except Interrupted:
            return _PullResult(outcome="interrupted")
        except TimeoutError:
            return _PullResult(
                outcome="failed", error={"code": "over_budget", "message": "the pull exceeded AUTOPOST_PULL_TIMEOUT"}
            )
        except Exception as exc:
            get_logger().warning("pull.broke", source_id=claim.source_id, exc_info=exc)
            return _PullResult(
                outcome="failed",
                error={
                    "code": type(exc).__name__,
                    "message": "the pull failed with an internal error; the service log has the traceback",
                },
            )

    async def _finish(self, claim: PullClaim, result: "_PullResult") -> None:
        pulls_total.add(1, {"kind": claim.kind, "outcome": result.outcome})
        get_logger().info(
            "source.pulled",
            workspace_id=str(claim.workspace_id),
            source_id=claim.source_id,
            run_id=str(claim.run_id),
            outcome=result.outcome,
            **({"error": result.error} if result.error else {}),
        )
        more = result.ended is not None and result.ended.more
        try:
            await self._gateway.finish_pull(claim, result.outcome, result.error, result.wait, more=more)
        except Exception as exc:  # the lease expires, and the source is pulled again
            why = None if is_retryable(exc) else exc
            get_logger().warning("pull.not_finished", source_id=claim.source_id, error=type(exc).__name__, exc_info=why)


class _PullResult(Struct, frozen=True, kw_only=True):
    outcome: PullOutcome
    error: dict[str, Any] | None = None
    wait: timedelta | None = None
    ended: PullFinished | None = None


def _new_trace() -> str:
    """All pulls of a tick share one trace; a tick without claims has none."""
    return f"00-{token_hex(16)}-{token_hex(8)}-01"


def _error(code: str, exc: Exception) -> dict[str, Any]:
    return {"code": code, "message": redact(str(exc))[:500]}
