"""The six criteria hold, whatever wakes the dispatcher, and the demo notices when one does not."""

import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from datetime import timedelta

import msgspec
import pytest
from autopost_cli.demo.command import act
from autopost_cli.embedded.folders import scratch
from autopost_cli.embedded.postgres import FAST, PostgresServer
from harness.backends import scratch_root

from e2e.conftest import StartSystem

pytestmark = pytest.mark.time_limit(480)

PATIENCE = timedelta(seconds=40)


async def test_wakeups_alone_carry_the_demo_when_the_poll_is_a_minute_away(start_system: StartSystem) -> None:
    system = await start_system(AUTOPOST_POLL_INTERVAL="60s")

    findings = await act(system.scene(PATIENCE))

    assert [finding.failed for finding in findings] == [[]] * 7


async def test_polling_alone_carries_the_demo_when_nats_is_stopped(start_system: StartSystem) -> None:
    system = await start_system(AUTOPOST_NATS_URL=None)
    await system.stack.stop_nats()

    findings = await act(system.scene(PATIENCE))

    assert [finding.failed for finding in findings] == [[]] * 7


async def test_the_demo_notices_each_sabotage_and_nothing_else(start_system: StartSystem) -> None:
    system = await start_system()

    for number in (1, 2, 3, 4, 5, 6):
        findings = await act(system.scene(timedelta(seconds=10)), sabotage=number)

        assert [place for place, finding in enumerate(findings) if finding.failed] == [number]


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--sabotage", "3"), 1)])
async def test_the_command_runs_on_an_external_postgres_16_and_tells_by_its_exit_code(
    options: tuple[str, ...], code: int
) -> None:
    with scratch("autopost-test-", scratch_root()) as folder:
        async with PostgresServer(folder / "postgres", settings=FAST, major=16) as server:
            process = await create_subprocess_exec(
                *(sys.executable, "-m", "autopost_cli", "demo", "--json", *options),
                env={"AUTOPOST_DATABASE_URL": server.url(), "PATH": "/usr/bin:/bin"},
                stdout=PIPE,
            )
            output, _ = await process.communicate()

    told = msgspec.json.decode(output)
    assert (process.returncode, told["holds"]) == (code, code == 0)
    assert [len(criterion["expected"]) > 0 for criterion in told["criteria"]] == [True] * 7
