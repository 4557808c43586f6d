"""Ask platforms that do not answer who we are, and let one delivery try when they do.

Which group is asked, and when, is decided by ``take_probes``: each probe goes to one replica. A circuit that no
dispatcher probes stays open.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from autopost_adapters.base import Adapter
from autopost_contracts.ids import RunId, WorkspaceId
from autopost_contracts.outcomes import Failed
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.lifecycle.set_aside import error_name
from autopost_runtime.postgres.pool import is_retryable, may_have_committed
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

from autopost_dispatcher.claim.claim import SendJob
from autopost_dispatcher.claim.lease import Lease
from autopost_dispatcher.gateway import Claimed, Probe
from autopost_dispatcher.send.send import Identities

probes_total = metrics.counter("autopost_probes_total", "Probes of platforms that do not answer, by platform and code.")


class Circuits(Protocol):
    async def take_probes(self) -> list[Probe]: ...

    async def record_probe(self, probe: Probe, probe_at: datetime, error: dict[str, Any] | None) -> str | None: ...

    async def claim_trial(self, probe: Probe, run_id: RunId, lease: timedelta) -> Claimed: ...


class Prober:
    def __init__(
        self,
        circuits: Circuits,
        adapters: Mapping[str, Adapter],
        identities: Identities,
        service: Service,
        *,
        run_id: RunId,
        lease: timedelta,
        every: timedelta,
        timeout: timedelta,
        take: Callable[[list[SendJob]], None],
        lost: Callable[[WorkspaceId, float], None],
    ) -> None:
        """``lost``: the answer to a claim was lost, so that its delivery is with nobody."""
        self._circuits = circuits
        self._adapters = adapters
        self._identities = identities
        self._service = service
        self._run_id = run_id
        self._lease = lease
        self._every = every
        self._timeout = timeout
        self._take = take
        self._lost = lost

    async def run(self) -> None:
        """Until the service stops. Never cancelled during a claim, which would leave an unused lease."""
        async with asyncio.TaskGroup() as asking:
            while not await self._service.sleep(self._every):
                try:
                    for probe in await self._circuits.take_probes():
                        asking.create_task(self._follow_up(probe))
                except Exception as exc:
                    self._failed("probes.not_taken", exc)

    async def _follow_up(self, probe: Probe) -> None:
        """A failure costs this probe: it is due again at the next ``probe_at``."""
        try:
            if probe.is_trial or await self._is_answered(probe):
                await self._try(probe)
        except Exception as exc:
            self._failed("probe.failed", exc, workspace_id=str(probe.workspace_id), platform=probe.platform)

    async def _is_answered(self, probe: Probe) -> bool:
        """Whether a trial may follow."""
        failed = await self._ask(probe)
        if self._service.stopping.is_set() or probe.probe_at is None:
            return False
        error = None
        if failed and not failed.answered:
            error = {"code": failed.code, "category": failed.category, "scope": failed.scope}
        circuit = await self._circuits.record_probe(probe, probe.probe_at, error)
        probes_total.add(1, {"platform": probe.platform, "code": failed.code if failed else "answered"})
        get_logger().info(
            "group.probed",
            workspace_id=str(probe.workspace_id),
            platform=probe.platform,
            rate_group=probe.rate_group,
            code=failed.code if failed else None,
            circuit=circuit,
        )
        return circuit == "half"

    async def _ask(self, probe: Probe) -> Failed | None:
        """``None`` also when there is nothing to ask with: the trial will tell what is missing."""
        adapter = self._adapters.get(probe.platform)
        token = await self._identities.identity(probe.workspace_id, probe.platform, probe.auth_ref)
        if adapter is None or token is None:
            return None
        within = min(self._timeout, probe.within or self._timeout)
        call = asyncio.ensure_future(adapter.probe(token.token, within))
        stop = asyncio.ensure_future(self._service.stopping.wait())
        try:
            await asyncio.wait({call, stop}, return_when=asyncio.FIRST_COMPLETED)
            return call.result() if call.done() else None
        finally:
            call.cancel()
            stop.cancel()

    async def _try(self, probe: Probe) -> None:
        started = time.monotonic()
        try:
            claimed = await self._circuits.claim_trial(probe, self._run_id, self._lease)
        except Exception as exc:
            if may_have_committed(exc):
                self._lost(probe.workspace_id, started)
            raise
        ahead, until = time.monotonic() - claimed.now, started + self._lease.total_seconds()
        jobs = [
            SendJob(claim, claim.slot + ahead, Lease(until), None, started, is_trial=True) for claim in claimed.claims
        ]
        if jobs:
            self._take(jobs)

    def _failed(self, event: str, exc: Exception, **fields: str) -> None:
        get_logger().warning(event, exc_info=None if is_retryable(exc) else exc, error=error_name(exc), **fields)
