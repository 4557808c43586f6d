"""The embedded Postgres: whoever starts it and wherever its data lie, it starts, and it keeps them."""

import os
import signal
from pathlib import Path

import asyncpg
import pytest
from autopost_cli.embedded.folders import scratch
from autopost_cli.embedded.places import LONGEST_SOCKET_FOLDER, socket_folder
from autopost_cli.embedded.postgres import DURABLE, FAST, PostgresServer
from autopost_cli.embedded.processes import BackendError, Process
from harness.backends import SURVIVES_A_KILL, scratch_root


async def ask(server: PostgresServer, statement: str) -> object:
    connection = await asyncpg.connect(server.url())
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


def owner(path: Path) -> int:
    return path.stat().st_uid


def process_of(server: PostgresServer) -> Process:
    assert server.process
    return server.process


async def test_it_starts_below_folders_that_only_their_owner_may_enter(tmp_path: Path) -> None:
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)

    async with PostgresServer(folder / "deeper" / "data", settings=FAST) as server:
        assert await ask(server, "SELECT current_setting('server_version_num')::int / 10000") == 18


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become somebody else")
async def test_under_root_it_runs_as_nobody(own_cluster: PostgresServer) -> None:
    assert owner(Path(f"/proc/{process_of(own_cluster).pid}")) == owner(own_cluster.data) != 0


async def test_what_was_committed_is_there_after_a_stop(own_cluster: PostgresServer) -> None:
    await ask(own_cluster, "CREATE TABLE kept AS SELECT 42 AS answer")

    await own_cluster.stop()
    await own_cluster.start()

    assert await ask(own_cluster, "SELECT answer FROM kept") == 42


async def test_what_was_committed_is_there_after_a_kill(own_cluster: PostgresServer) -> None:
    await ask(own_cluster, "CREATE TABLE kept AS SELECT 42 AS answer")

    process_of(own_cluster).send(signal.SIGKILL)
    await process_of(own_cluster).exited()
    await own_cluster.start()

    assert await ask(own_cluster, "SELECT answer FROM kept") == 42


async def test_an_interrupted_first_start_does_not_spoil_the_folder() -> None:
    with scratch("autopost-test-", scratch_root()) as folder:
        (folder / "data.new").mkdir()
        (folder / "data.new" / "PG_VERSION").write_text("18")

        async with PostgresServer(folder / "data", settings=FAST) as server:
            assert await ask(server, "SELECT 1") == 1


async def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear reader")

    with pytest.raises(BackendError, match="neither empty nor a Postgres data folder"):
        await PostgresServer(tmp_path).start()

    assert os.listdir(tmp_path) == ["letter.txt"]  # noqa: PTH208 -- a test may block


async def test_a_server_that_cannot_start_says_why(own_cluster: PostgresServer) -> None:
    await own_cluster.stop()

    with pytest.raises(BackendError, match="unrecognized configuration parameter"):
        await PostgresServer(own_cluster.data, settings={"no_such_setting": "1"}).start()


async def test_clusters_tell_themselves_apart(own_cluster: PostgresServer) -> None:
    identifier = "SELECT system_identifier FROM pg_control_system()"
    with scratch("autopost-test-", scratch_root()) as folder:
        async with PostgresServer(folder / "other", settings=FAST) as other:
            assert await ask(own_cluster, identifier) != await ask(other, identifier)


async def test_an_older_postgres_is_there_too() -> None:
    with scratch("autopost-test-", scratch_root()) as folder:
        async with PostgresServer(folder / "data", settings=SURVIVES_A_KILL, major=16) as server:
            assert await ask(server, "SELECT current_setting('server_version_num')::int / 10000") == 16


def test_the_durable_settings_leave_durability_as_it_is() -> None:
    assert not DURABLE.keys() & {"fsync", "synchronous_commit", "full_page_writes"}


def test_the_path_of_a_socket_is_short_enough_for_every_system() -> None:
    assert len(f"{socket_folder(None)}/.s.PGSQL.65535") < LONGEST_SOCKET_FOLDER + 24
