"""What the supervisor promises, with dummy services in the place of the real ones."""

import os
import signal
from datetime import timedelta
from pathlib import Path

import asyncpg
import httpx
import pytest
from autopost_cli.development import BOTS, TOKENS, DevelopmentBot
from autopost_cli.embedded.folders import FolderInUseError
from autopost_cli.embedded.ports import free_port
from autopost_cli.embedded.processes import BackendError
from autopost_cli.stack.stack import Stack
from autopost_cli.stack.supervise import RefusedError, RestartBackoff
from autopost_runtime.config.load import ConfigError
from harness.backends import SURVIVES_A_KILL
from harness.dummy_stack import dummy_stack
from harness.eventually import eventually
from harness.http_client import http_client


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_killed_service_is_restarted_and_reported() -> None:
    async with dummy_stack() as stack:
        before = stack.pid("dispatcher")

        stack.kill("dispatcher", signal.SIGKILL)

        await eventually(lambda: stack.pid("dispatcher") != before)
        await stack.ready("dispatcher")
        assert stack.log_lines("up") == ["dispatcher exited with code -9; restarting (1)"]


def test_restarts_come_at_once_first_then_more_and_more_slowly() -> None:
    backoff = RestartBackoff()

    delays = [backoff.next(lived=timedelta(seconds=1)).total_seconds() for _ in range(8)]

    assert delays == [0, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5]


def test_a_service_that_lived_for_a_while_is_restarted_at_once_again() -> None:
    backoff = RestartBackoff()
    for _ in range(5):
        backoff.next(lived=timedelta(seconds=1))

    assert backoff.next(lived=timedelta(seconds=10)) == timedelta()


async def test_a_service_that_refuses_its_configuration_stops_everything_with_its_message() -> None:
    with pytest.raises(
        RefusedError, match=r"dispatcher cannot start with this configuration(.|\n)*AUTOPOST_EXAMPLE is not set"
    ):
        async with dummy_stack(service_env={"dispatcher": {"DUMMY": "refuse"}}):
            pass


async def test_a_service_that_keeps_crashing_is_not_waited_for_for_ever() -> None:
    with pytest.raises(BackendError, match="ingest was not ready after 1 s"):
        async with dummy_stack(service_env={"ingest": {"DUMMY": "crash"}}, ready_within=timedelta(seconds=1)):
            pass


async def test_services_are_told_to_stop_and_have_time_to_do_it(tmp_path: Path) -> None:
    async with dummy_stack(data=tmp_path) as stack:
        pids = [stack.pid("ingest"), stack.pid("dispatcher")]

    assert stack.log_lines("ingest")[-1] == stack.log_lines("dispatcher")[-1] == "told to stop"
    assert not any(alive(pid) for pid in pids)


async def test_a_service_that_does_not_stop_is_killed_with_its_children() -> None:
    service_env = {"ingest": {"DUMMY": "stubborn parent"}}
    async with dummy_stack(service_env=service_env, drain=timedelta(seconds=0.2)) as stack:
        service = stack.pid("ingest")
        child = int(stack.log_lines("ingest")[0].removeprefix("child "))

    assert not alive(service)
    await eventually(lambda: not alive(child))


async def test_a_service_that_ends_leaves_no_child_behind() -> None:
    async with dummy_stack(service_env={"ingest": {"DUMMY": "parent"}}) as stack:
        child = int(stack.log_lines("ingest")[0].removeprefix("child "))

        stack.kill("ingest", signal.SIGKILL)

        await eventually(lambda: not alive(child))


async def test_a_service_can_be_restarted_with_another_environment() -> None:
    async with dummy_stack(env={"EXAMPLE": "this"}) as stack:
        assert stack.log_lines("ingest") == ["started with this"]

        await stack.restart("ingest", {"EXAMPLE": "that"})

        assert stack.log_lines("ingest") == ["started with this", "told to stop", "started with that"]
        assert not stack.log("up").exists()


async def test_one_data_folder_serves_one_stack_at_a_time(tmp_path: Path) -> None:
    async with dummy_stack(data=tmp_path) as first:
        with pytest.raises(FolderInUseError, match=f"{tmp_path} is in use by process {os.getpid()}"):
            async with dummy_stack(data=tmp_path):
                pass

        assert alive(first.pid("ingest"))


async def test_two_stacks_do_not_get_in_each_others_way() -> None:
    async with dummy_stack("nats") as one, dummy_stack("nats") as two:
        assert one.backends.nats_url != two.backends.nats_url
        assert one.urls["ingest"] != two.urls["ingest"]
        assert one.data != two.data


async def test_without_a_data_folder_nothing_is_kept() -> None:
    async with dummy_stack() as stack:
        assert stack.data.exists()

    assert not stack.data.exists()


async def test_data_are_kept_between_runs_in_a_folder_that_was_named(tmp_path: Path) -> None:
    async with dummy_stack("postgres", data=tmp_path) as stack:
        await run_sql(stack.backends.database_url, "CREATE TABLE kept AS SELECT 42 AS answer")

    async with dummy_stack("postgres", data=tmp_path) as stack:
        assert await run_sql(stack.backends.database_url, "SELECT answer FROM kept") == 42


async def test_a_killed_postgres_comes_back_with_its_data_on_its_port(tmp_path: Path) -> None:
    async with dummy_stack("postgres", data=tmp_path, postgres_settings=SURVIVES_A_KILL) as stack:
        url = stack.backends.database_url
        await run_sql(url, "CREATE TABLE kept AS SELECT 42 AS answer")
        before = stack.pid("postgres")

        stack.kill("postgres", signal.SIGKILL)

        await eventually(lambda: stack.pid("postgres") != before)
        await stack.ready("postgres")
        assert await run_sql(url, "SELECT answer FROM kept") == 42


async def test_nats_can_be_stopped_and_started_again_on_its_port() -> None:
    async with dummy_stack("nats") as stack:
        nats = stack.backends.nats
        assert nats
        port = nats.port

        await stack.stop_nats()
        with pytest.raises(BackendError, match="nats is stopped"):
            stack.pid("nats")
        await stack.start_nats()

        assert stack.backends.nats_url == f"nats://127.0.0.1:{port}"
        assert await nats.answers()


async def test_a_busy_port_is_refused_by_the_name_of_its_variable() -> None:
    port = free_port()
    async with dummy_stack(env={"AUTOPOST_INGEST_PORT": str(port)}) as stack:
        assert stack.urls == {"ingest": f"http://127.0.0.1:{port}"}
        health = stack.health_urls["ingest"].rpartition(":")[2]

        with pytest.raises(ConfigError, match=f"AUTOPOST_INGEST_PORT: port {health} is in use"):
            async with dummy_stack(env={"AUTOPOST_INGEST_PORT": health}):
                pass


async def test_parts_of_the_users_own_take_the_place_of_embedded_ones(postgres_url: str) -> None:
    own = {
        "AUTOPOST_DATABASE_URL": postgres_url,
        "AUTOPOST_NATS_URL": "off",
        "AUTOPOST_S3_ENDPOINT": "http://127.0.0.1:9",
        "AUTOPOST_S3_SECRET_KEY": "a-key-of-mine",
        "AUTOPOST_MAX_API_URL": "http://127.0.0.1:10",
    }
    async with dummy_stack("postgres", "nats", "s3", "simulator", env=own) as stack:
        told = stack.backends.environment()

        assert {name: told[name] for name in own} == own
        assert told["AUTOPOST_TELEGRAM_API_URL"] == stack.backends.simulator_url
        assert stack.describe()["nats_url"] is None


async def run_sql(url: str | None, statement: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


async def subscribed(stack: Stack, bot: DevelopmentBot) -> list[str]:
    url = f"{stack.describe()['simulator']}/max/subscriptions"
    async with http_client() as http:
        try:
            answer = await http.get(url, headers={"Authorization": TOKENS[bot.variable]})
        except httpx.TransportError:
            return []
    return [one["url"] for one in answer.json()["subscriptions"]]


async def test_the_bots_of_the_seed_hear_of_the_simulator_also_of_one_that_was_killed() -> None:
    async with dummy_stack("simulator") as stack:
        hook = f"{stack.urls['ingest']}/v1/bot/max"
        before = [await subscribed(stack, bot) for bot in BOTS]
        stack.kill("simulator")

        async def again() -> bool:
            return [await subscribed(stack, bot) for bot in BOTS] == before

        assert before == [[hook]] * len(BOTS)
        await eventually(again, timedelta(seconds=30))


async def test_where_services_call_another_max_nothing_is_subscribed() -> None:
    async with dummy_stack("simulator", env={"AUTOPOST_MAX_API_URL": "https://max.example"}) as stack:
        assert [await subscribed(stack, bot) for bot in BOTS] == [[]] * len(BOTS)
