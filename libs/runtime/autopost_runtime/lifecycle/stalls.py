"""The bulkhead: a platform that hangs must not fill this process with calls that wait for it.

A group whose oldest call has no answer for seconds, and a group with deliveries that wait for a place in the share of
their platform, get nothing more: ``stall_groups`` keeps claims away from them while it lasts, and
for a moment longer should this process die.
"""

from collections.abc import Callable, Collection, Iterable
from datetime import timedelta
from typing import Protocol

from autopost_contracts.ids import WorkspaceId

from autopost_runtime.lifecycle.pace import RateGroup
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.lifecycle.set_aside import error_name
from autopost_runtime.postgres.pool import is_retryable
from autopost_runtime.telemetry.logs import get_logger

LOOKS = 5
"""How often to look while ``after`` passes once."""
NO_LONGER = timedelta()


class Stalls(Protocol):
    async def stall_groups(self, groups: Collection[RateGroup], lasts: timedelta) -> None: ...


class Calls(Protocol):
    def hanging(self, seconds: float) -> Iterable[RateGroup]:
        """The groups whose oldest call has no answer for so long, and that got no other answer since it began."""


def none_waiting(_: float) -> Iterable[RateGroup]:
    return ()


async def watch_stalls(
    stalls: Stalls,
    calls: Calls,
    groups_waiting: Callable[[float], Iterable[RateGroup]],
    service: Service,
    after: timedelta,
    over_in: Callable[[WorkspaceId], None],
) -> None:
    """``groups_waiting``: the groups with deliveries that have waited for a place for so many seconds. ``over_in``
    learns where something may be claimed again.
    """
    every, stalled = after / LOOKS, set[RateGroup]()
    while not await service.sleep(every):
        now = {*calls.hanging(after.total_seconds()), *groups_waiting(every.total_seconds())}
        for workspace, platform, rate_group in now - stalled:
            get_logger().warning("group.stalled", workspace_id=str(workspace), platform=platform, rate_group=rate_group)
        try:
            if now:
                await stalls.stall_groups(now, after * 2)
            if over := stalled - now:
                await stalls.stall_groups(over, NO_LONGER)
                for workspace, _, _ in over:
                    over_in(WorkspaceId(workspace))
            stalled = now
        except Exception as exc:
            get_logger().warning(
                "groups.not_stalled", exc_info=None if is_retryable(exc) else exc, error=error_name(exc)
            )
