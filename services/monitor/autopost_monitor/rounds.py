"""Periodic work: a round, a pause, again; an unreachable database ends a round, not the service."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from autopost_runtime.logs import get_logger
from autopost_runtime.postgres import is_retryable
from autopost_runtime.service import Service


async def every(interval: timedelta, name: str, round_: Callable[[], Awaitable[object]], service: Service) -> None:
    """The first round at once."""
    while not service.stopping.is_set():
        try:
            await round_()
        except Exception as exc:
            if not is_retryable(exc):
                raise
            get_logger().warning("round.failed", round=name, error=type(exc).__name__)
        await service.sleep(interval)
