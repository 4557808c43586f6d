"""Recover deliveries whose lease has expired, and wake the dispatchers."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

from autopost_contracts.ids import WorkspaceId
from autopost_contracts.subjects import Topology
from autopost_runtime.lifecycle.set_aside import SetAside
from autopost_runtime.nats.bus import Bus
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

from autopost_monitor.gateway import Gateway
from autopost_monitor.leader.each_workspace import for_each_workspace

recovered_total = metrics.counter(
    "autopost_leases_recovered_total", "Deliveries recovered after an expired lease, by kind of lease."
)


class Recovery:
    def __init__(self, gateway: Gateway, bus: Bus, topology: Topology, claimed_lease: timedelta) -> None:
        self._gateway = gateway
        self._bus = bus
        self._topology = topology
        self._claimed_lease = claimed_lease
        self._aside = SetAside("recover", gateway)

    async def run_once(self) -> None:
        await for_each_workspace(await self._gateway.active_workspaces(), self._aside, self._recover)

    async def _recover(self, workspace: WorkspaceId) -> None:
        sending = await _all_of(partial(self._gateway.recover_sending_leases, workspace))
        claimed = await _all_of(partial(self._gateway.recover_claimed_leases, workspace, self._claimed_lease))
        if sending or claimed:
            self._report(workspace, sending, claimed)

    def _report(self, workspace: WorkspaceId, sending: int, claimed: int) -> None:
        recovered_total.add(sending, {"lease": "sending"})
        recovered_total.add(claimed, {"lease": "claimed"})
        get_logger().warning("leases.recovered", workspace_id=str(workspace), sending=sending, claimed=claimed)
        self._bus.wake(self._topology.wakeup_dispatch(workspace))


async def _all_of(take: Callable[[], Awaitable[int]]) -> int:
    """Repeat until nothing is left: one call recovers a limited number."""
    total = 0
    while taken := await take():
        total += taken
    return total
