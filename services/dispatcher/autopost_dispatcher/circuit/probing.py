"""Let one delivery try when a platform answers again that was away: see ``autopost_runtime.lifecycle.probing``."""

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Protocol

from autopost_adapters.base import Adapter
from autopost_contracts.ids import RunId, WorkspaceId
from autopost_runtime.lifecycle import probing
from autopost_runtime.lifecycle.probing import Probe
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.postgres.pool import may_have_committed

from autopost_dispatcher.claim.claim import SendJob
from autopost_dispatcher.claim.lease import Lease
from autopost_dispatcher.gateway import Claimed
from autopost_dispatcher.send.send import Identities


class Circuits(probing.Circuits, Protocol):
    async def claim_trial(self, probe: Probe, run_id: RunId, lease: timedelta) -> Claimed: ...


class Prober(probing.Prober):
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
        super().__init__(circuits, adapters, identities, service, every=every, timeout=timeout)
        self._trials = circuits
        self._run_id = run_id
        self._lease = lease
        self._take = take
        self._lost = lost

    async def answered(self, probe: Probe) -> None:
        started = time.monotonic()
        try:
            claimed = await self._trials.claim_trial(probe, self._run_id, self._lease)
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
