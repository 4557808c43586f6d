"""Workspaces take turns, round after round, by when a claim was last in them."""

from collections import Counter
from typing import Any

from db.support.builders import Tenant, sent

TENANTS = 3
ROUNDS = 5


async def backlogged(pool: Any) -> Tenant:
    tenant = await Tenant.create(pool)
    await tenant.backlog(await tenant.channel(), ROUNDS + 1)
    return tenant


async def test_who_was_served_goes_behind_those_who_were_not_in_every_round(database):
    tenants = {one.workspace: one for one in [await backlogged(database.pool) for _ in range(TENANTS)]}
    served = []

    for _ in range(ROUNDS * TENANTS):
        first = await database.pool.fetchval("SELECT workspace_id FROM due_workspaces(1)")
        [claim] = await tenants[first].claim(1)
        await tenants[first].commit(sent(claim))
        served.append(first)

    rounds = [served[start : start + TENANTS] for start in range(0, len(served), TENANTS)]
    assert [Counter(one) for one in rounds] == [Counter(dict.fromkeys(tenants, 1))] * ROUNDS


async def test_every_claim_moves_the_turn_of_its_workspace_also_one_that_finds_nothing(database):
    tenant = await backlogged(database.pool)
    moved = []

    for _ in range(ROUNDS + 3):
        await tenant.claim(1)
        query = "SELECT last_claimed_at FROM workspace_due WHERE workspace_id = $1"
        moved.append(await database.pool.fetchval(query, tenant.workspace))

    assert moved == sorted(set(moved))
