"""A service waits for the schema it was made for, and refuses a role that is not its own."""

import os
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import asyncpg
import httpx
import pytest
from autopost_cli.embedded.ports import free_port
from autopost_cli.embedded.postgres import PostgresServer
from autopost_cli.schema import schema_files
from autopost_cli.schema.migrate import migrate_up
from autopost_cli.schema.seed import seed
from autopost_runtime.postgres.schema import SCHEMA
from harness.databases import Database
from harness.eventually import eventually
from harness.http_client import http_client

SERVICES = ("ingest", "dispatcher", "monitor", "bot")
MINUTE = timedelta(minutes=1)


class Running:
    def __init__(self, port: int, log: Path) -> None:
        self._url = f"http://127.0.0.1:{port}"
        self._log = log

    async def checks(self) -> dict[str, str]:
        try:
            async with http_client() as http:
                return dict((await http.get(f"{self._url}/readyz")).json()["checks"])
        except httpx.TransportError:
            return {}

    def log(self) -> str:
        return self._log.read_text()


@asynccontextmanager
async def running(service: str, url: str, folder: Path) -> AsyncIterator[Running]:
    port, log = free_port(), folder / service
    env = {"PATH": os.defpath, "AUTOPOST_DATABASE_URL": url, "AUTOPOST_HEALTH_PORT": str(port)}
    with log.open("w") as out:
        process = await create_subprocess_exec(sys.executable, "-m", f"autopost_{service}", env=env, stdout=out)
    try:
        yield Running(port, log)
    finally:
        process.terminate()
        assert await process.wait() == 0


async def test_what_services_need_is_the_schema_of_this_version(database: Database) -> None:
    assert await database.pool.fetchval("SELECT schema_version()") == SCHEMA


@pytest.mark.parametrize("service", SERVICES)
async def test_a_schema_that_is_behind_is_waited_for_and_the_service_is_not_ready(
    database: Database, tmp_path: Path, service: str
) -> None:
    text = schema_files.function("schema_version").text
    await database.pool.execute(text.replace(f"SELECT {SCHEMA}", f"SELECT {SCHEMA - 1}"))

    async with running(service, database.url, tmp_path) as process:

        async def waits() -> bool:
            checks = await process.checks()
            return checks.get("schema") == "failed" and "schema.behind" in process.log()

        async def is_ready() -> bool:
            checks = await process.checks()
            return "schema" not in checks and set(checks.values()) == {"ok"}

        await eventually(waits, within=MINUTE)
        await database.pool.execute(text)
        await eventually(is_ready, within=MINUTE)


async def test_a_schema_older_than_the_question_is_behind_too(database: Database, tmp_path: Path) -> None:
    await database.pool.execute("DROP FUNCTION schema_version()")

    async with running("bot", database.url, tmp_path) as process:

        async def waits() -> bool:
            return (await process.checks()).get("schema") == "failed"

        await eventually(waits, within=MINUTE)


@pytest.mark.parametrize("role", ["autopost_monitor", ""])
async def test_a_service_in_a_role_that_is_not_its_own_does_not_start(database: Database, role: str) -> None:
    """The second is what a pooler makes of it: it drops what a client asks for."""
    env = {"PATH": os.defpath, "AUTOPOST_DATABASE_URL": database.url, "AUTOPOST_DATABASE_ROLE": role}
    process = await create_subprocess_exec(sys.executable, "-m", "autopost_ingest", env=env, stdout=PIPE)

    out, _ = await process.communicate()

    assert process.returncode == 1
    assert f"runs as {role or 'postgres'}, expected autopost_ingest" in out.decode()


async def test_the_logins_of_the_example_have_their_role_and_limits(own_cluster: PostgresServer) -> None:
    await migrate_up(own_cluster.url())
    await seed(own_cluster.url())
    admin = await asyncpg.connect(own_cluster.url())
    await admin.execute(schema_files.statement("logins.example"))
    await admin.close()

    found = {}
    for service in SERVICES:
        session = await asyncpg.connect(own_cluster.url(), user=f"autopost_{service}_login")
        found[service] = tuple(
            await session.fetchrow(
                "SELECT current_user::text, current_setting('statement_timeout'), current_setting('lock_timeout'), "
                "schema_version()"
            )
        )
        await session.close()
    reader = await asyncpg.connect(own_cluster.url(), user="demo_reader")
    assert found == {
        service: (f"autopost_{service}", "13500ms" if service == "dispatcher" else "9s", "5s", SCHEMA)
        for service in SERVICES
    }
    assert await reader.fetchval("SELECT count(DISTINCT workspace_id) FROM reader_channels") == 1
    await reader.close()
