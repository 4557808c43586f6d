"""Who may ask why: a reader about its own workspace; and asking changes nothing."""

import json
from uuid import uuid4

from db.support.builders import Tenant
from harness.databases import Database


async def test_it_is_stable_so_it_can_neither_write_nor_lock(tenant: Tenant) -> None:
    query = "SELECT proname FROM pg_proc WHERE proname LIKE 'why%' AND provolatile = 'v'"

    # what customers wrote is shown to operators only, and each look leaves its event
    assert [row["proname"] for row in await tenant.db.fetch(query)] == ["why_bot_update"]


async def test_a_reader_is_told_of_its_own_workspace_and_of_no_other(tenant: Tenant, database: Database) -> None:
    channel = await tenant.channel(enabled=False)
    [delivery] = await tenant.backlog(channel, 1)
    connection = await database.connect()
    await connection.execute("SET ROLE autopost_reader")

    async def seen() -> list[int]:
        return [
            len(await connection.fetch("SELECT * FROM why_delivery($1, $2)", tenant.workspace, [delivery])),
            len(await connection.fetch("SELECT * FROM why_channel($1, $2)", tenant.workspace, [channel])),
            len(json.loads(await connection.fetchval("SELECT why($1)", str(delivery)))["found"]),
        ]

    unset = await seen()
    await connection.execute(f"SET autopost.workspace_id = '{uuid4()}'")
    other = await seen()
    await connection.execute(f"SET autopost.workspace_id = '{tenant.workspace}'")
    own = await seen()
    await connection.execute("SET autopost.workspace_id = ''")

    assert (unset, other, own, await seen()) == ([0] * 3, [0] * 3, [1] * 3, [0] * 3)
