"""`relay_lag`: how much waits, for how long, and who holds it back."""

from datetime import timedelta
from typing import Any

import pytest
from db.support.builders import Tenant
from db.support.relay_cursor import Cursor
from harness.databases import Database
from harness.eventually import eventually

NOBODY = {"pid": None, "application": None, "state": None, "seconds": None, "command": None}


@pytest.fixture
async def cursor(quiet_database: Database) -> Cursor:
    return await Cursor.opened(quiet_database.pool)


@pytest.fixture
async def shop(cursor: Cursor) -> Tenant:
    tenant = await Tenant.create(cursor.db)
    await tenant.channels(3)
    return tenant


async def lag(cursor: Cursor, blocking: timedelta = timedelta(0)) -> Any:
    [row] = await cursor.db.fetch("SELECT * FROM relay_lag($1)", blocking)
    return row


def blocking(row: Any) -> dict[str, Any]:
    return {name: row[f"blocking_{name}"] for name in NOBODY}


async def test_nothing_waits_where_no_relay_has_run(quiet_database):
    tenant = await Tenant.create(quiet_database.pool)
    await tenant.channels(3)
    await tenant.enqueue()

    [row] = await quiet_database.pool.fetch("SELECT * FROM relay_lag()")

    assert (row["events"], row["seconds"]) == (0, 0)


async def test_what_is_not_relayed_waits_and_grows_older(cursor, shop):
    await shop.enqueue()
    first = await lag(cursor)

    later = await eventually(lambda: older_than(cursor, first["seconds"]))

    assert (first["events"], later["events"]) == (3, 3)
    assert blocking(later) == NOBODY


async def test_only_what_the_cursor_has_not_passed_waits(cursor, shop):
    await shop.enqueue()
    [event, *_] = await cursor.next(limit=1)
    await cursor.advance(event["seq"])
    assert (await lag(cursor))["events"] == 2

    await cursor.relay()

    row = await lag(cursor)
    assert (row["events"], row["seconds"]) == (0, 0)


async def test_the_transaction_that_holds_events_back_is_named_without_what_it_asked(cursor, shop, quiet_database):
    writer = await quiet_database.connect()
    await writer.execute("SET application_name = 'somebody'")
    held = writer.transaction()
    await held.start()
    await writer.execute("CREATE TABLE secret (word text DEFAULT 'hunter2')")
    await shop.enqueue()

    row = await lag(cursor)

    pid = writer.get_server_pid()
    assert row["blocking_seconds"] > 0
    assert blocking(row) | {"seconds": None} == {
        "pid": pid,
        "application": "somebody",
        "state": "idle in transaction",
        "seconds": None,
        "command": "CREATE",
    }
    assert blocking(await lag(cursor, timedelta(hours=1))) == NOBODY
    await held.rollback()
    assert blocking(await lag(cursor)) == NOBODY


async def test_an_old_transaction_that_nothing_waits_for_is_nobodys_concern(cursor, quiet_database):
    writer = await quiet_database.connect()
    held = writer.transaction()
    await held.start()
    await writer.execute("SELECT pg_current_xact_id()")

    assert blocking(await lag(cursor)) == NOBODY

    await held.rollback()


async def older_than(cursor: Cursor, seconds: float) -> Any:
    row = await lag(cursor)
    return row if row["seconds"] > seconds else None
