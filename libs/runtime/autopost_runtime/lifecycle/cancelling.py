"""Cancel tasks reliably: nats-py swallows a cancellation that arrives while it flushes."""

import asyncio
from collections.abc import Collection
from datetime import timedelta
from typing import Any

AGAIN = 0.05


async def end(tasks: Collection[asyncio.Task[Any]], within: timedelta = timedelta(seconds=1)) -> bool:
    """Cancel the tasks until all have ended; their exceptions are ignored. ``False`` after a timeout."""
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
    """Raise a cancellation of the current task that a library swallowed."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
