"""Write the retry policy of this dispatcher's configuration into the database, for all services.

The policy is used in SQL: by commits of every replica, by the monitor's recovery and by operators. So each dispatcher
stores it at start. The last one that started with other values wins, for all replicas, and logs the previous values.
"""

from datetime import timedelta
from typing import Any, Protocol

from autopost_runtime.lifecycle.backoff import Backoff
from autopost_runtime.lifecycle.service import Service, Stopping
from autopost_runtime.postgres.errors import is_retryable
from autopost_runtime.telemetry.logs import get_logger

from autopost_dispatcher.config import DispatcherConfig


class Policies(Protocol):
    async def adopt_policy(
        self,
        max_attempts: int,
        backoff_base: timedelta,
        backoff_cap: timedelta,
        group_cooldown: timedelta,
        probe_base: timedelta,
        probe_cap: timedelta,
    ) -> dict[str, Any] | None: ...


async def adopt_policy(config: DispatcherConfig, gateway: Policies, service: Service) -> None:
    """Retries while the database is unavailable; raises ``Stopping`` when the service stops meanwhile."""
    backoff = Backoff(timedelta(milliseconds=200), timedelta(seconds=5))
    while True:
        try:
            before = await gateway.adopt_policy(
                config.max_attempts,
                config.backoff_base,
                config.backoff_cap,
                config.group_cooldown,
                config.probe_base,
                config.probe_cap,
            )
        except Exception as exc:
            if not is_retryable(exc):
                raise
            get_logger().warning("database.away", error=type(exc).__name__)
        else:
            if before is not None:
                get_logger().warning("policy.changed", before=before)
            return
        if await service.sleep(backoff.next()):
            raise Stopping
