"""Pull what is due: a few sources at a time, each on its own, whatever the others do.

Who pulls which source is decided by the database; a replica that dies leaves leases that run out. One that is told to
stop gives back what it holds.
"""

import asyncio
from datetime import timedelta
from secrets import token_hex
from typing import Any

from autopost_runtime import metrics, telemetry
from autopost_runtime.cancelling import end
from autopost_runtime.database_errors import is_retryable
from autopost_runtime.logs import get_logger
from autopost_runtime.redaction import redact
from autopost_runtime.service import Service
from msgspec import Struct

from autopost_ingest.pull.endings import Ended, Interrupted, PullFailed, PullRejected
from autopost_ingest.pull.gateway import Claim, Outcome, PullGateway
from autopost_ingest.pull.one import PullOne
from autopost_ingest.pull.sources import Misconfigured
from autopost_ingest.trouble import put_up_with

pulls_total = metrics.counter("autopost_pulls_total", "Pulls of sources, by kind and outcome.")

STOP_LIMIT = timedelta(seconds=3)


class Pace(Struct, frozen=True, kw_only=True):
    concurrency: int = 8
    per_workspace: int = 4
    """At the same time, on all replicas together."""
    budget: timedelta = timedelta(seconds=90)
    """For one pull, from claim to end."""
    lease: timedelta = timedelta(seconds=180)
    poll: timedelta = timedelta(seconds=2)


class Puller:
    def __init__(self, gateway: PullGateway, one: PullOne, pace: Pace) -> None:
        self._gateway = gateway
        self._one = one
        self._pace = pace
        self._pulls: set[asyncio.Task[None]] = set()

    async def run(self, service: Service) -> None:
        try:
            while not service.stopping.is_set():
                claimed = await self._begin()
                if not claimed:
                    await service.sleep(self._pace.poll)
                elif len(self._pulls) >= self._pace.concurrency:
                    await self._for_room(service)
        finally:
            await self.stop()

    async def round(self) -> int:
        """Pulls what is due now and waits for it; how many there were."""
        tick = _new_trace()
        claims = await self._claim(tick)
        await asyncio.gather(*(self._pull(claim, tick) for claim in claims))
        return len(claims)

    async def stop(self) -> None:
        await end(self._pulls, STOP_LIMIT)

    async def _begin(self) -> int:
        if len(self._pulls) >= self._pace.concurrency:
            return 0
        tick = _new_trace()
        try:
            claims = await self._claim(tick)
        except Exception as exc:
            put_up_with(exc, "pull.not_claimed")
            return 0
        for claim in claims:
            task = asyncio.create_task(self._pull(claim, tick), name=f"pull {claim.source_id}")
            self._pulls.add(task)
            task.add_done_callback(self._pulls.discard)
        return len(claims)

    async def _for_room(self, service: Service) -> None:
        stopping = asyncio.create_task(service.stopping.wait())
        await asyncio.wait({stopping, *self._pulls}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()

    async def _claim(self, tick: str) -> list[Claim]:
        pace = self._pace
        room = pace.concurrency - len(self._pulls)
        trace_id = telemetry.trace_id_of(tick)
        return await self._gateway.claim_pull_sources(room, pace.lease, pace.per_workspace, trace_id)

    async def _pull(self, claim: Claim, tick: str) -> None:
        with telemetry.tracer().start_as_current_span("pull_source", context=telemetry.context_from(tick)) as span:
            span.set_attribute("autopost.workspace_id", str(claim.workspace_id))
            span.set_attribute("autopost.source_id", claim.source_id)
            try:
                await self._finish(claim, await self._ending(claim))
            except asyncio.CancelledError:
                await asyncio.shield(self._finish(claim, _Told(outcome="interrupted")))
                raise

    async def _ending(self, claim: Claim) -> "_Told":
        """The one place that catches everything: whatever a source does to us ends its own pull and no other."""
        try:
            async with asyncio.timeout(self._pace.budget.total_seconds()):
                ended = await self._one.pull(claim)
            return _Told(outcome=ended.outcome, ended=ended)
        except Misconfigured as exc:
            return _Told(outcome="config_error", error=_error(exc.code, exc))
        except PullRejected as exc:
            return _Told(outcome="rejected", error=_error(exc.code, exc), wait=exc.wait)
        except PullFailed as exc:
            return _Told(outcome="failed", error=_error(exc.code, exc), wait=exc.wait)
        except Interrupted:
            return _Told(outcome="interrupted")
        except TimeoutError:
            return _Told(outcome="failed", error={"code": "over_budget", "message": "the pull took too long"})
        except Exception as exc:
            get_logger().warning("pull.broke", source_id=claim.source_id, exc_info=exc)
            return _Told(outcome="failed", error={"code": type(exc).__name__, "message": "the pull broke"})

    async def _finish(self, claim: Claim, told: "_Told") -> None:
        pulls_total.add(1, {"kind": claim.kind, "outcome": told.outcome})
        get_logger().info(
            "source.pulled",
            workspace_id=str(claim.workspace_id),
            source_id=claim.source_id,
            run_id=str(claim.run_id),
            outcome=told.outcome,
            **({"error": told.error} if told.error else {}),
        )
        more = told.ended is not None and told.ended.more
        try:
            await self._gateway.finish_pull(claim, told.outcome, told.error, told.wait, more=more)
        except Exception as exc:  # the lease runs out, and the source is pulled again
            why = None if is_retryable(exc) else exc
            get_logger().warning("pull.not_finished", source_id=claim.source_id, error=type(exc).__name__, exc_info=why)


class _Told(Struct, frozen=True, kw_only=True):
    outcome: Outcome
    error: dict[str, Any] | None = None
    wait: timedelta | None = None
    ended: Ended | None = None


def _new_trace() -> str:
    """What a tick claims is one trace, and nothing is traced when it claims nothing."""
    return f"00-{token_hex(16)}-{token_hex(8)}-01"


def _error(code: str, exc: Exception) -> dict[str, Any]:
    return {"code": code, "message": redact(str(exc))[:500]}
