"""Tasks that swallow a cancellation, as a library of ours does, still end; those that never do are reported."""

import asyncio
import contextlib
from datetime import timedelta

import pytest
from autopost_runtime.lifecycle.cancelling import end, heed
from autopost_runtime.lifecycle.service import Service

PLENTY = timedelta(minutes=1)


async def swallowing(times: int, started: asyncio.Event) -> None:
    started.set()
    for _ in range(times):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
    await asyncio.Event().wait()


async def started(times: int) -> asyncio.Task[None]:
    running = asyncio.Event()
    task = asyncio.create_task(swallowing(times, running))
    await running.wait()
    return task


async def test_a_task_that_swallows_its_cancellation_is_cancelled_again():
    task = await started(times=3)

    assert await end([task], PLENTY)
    assert task.cancelled()


async def test_a_task_that_never_ends_is_said_so():
    task = await started(times=10)

    assert not await end([task], timedelta(milliseconds=60))
    assert await end([task], PLENTY)


async def test_a_swallowed_cancellation_can_be_heeded_later():
    async def deaf() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        heed()

    task = asyncio.create_task(deaf())
    await asyncio.wait({task}, timeout=0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_service_with_a_stuck_task_does_not_end_well():
    service = Service("test")
    running = asyncio.Event()
    task = service.spawn(swallowing(30, running), "stuck")
    await running.wait()

    await service.end_tasks()

    assert service.exit_code == 1
    while not task.done():
        await end([task])
