"""Subscriber that records wakeups."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta

from autopost_contracts.subjects import ConsumerSpec
from autopost_runtime.nats.bus import Bus
from harness.eventually import eventually

SOON = timedelta(seconds=30)


@contextlib.asynccontextmanager
async def listening(bus: Bus, consumer: ConsumerSpec) -> AsyncIterator[list[str]]:
    heard: list[str] = []
    task = asyncio.create_task(bus.wakeups(consumer, heard.append))
    try:
        yield heard
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def heard_again(bus: Bus, heard: list[str], subject: str) -> None:
    """Wakes at every look, as the next post would, until it is heard."""
    heard.clear()

    def look() -> bool:
        bus.wake(subject)
        return subject in heard

    await eventually(look, within=SOON)
