"""What a post writes belongs to a workspace and an endpoint that exist, as long as it does."""

import asyncio

import asyncpg
import pytest
from db.support.builders import is_waiting
from db.support.senders import make_sender
from harness.eventually import eventually

INSERTS = {
    "messages": "INSERT INTO messages (workspace_id, content_hash, payload) VALUES ($1, 'x', '{}')",
    "ingest_runs": "INSERT INTO ingest_runs (workspace_id, kind, endpoint_id) VALUES ($1, 'push', $2)",
    "ingress_receipts": """
        INSERT INTO ingress_receipts (workspace_id, endpoint_id, endpoint_kind, payload_hash, expires_at)
        VALUES ($1, $2, 'webhook_push', 'x', now())""",
}
PARENTS = {
    "messages": ("workspaces", "workspace_id"),
    "ingest_runs": ("workspaces", "workspace_id"),
    "ingress_receipts": ("workspace_endpoints", "endpoint_id"),
}


def given(table, workspace, endpoint):
    return (workspace,) if table == "messages" else (workspace, endpoint)


async def emptied(tenant):
    """A workspace that nothing refers to but its endpoint."""
    sender = await make_sender(tenant)
    return tenant.workspace, sender.endpoint


async def removed(tenant, table, workspace, endpoint):
    """The statement that takes away what a row of the table belongs to."""
    parent, key = PARENTS[table]
    if parent == "workspaces":
        await tenant.db.execute("DELETE FROM workspace_endpoints WHERE workspace_id = $1", workspace)
        await tenant.db.execute("DELETE FROM platform_limits WHERE workspace_id = $1", workspace)
        await tenant.db.execute("DELETE FROM credential_bindings WHERE workspace_id = $1", workspace)
        await tenant.db.execute("DELETE FROM workspace_due WHERE workspace_id = $1", workspace)
    return f"DELETE FROM {parent} WHERE {key} = $1", workspace if parent == "workspaces" else endpoint


@pytest.mark.parametrize("table", INSERTS)
async def test_no_row_without_what_it_belongs_to(tenant, table):
    workspace, _ = await emptied(tenant)
    nowhere = "00000000-0000-0000-0000-000000000000"

    with pytest.raises(asyncpg.ForeignKeyViolationError, match=f"a row of {table} has no"):
        where = workspace if table == "ingress_receipts" else nowhere
        await tenant.db.execute(INSERTS[table], *given(table, where, nowhere))


@pytest.mark.parametrize("table", INSERTS)
async def test_what_a_row_belongs_to_cannot_be_deleted(tenant, table):
    workspace, endpoint = await emptied(tenant)
    await tenant.db.execute(INSERTS[table], *given(table, workspace, endpoint))
    statement, key = await removed(tenant, table, workspace, endpoint)

    with pytest.raises(asyncpg.ForeignKeyViolationError, match=f"this row of {PARENTS[table][0]}"):
        await tenant.db.execute(statement, key)

    await tenant.db.execute(f"DELETE FROM {table} WHERE workspace_id = $1", workspace)
    await tenant.db.execute(statement, key)


@pytest.mark.parametrize("table", INSERTS)
async def test_a_row_cannot_come_to_belong_to_another(tenant, table):
    workspace, endpoint = await emptied(tenant)
    await tenant.db.execute(INSERTS[table], *given(table, workspace, endpoint))

    with pytest.raises(asyncpg.ForeignKeyViolationError, match="cannot change"):
        await tenant.db.execute(f"UPDATE {table} SET workspace_id = gen_random_uuid()")

    await tenant.db.execute(f"UPDATE {table} SET workspace_id = workspace_id")


@pytest.mark.parametrize("ends", ["COMMIT", "ROLLBACK"])
@pytest.mark.parametrize("table", INSERTS)
async def test_who_deletes_waits_for_who_writes(database, tenant, table, ends):
    workspace, endpoint = await emptied(tenant)
    statement, key = await removed(tenant, table, workspace, endpoint)
    writer, deleter = await database.connect(), await database.connect()
    await writer.execute("BEGIN")
    await writer.execute(INSERTS[table], *given(table, workspace, endpoint))

    deleting = asyncio.create_task(deleter.execute(statement, key))
    await eventually(lambda: is_waiting(database.pool, deleter.get_server_pid()))
    await writer.execute(ends)

    if ends == "COMMIT":
        with pytest.raises(asyncpg.ForeignKeyViolationError):
            await deleting
    else:
        await deleting


@pytest.mark.parametrize("ends", ["COMMIT", "ROLLBACK"])
@pytest.mark.parametrize("table", INSERTS)
async def test_who_writes_waits_for_who_deletes(database, tenant, table, ends):
    workspace, endpoint = await emptied(tenant)
    statement, key = await removed(tenant, table, workspace, endpoint)
    writer, deleter = await database.connect(), await database.connect()
    await deleter.execute("BEGIN")
    await deleter.execute(statement, key)

    writing = asyncio.create_task(writer.execute(INSERTS[table], *given(table, workspace, endpoint)))
    await eventually(lambda: is_waiting(database.pool, writer.get_server_pid()))
    await deleter.execute(ends)

    if ends == "COMMIT":
        with pytest.raises(asyncpg.ForeignKeyViolationError):
            await writing
    else:
        await writing
