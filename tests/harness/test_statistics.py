"""The switch that runs tests without statistics does so."""

import asyncpg
import pytest

from harness.databases import Database
from harness.statistics import EMPTY, NEVER_ANALYSED, Forgetful, connection_class

ROWS = "SELECT reltuples::int FROM pg_class WHERE oid = 'workspaces'::regclass"


@pytest.mark.parametrize(("mode", "rows"), [("deleted", NEVER_ANALYSED), ("empty", EMPTY)])
async def test_before_a_hot_call_what_was_analysed_is_forgotten(database: Database, mode: str, rows: int) -> None:
    connection = await asyncpg.connect(database.url, connection_class=connection_class(mode))
    await connection.execute("INSERT INTO workspaces (name) VALUES ('one')")
    await connection.execute("ANALYZE")
    assert await connection.fetchval(ROWS) == 1

    await connection.fetch("SELECT * FROM due_workspaces()")

    assert await connection.fetchval(ROWS) == rows
    assert await connection.fetchval("SELECT count(*) FROM pg_stats WHERE schemaname = 'public'") == 0
    await connection.close()


def test_without_the_switch_nothing_is_forgotten() -> None:
    assert not issubclass(connection_class(""), Forgetful)
