"""Ending tasks that may not notice: nats-py swallows a cancellation that arrives while it flushes."""

import asyncio
from collections.abc import Collection
from datetime import timedelta
from typing import Any

AGAIN = 0.05


async def end(tasks: Collection[asyncio.Task[Any]], within: timedelta = timedelta(seconds=1)) -> bool:
    """Cancels until all have ended and keeps their exceptions quiet; ``False`` when time ran out first."""
    deadline = asyncio.get_running_loop().time() + within.total_seconds()
    while pending := [task for task in tasks if not task.done()]:
        if asyncio.get_running_loop().time() > deadline:
            return False
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=AGAIN)
    await asyncio.gather(*tasks, return_exceptions=True)
    return True


def heed() -> None:
    """Raises what was swallowed: the current task was cancelled and does not know it."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
