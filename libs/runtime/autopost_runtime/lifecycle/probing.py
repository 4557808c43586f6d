"""Ask platforms that do not answer who we are, and let one message try when they do.

Which group is asked, and when, is decided by ``take_probes``: each probe goes to one process. A circuit that nobody
probes stays open.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from autopost_contracts.ids import WorkspaceId
from autopost_contracts.outcomes import Failed
from msgspec import Struct

from autopost_runtime.config.load import Secret
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.lifecycle.set_aside import error_name
from autopost_runtime.postgres.pool import is_retryable
from autopost_runtime.secrets.credentials import Identity
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

LOOK = timedelta(seconds=1)
"""How often to look for platforms that must be asked."""

probes_total = metrics.counter("autopost_probes_total", "Probes of platforms that do not answer, by platform and code.")


class Probe(Struct, frozen=True, kw_only=True):
    """A rate group whose platform is to be asked now, or that may try a delivery now."""

    workspace_id: WorkspaceId
    platform: str
    rate_group: str
    auth_ref: str
    probe_at: datetime | None
    """The fence of a probe."""
    within: timedelta | None
    """The longest time for a probe."""
    is_trial: bool


class Circuits(Protocol):
    async def take_probes(self) -> list[Probe]: ...

    async def record_probe(self, probe: Probe, probe_at: datetime, error: dict[str, Any] | None) -> str | None: ...


class Probed(Protocol):
    """What a probe needs of the adapter of a platform."""

    async def probe(self, token: Secret, within: timedelta) -> Failed | None: ...


class Identities(Protocol):
    async def identity(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Identity | None: ...


class Prober(ABC):
    def __init__(
        self,
        circuits: Circuits,
        adapters: Mapping[str, Probed],
        identities: Identities,
        service: Service,
        *,
        every: timedelta,
        timeout: timedelta,
    ) -> None:
        self._circuits = circuits
        self._adapters = adapters
        self._identities = identities
        self._service = service
        self._every = every
        self._timeout = timeout

    @abstractmethod
    async def answered(self, probe: Probe) -> None:
        """The platform answers again: one message may try."""

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
                await self.answered(probe)
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

    def _failed(self, event: str, exc: Exception, **fields: str) -> None:
        get_logger().warning(event, exc_info=None if is_retryable(exc) else exc, error=error_name(exc), **fields)
