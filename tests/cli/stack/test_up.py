"""``autopost up`` seen from outside, by a shell or a tool that starts it; its services are dummies."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import dummy_stack as stacks
from harness.eventually import eventually

TEN_SECONDS = 10


Running = subprocess.Popen[bytes]


@contextlib.contextmanager
def running(data: Path, words: str = "", *backends: str) -> Iterator[Running]:
    process = subprocess.Popen(
        [sys.executable, stacks.__file__, data, words, *backends],
        env={**os.environ, "PYTHONPATH": str(Path(stacks.__file__).parents[1])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


async def ready_line(process: Running) -> dict[str, Any]:
    assert process.stdout
    return dict(json.loads(await asyncio.to_thread(process.stdout.readline)))


async def ended(process: Running) -> tuple[bytes, bytes]:
    """What it wrote to stdout and to stderr."""
    return await asyncio.to_thread(process.communicate, timeout=30)


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def gone(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


async def test_it_says_once_where_everything_is_and_ends_well_when_told(tmp_path: Path) -> None:
    with running(tmp_path, "", "nats", "s3") as process:
        line = await ready_line(process)
        children = children_of(process.pid)

        process.send_signal(signal.SIGTERM)
        rest, said = await asyncio.wait_for(ended(process), timeout=TEN_SECONDS)

    assert set(line) == {"ingest", "dispatcher", "simulator", "database_url", "nats_url", "s3_url", "health"}
    assert (process.returncode, rest) == (0, b"")
    assert b"\ningest     | told to stop\n" in said
    assert len(children) == 4
    assert gone(children)


async def test_told_to_stop_while_starting_it_leaves_nothing_running(tmp_path: Path) -> None:
    with running(tmp_path, "", "postgres", "nats", "s3") as process:
        children = await eventually(lambda: children_of(process.pid))

        process.send_signal(signal.SIGINT)
        rest, _ = await ended(process)

    assert (process.returncode, rest) == (0, b"")
    assert gone(children)


async def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with running(tmp_path, "stubborn", "postgres", "nats") as process:
        await ready_line(process)
        children = children_of(process.pid)

        process.send_signal(signal.SIGINT)
        await eventually(lambda: "stopping" in (tmp_path / "logs" / "up.log").read_text())
        process.send_signal(signal.SIGINT)
        await asyncio.wait_for(ended(process), timeout=5)

    assert process.returncode == 0
    assert gone(children)
    assert "restarting" not in (tmp_path / "logs" / "up.log").read_text()


async def test_killed_it_takes_its_children_along(tmp_path: Path) -> None:
    with running(tmp_path, "", "postgres", "nats", "s3") as process:
        await ready_line(process)
        children = children_of(process.pid)

        process.kill()

        assert len(children) == 5
        await eventually(lambda: gone(children))


async def test_after_a_kill_the_same_data_folder_can_be_used_at_once(tmp_path: Path) -> None:
    with running(tmp_path, "", "postgres") as process:
        await ready_line(process)
        process.kill()
        await asyncio.to_thread(process.wait)

        with running(tmp_path, "", "postgres") as successor:
            assert (await ready_line(successor))["database_url"]


async def test_a_refused_configuration_ends_it_with_code_2_and_the_reason(tmp_path: Path) -> None:
    with running(tmp_path, "refuse") as process:
        out, said = await ended(process)

    assert (process.returncode, out) == (2, b"")
    assert said.endswith(b" cannot start with this configuration:\nAUTOPOST_EXAMPLE is not set: expected a number\n")


async def test_a_pipe_that_nobody_reads_stops_neither_the_services_nor_the_end(tmp_path: Path) -> None:
    with running(tmp_path, "noisy") as process:
        await ready_line(process)

        process.send_signal(signal.SIGTERM)

        assert await asyncio.to_thread(process.wait, timeout=TEN_SECONDS) == 0


async def test_a_data_folder_in_use_is_refused_and_left_alone(tmp_path: Path) -> None:
    with running(tmp_path) as first:
        await ready_line(first)
        with running(tmp_path) as second:
            _, said = await ended(second)

        assert second.returncode == 1
        assert f"{tmp_path} is in use by process {first.pid}".encode() in said
        assert first.returncode is None
