"""A rendering belongs to a message that exists, and goes with it."""

import asyncio

import asyncpg
import pytest
from db.support.builders import is_waiting
from harness.eventually import eventually

INSERT = """
INSERT INTO renderings (workspace_id, message_id, plan_hash, rendered_text, plan)
SELECT $1, m, 'plan', 'text', '{}' FROM unnest($2::uuid[]) AS m
"""
DELETE = "DELETE FROM messages WHERE message_id = $1"
SHOWN = "SELECT count(*)::int FROM renderings WHERE message_id = $1"


async def a_message(tenant, content="x"):
    return await tenant.db.fetchval(
        "INSERT INTO messages (workspace_id, content_hash, payload) VALUES ($1, $2, '{}') RETURNING message_id",
        tenant.workspace,
        content,
    )


async def test_no_rendering_without_its_message_and_one_lost_refuses_them_all(tenant):
    message = await a_message(tenant)

    with pytest.raises(asyncpg.ForeignKeyViolationError, match="a row of renderings has no message"):
        await tenant.db.execute(INSERT, tenant.workspace, [message, tenant.workspace])

    assert await tenant.db.fetchval(SHOWN, message) == 0


async def test_the_message_of_another_workspace_is_none(tenant):
    message = await a_message(tenant)
    other = await tenant.db.fetchval("INSERT INTO workspaces (name) VALUES ('other') RETURNING workspace_id")

    with pytest.raises(asyncpg.ForeignKeyViolationError, match="has no message"):
        await tenant.db.execute(INSERT, other, [message])


async def test_renderings_go_with_their_messages_and_no_others(tenant):
    gone, kept = await a_message(tenant, "gone"), await a_message(tenant, "kept")
    await tenant.db.execute(INSERT, tenant.workspace, [gone, kept])

    await tenant.db.execute(DELETE, gone)

    assert [await tenant.db.fetchval(SHOWN, message) for message in (gone, kept)] == [0, 1]


@pytest.mark.parametrize("table", ["messages", "renderings"])
async def test_neither_can_come_to_be_of_another_message(tenant, table):
    await tenant.db.execute(INSERT, tenant.workspace, [await a_message(tenant)])

    with pytest.raises(asyncpg.ForeignKeyViolationError, match="cannot change"):
        await tenant.db.execute(f"UPDATE {table} SET message_id = gen_random_uuid()")

    await tenant.db.execute(f"UPDATE {table} SET message_id = message_id")


@pytest.mark.parametrize("ends", ["COMMIT", "ROLLBACK"])
async def test_who_deletes_a_message_waits_for_who_renders_it(database, tenant, ends):
    message = await a_message(tenant)
    writer, deleter = await database.connect(), await database.connect()
    await writer.execute("BEGIN")
    await writer.execute(INSERT, tenant.workspace, [message])

    deleting = asyncio.create_task(deleter.execute(DELETE, message))
    await eventually(lambda: is_waiting(database.pool, deleter.get_server_pid()))
    await writer.execute(ends)
    await deleting

    assert await tenant.db.fetchval(SHOWN, message) == 0


@pytest.mark.parametrize("ends", ["COMMIT", "ROLLBACK"])
async def test_who_renders_a_message_waits_for_who_deletes_it(database, tenant, ends):
    message = await a_message(tenant)
    writer, deleter = await database.connect(), await database.connect()
    await deleter.execute("BEGIN")
    await deleter.execute(DELETE, message)

    writing = asyncio.create_task(writer.execute(INSERT, tenant.workspace, [message]))
    await eventually(lambda: is_waiting(database.pool, writer.get_server_pid()))
    await deleter.execute(ends)

    if ends == "COMMIT":
        with pytest.raises(asyncpg.ForeignKeyViolationError):
            await writing
    else:
        await writing
    assert await tenant.db.fetchval(SHOWN, message) == (0 if ends == "COMMIT" else 1)


FILL = """
WITH content AS (
    INSERT INTO messages (workspace_id, content_hash, payload)
    SELECT $1, n::text, '{}' FROM generate_series(1, 5000) AS n
    RETURNING message_id
)
INSERT INTO renderings (workspace_id, message_id, plan_hash, rendered_text, plan)
SELECT $1, message_id, 'plan', '', '{}' FROM content
"""
FETCHED = "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = 'renderings'"


async def test_a_message_that_goes_looks_at_its_own_renderings_alone(database, tenant):
    """On a connection whose plans were made while it was known that there is nothing."""
    await tenant.db.execute("VACUUM ANALYZE")
    connection = await database.connect()
    for _ in range(8):
        await connection.execute(DELETE, await a_message(tenant))
    await tenant.db.execute(FILL, tenant.workspace)
    message = await a_message(tenant)
    await tenant.db.execute(INSERT, tenant.workspace, [message])

    async with connection.transaction():
        await connection.execute(DELETE, message)
        fetched = await connection.fetchval(FETCHED)

    assert fetched == 1
    assert await tenant.db.fetchval(SHOWN, message) == 0
