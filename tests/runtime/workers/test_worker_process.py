"""Foreign input is worked on in processes that are ended when they take too long."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from autopost_runtime.lifecycle.fair_slots import QueueFull
from autopost_runtime.workers.worker_process import CallFailed, TooComplex, WorkerProcesses
from harness.eventually import eventually
from runtime.support.worker_calls import Sum, add, environment, fail, fill_memory, hold_the_gil, meet, spin

SHORT = timedelta(milliseconds=200)


@pytest.fixture(autouse=True)
def known_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers find the functions of these tests."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


@pytest.fixture
async def workers() -> AsyncIterator[WorkerProcesses]:
    async with WorkerProcesses(2, cpu=SHORT) as running:
        yield running


async def test_a_call_returns_what_the_function_returns_and_its_worker_is_used_again(workers: WorkerProcesses) -> None:
    first = await workers.run(add, Sum((1, 2)), holder="a")
    second = await workers.run(add, Sum((3, 4)), holder="b")

    assert (first.total, second.total) == (3, 7)
    assert first.pid == second.pid != os.getpid()


@pytest.mark.parametrize(("function", "argument"), [(spin, ""), (hold_the_gil, 30_000_000)])
async def test_a_call_that_never_ends_is_ended_and_the_next_one_is_served(
    workers: WorkerProcesses, function: object, argument: object
) -> None:
    with pytest.raises(TooComplex):
        await workers.run(function, argument, holder="a")  # type: ignore[arg-type]

    assert (await workers.run(add, Sum((1, 2)), holder="a")).total == 3


async def test_a_call_that_takes_too_much_memory_ends_its_worker_alone() -> None:
    async with WorkerProcesses(1, memory=256 * 1024**2) as workers:
        with pytest.raises(TooComplex):
            await workers.run(fill_memory, 1024**3, holder="a")

        assert (await workers.run(add, Sum((1, 2)), holder="a")).total == 3


async def test_an_exception_is_told_by_its_name_and_the_worker_goes_on(workers: WorkerProcesses) -> None:
    before = await workers.run(add, Sum(()), holder="a")

    with pytest.raises(CallFailed, match="ValueError"):
        await workers.run(fail, "what a stranger wrote", holder="a")

    assert (await workers.run(add, Sum(()), holder="a")).pid == before.pid


async def test_a_worker_knows_nothing_of_the_services_environment(
    workers: WorkerProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOPOST_SECRETS_KEY", "of great value")

    assert not [name for name in await workers.run(environment, "", holder="a") if name.startswith("AUTOPOST")]


async def test_one_holder_has_one_worker_and_the_others_are_served_meanwhile(tmp_path: Path) -> None:
    async with WorkerProcesses(2, cpu=timedelta(seconds=30)) as workers:
        greedy = [asyncio.create_task(workers.run(spin, str(tmp_path / "one"), holder="greedy")) for _ in range(5)]
        await eventually((tmp_path / "one").exists)

        async with asyncio.timeout(20):  # those who spin do so for longer
            served = [await workers.run(add, Sum((place,)), holder="modest") for place in range(5)]

        assert [each.total for each in served] == [0, 1, 2, 3, 4]
        assert not any(task.done() for task in greedy)
        for task in greedy:
            task.cancel()
        await asyncio.gather(*greedy, return_exceptions=True)


async def test_two_holders_work_at_the_same_time(workers: WorkerProcesses, tmp_path: Path) -> None:
    await asyncio.gather(*(workers.run(meet, str(tmp_path), holder=holder) for holder in "ab"))


async def test_too_many_calls_of_one_holder_are_refused_and_the_others_are_not() -> None:
    async with WorkerProcesses(2, waiting=2, cpu=timedelta(seconds=30)) as workers:
        greedy = [asyncio.create_task(workers.run(spin, "", holder="greedy")) for _ in range(3)]
        await asyncio.sleep(0)

        with pytest.raises(QueueFull):
            await workers.run(add, Sum(()), holder="greedy")

        assert (await workers.run(add, Sum((1,)), holder="modest")).total == 1
        for task in greedy:
            task.cancel()
        await asyncio.gather(*greedy, return_exceptions=True)


async def test_a_cancelled_call_ends_its_worker_and_gives_its_slot_back(tmp_path: Path) -> None:
    async with WorkerProcesses(1, cpu=timedelta(seconds=30)) as workers:
        call = asyncio.create_task(workers.run(spin, str(tmp_path / "pid"), holder="a"))
        pid = await _pid_in(tmp_path / "pid")

        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

        await eventually(lambda: not _lives(pid))
        assert (await workers.run(add, Sum((1,)), holder="a")).total == 1


async def test_a_worker_that_the_system_ended_is_replaced(workers: WorkerProcesses) -> None:
    first = await workers.run(add, Sum(()), holder="a")
    os.kill(first.pid, signal.SIGKILL)
    await eventually(lambda: not _lives(first.pid))

    assert (await workers.run(add, Sum(()), holder="a")).pid != first.pid


@pytest.mark.parametrize("call", ["spin", "add"])
async def test_no_worker_outlives_a_service_that_is_killed(tmp_path: Path, call: str) -> None:
    service = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "runtime.support.worker_service", call, str(tmp_path / "pid")
    )
    worker = await _pid_in(tmp_path / "pid")

    service.kill()
    await service.wait()

    await eventually(lambda: not _lives(worker), within=timedelta(seconds=60))


async def _pid_in(path: Path) -> int:
    return int(await eventually(lambda: path.exists() and path.read_text()))


def _lives(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False
