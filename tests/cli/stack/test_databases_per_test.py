"""The harness itself: tests must not see each other, and waiting must end."""

from datetime import timedelta

import pytest
from harness.databases import Database
from harness.eventually import NeverError, eventually


@pytest.mark.parametrize("turn", [1, 2])
async def test_every_test_has_a_database_of_its_own(database: Database, turn: int) -> None:
    await database.pool.execute("CREATE TABLE mine (turn int)")

    assert await database.pool.fetchval("SELECT count(*) FROM pg_tables WHERE tablename = 'mine'") == 1


async def test_the_seeded_database_has_the_demo_workspaces(seeded_database: Database) -> None:
    connection = await seeded_database.connect()

    assert await connection.fetchval("SELECT count(*) FROM workspaces") == 2


async def test_a_transaction_left_open_does_not_hang_the_end_of_a_test(empty_database: Database) -> None:
    connection = await empty_database.connect()
    await connection.execute("BEGIN")
    await empty_database.pool.acquire()


async def test_a_condition_may_be_a_coroutine_or_a_function() -> None:
    async def later() -> str:
        return "yes"

    assert await eventually(later) == "yes"
    assert await eventually(lambda: "yes") == "yes"


async def test_a_condition_that_stays_false_is_a_failure_with_its_last_answer() -> None:
    with pytest.raises(NeverError, match="the last answer was 0"):
        await eventually(lambda: 0, within=timedelta(seconds=0.01))
