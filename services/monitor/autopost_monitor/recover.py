"""Take deliveries back from workers that went silent, and wake the dispatchers for them."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

from autopost_contracts.ids import WorkspaceId
from autopost_contracts.subjects import Topology
from autopost_runtime import metrics
from autopost_runtime.jetstream import Bus
from autopost_runtime.logs import get_logger

from autopost_monitor.gateway import Gateway

recovered_total = metrics.counter("autopost_leases_recovered_total", "Deliveries taken back, by kind of lease.")


class Recovery:
    def __init__(self, gateway: Gateway, bus: Bus, topology: Topology, claimed_lease: timedelta) -> None:
        self._gateway = gateway
        self._bus = bus
        self._topology = topology
        self._claimed_lease = claimed_lease

    async def round(self) -> None:
        for workspace in await self._gateway.active_workspaces():
            sending = await _all_of(partial(self._gateway.recover_sending_leases, workspace))
            claimed = await _all_of(partial(self._gateway.recover_claimed_leases, workspace, self._claimed_lease))
            if sending or claimed:
                self._tell(workspace, sending, claimed)

    def _tell(self, workspace: WorkspaceId, sending: int, claimed: int) -> None:
        recovered_total.add(sending, {"lease": "sending"})
        recovered_total.add(claimed, {"lease": "claimed"})
        get_logger().warning("leases.recovered", workspace_id=str(workspace), sending=sending, claimed=claimed)
        self._bus.wake(self._topology.wakeup_dispatch(workspace))


async def _all_of(take: Callable[[], Awaitable[int]]) -> int:
    """A call takes a bounded number; after a crash of many there are more."""
    total = 0
    while taken := await take():
        total += taken
    return total
