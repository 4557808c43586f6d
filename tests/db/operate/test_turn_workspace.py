"""A workspace that is paused keeps what is queued, and once it is active again the next look finds all of it."""

import asyncpg
import pytest
from db.support.builders import NEVER, Tenant
from db.support.operators import BY_HAND, meta


async def due(tenant: Tenant) -> bool:
    rows = await tenant.db.fetch("SELECT workspace_id FROM due_workspaces() WHERE next_due_at <= now()")
    return tenant.workspace in [row["workspace_id"] for row in rows]


@pytest.mark.parametrize("status", ["paused", "disabled"])
@pytest.mark.parametrize("by_hand", [False, True], ids=["function", "raw sql"])
async def test_what_waited_meanwhile_is_due_at_once(tenant, operator, status, by_hand):
    channel = await tenant.channel()
    assert await operator.turn_workspace(status) == "turned"
    await tenant.backlog(channel, 3)
    assert (await tenant.claim(), await due(tenant), await tenant.next_due_at()) == ([], False, NEVER)

    if by_hand:
        await tenant.db.execute("UPDATE workspaces SET status = 'active' WHERE workspace_id = $1", tenant.workspace)
    else:
        await operator.turn_workspace("active")

    assert await due(tenant)
    assert len(await tenant.claim()) == 3


async def test_it_is_told_with_what_it_was_and_who_did_it(tenant, operator):
    assert await operator.turn_workspace("paused") == "turned"
    assert await operator.turn_workspace("paused") == "unchanged"

    [event] = await tenant.events("config_changed")
    assert meta(event) == {**BY_HAND, "what": "workspace.status", "was": "active", "is": "paused"}


async def test_without_a_reason_or_a_workspace_nothing_turns(tenant):
    query = "SELECT turn_workspace($1, 'paused', 'ann', $2)"
    with pytest.raises(asyncpg.PostgresError) as refusal:
        await tenant.db.fetchval(query, tenant.workspace, " ")

    assert refusal.value.sqlstate == "AP010"
    nobody = await tenant.db.fetchval("SELECT new_id()")
    assert "not_found" in await tenant.db.fetchval(query, nobody, "because")
