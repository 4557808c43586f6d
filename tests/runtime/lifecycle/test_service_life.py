"""A service from its start to its exit code, as a process of its own."""

import asyncio
import json
import os
import signal
import sys
import textwrap
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from autopost_runtime.lifecycle.service import Service
from harness.eventually import eventually

URL = {"AUTOPOST_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}

TINY = """
import asyncio
import time
from datetime import timedelta

from autopost_runtime.config.load import ServiceConfig
from autopost_runtime.telemetry.logs import get_logger
from autopost_runtime.lifecycle.service import run


async def work(config, service):
    log = get_logger()
BODY


run("tiny", ServiceConfig, work)
"""


class Running:
    """A tiny service whose work is the text of a function body."""

    def __init__(self, process: asyncio.subprocess.Process, output: Path) -> None:
        self._process = process
        self._output = output

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._output.read_text().splitlines() if line.startswith("{")]

    @property
    def text(self) -> str:
        return self._output.read_text()

    def events(self) -> list[str]:
        return [line["event"] for line in self.lines]

    async def said(self, event: str) -> dict[str, Any]:
        return await eventually(lambda: next((line for line in self.lines if line["event"] == event), None))

    def tell(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def exit_code(self, within: float = 15) -> int:
        return await asyncio.wait_for(self._process.wait(), within)

    def end(self) -> None:
        if self._process.returncode is None:
            self._process.kill()


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    started: list[Running] = []

    async def run(body: str, **env: str) -> Running:
        script = tmp_path / f"service{len(started)}.py"
        script.write_text(TINY.replace("BODY", textwrap.indent(textwrap.dedent(body), "    ")))
        output = script.with_suffix(".log")
        with output.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                sys.executable, str(script), stdout=file, stderr=file, env={"PATH": os.environ["PATH"], **URL, **env}
            )
        started.append(Running(process, output))
        return started[-1]

    yield run
    for running in started:
        running.end()
        await running.exit_code()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_service_told_to_stop_finishes_its_work_and_exits_0(start, number):
    service = await start("await service.stopping.wait()\nlog.info('drained')")
    await service.said("service.started")

    service.tell(number)

    assert await service.exit_code() == 0
    assert service.events()[-2:] == ["drained", "service.stopped"]


async def test_a_second_signal_ends_it_at_once_with_1(start):
    service = await start("await service.stopping.wait()\nlog.info('waiting')\nawait asyncio.sleep(60)")
    await service.said("service.started")
    service.tell(signal.SIGTERM)
    await service.said("waiting")

    service.tell(signal.SIGTERM)

    assert await service.exit_code() == 1
    assert service.events()[-1] == "waiting"  # it neither drained nor said that it had not


async def test_an_unexpected_exception_is_one_error_line_and_exit_1(start):
    service = await start("raise ValueError('no sense')")

    assert await service.exit_code() == 1
    (line,) = [line for line in service.lines if line["level"] == "error"]
    assert (line["event"], line["error"]["type"], line["error"]["message"]) == (
        "service.failed",
        "ValueError",
        "no sense",
    )
    assert "Traceback" not in service.text


async def test_a_spawned_task_that_fails_takes_the_service_with_it(start):
    service = await start(
        """
        async def fail():
            raise ValueError('no sense')
        service.spawn(fail(), 'relay')
        await service.stopping.wait()
        """
    )

    assert await service.exit_code() == 1
    (line,) = [line for line in service.lines if line["level"] == "error"]
    assert (line["event"], line["task"]) == ("task.failed", "relay")


async def test_tasks_left_after_the_work_are_cancelled_and_awaited(start):
    service = await start(
        """
        async def endless():
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(0)
                log.info('cleaned up')
        service.spawn(endless(), 'endless')
        await service.stopping.wait()
        """
    )
    await service.said("service.started")

    service.tell(signal.SIGTERM)

    assert await service.exit_code() == 0
    assert "cleaned up" in service.events()


async def test_work_that_does_not_drain_in_time_is_cut_and_exits_1(start):
    service = await start("await asyncio.sleep(60)", AUTOPOST_DRAIN_TIMEOUT="200ms")
    await service.said("service.started")

    service.tell(signal.SIGTERM)

    assert await service.exit_code(within=5) == 1
    assert "service.drain_timed_out" in service.events()


async def test_a_stuck_event_loop_does_not_outlive_the_limit(start):
    service = await start(
        """
        import autopost_runtime.lifecycle.service as life
        life.STOP_LIMIT = timedelta(seconds=1)
        await service.stopping.wait()
        time.sleep(60)
        """
    )
    await service.said("service.started")

    service.tell(signal.SIGTERM)

    assert await service.exit_code(within=5) == 1
    assert "exiting" in service.text


async def test_bad_config_is_one_line_per_problem_and_exit_2(start):
    service = await start("pass", AUTOPOST_DATABASE_URL="mysql://u:hunter2@db", AUTOPOST_HEALTH_PORT="high")

    assert await service.exit_code() == 2
    lines = service.text.splitlines()
    assert [line.split(": ")[:2] for line in lines] == [
        ["autopost-tiny", "AUTOPOST_DATABASE_URL"],
        ["autopost-tiny", "AUTOPOST_HEALTH_PORT"],
    ]
    assert "hunter2" not in service.text


async def test_a_port_that_is_taken_is_an_error_that_names_it(start):
    first = await start("await service.stopping.wait()")
    port = (await first.said("health.listening"))["port"]

    second = await start("pass", AUTOPOST_HEALTH_PORT=str(port))

    assert await second.exit_code() == 1
    assert (await second.said("service.failed"))["port"] == port


async def test_health_answers_while_it_works_and_says_where(start):
    service = await start("await service.stopping.wait()")
    port = (await service.said("health.listening"))["port"]

    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/healthz") as answer:
        assert answer.status == 200
    service.tell(signal.SIGTERM)
    assert await service.exit_code() == 0


async def test_a_database_that_is_away_does_not_keep_it_from_stopping(start):
    service = await start(
        """
        from autopost_runtime.postgres.pool import open_database
        async with open_database(config, service):
            log.info('never')
        """
    )
    await service.said("database.away")

    service.tell(signal.SIGTERM)

    assert await service.exit_code() == 0
    assert "never" not in service.events()


async def test_a_variable_that_nothing_reads_is_warned_about_and_never_refused(start):
    service = await start("await service.stopping.wait()", AUTOPOST_POLL_INTERVALL="1s")

    warned = await service.said("config.unknown_variable")
    await service.said("service.started")

    assert (warned["variable"], warned["nearest"]) == ("AUTOPOST_POLL_INTERVALL", "AUTOPOST_POLL_INTERVAL")


async def test_a_variable_whose_name_is_no_text_ends_no_service(start):
    service = await start("await service.stopping.wait()", **{"AUTOPOST_\udcff": "1"})

    warned = await service.said("config.unknown_variable")
    await service.said("service.started")

    assert warned["variable"] == "AUTOPOST_\\udcff"


async def test_sleep_ends_early_when_the_service_stops():
    service = Service("test")

    assert await service.sleep(timedelta(milliseconds=1)) is False

    asyncio.get_running_loop().call_soon(service.stop)
    assert await service.sleep(timedelta(minutes=1)) is True
    assert await service.sleep(timedelta(minutes=1)) is True
