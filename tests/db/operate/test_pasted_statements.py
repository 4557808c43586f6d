"""Statements that an operator pastes lock rows in the order of their plan: nobody may meet them halfway."""

import json
from typing import Any

import pytest
from db.support.builders import is_waiting, running
from db.support.by_hand import REQUEUE_DEAD
from db.support.operators import SIGNED, dead
from harness.eventually import eventually

FUNCTIONS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "requeue": ("SELECT verdict FROM requeue($1, $2, $3, $4) ORDER BY delivery_id", SIGNED),
    "skip": ("SELECT verdict FROM skip($1, $2, $3, $4) ORDER BY delivery_id", SIGNED),
    "cancel_deliveries": (
        "SELECT verdict FROM cancel_deliveries($1, $2, $3) ORDER BY delivery_id",
        (json.dumps(dict(zip(("operator", "reason"), SIGNED, strict=True))),),
    ),
}
VERDICTS = {
    "requeue": ["requeued", "not_given_up", "requeued"],
    "skip": ["skipped", "not_dead", "skipped"],
    "cancel_deliveries": ["already", "cancelled", "already"],
}
LOCK = "SELECT delivery_id FROM deliveries WHERE delivery_id = ANY ($1) ORDER BY 1 FOR UPDATE SKIP LOCKED"


@pytest.mark.parametrize("function", FUNCTIONS)
async def test_a_function_that_waits_for_a_delivery_holds_no_other(database, tenant, function):
    first, second, third = sorted(await dead(tenant, await tenant.channel(), 3))
    query, values = FUNCTIONS[function]
    pasted, waiter, other = [await database.connect() for _ in range(3)]

    async with pasted.transaction():
        await pasted.execute(REQUEUE_DEAD, tenant.workspace, [second])
        call = running(waiter.fetch(query, tenant.workspace, [third, first, second], *values))
        await eventually(lambda: is_waiting(tenant.db, waiter.get_server_pid()))
        free = [row[0] for row in await other.fetch(LOCK, [first, second, third])]

    assert free == [first, third]
    assert [row[0] for row in await call] == VERDICTS[function]


async def test_a_function_that_waited_for_one_delivery_waits_for_the_next(database, tenant):
    one, other, last = sorted(await dead(tenant, await tenant.channel(), 3))
    query, values = FUNCTIONS["requeue"]
    first, second, waiter = [await database.connect() for _ in range(3)]

    async with second.transaction():
        async with first.transaction():
            await first.execute(LOCK, [one])
            await second.execute(LOCK, [other])
            call = running(waiter.fetch(query, tenant.workspace, [last, other, one], *values))
            await eventually(lambda: _is_behind(tenant, waiter, first))
        await eventually(lambda: _is_behind(tenant, waiter, second))

    assert [row[0] for row in await call] == ["requeued"] * 3


async def _is_behind(tenant, waiter, holder) -> bool:
    pids = waiter.get_server_pid(), holder.get_server_pid()
    return bool(await tenant.db.fetchval("SELECT $2 = ANY (pg_blocking_pids($1))", *pids))


async def test_a_pasted_requeue_locks_its_channels_by_key(database, tenant):
    """Its budget is renewed for all of its rows at once: row by row it would take channels in the order of the rows."""
    low, high = sorted([await tenant.channel(), await tenant.channel()])
    deliveries = await dead(tenant, high) + await dead(tenant, low)
    await tenant.drain()
    holder, pasted = await database.connect(), await database.connect()
    lock = "SELECT 1 FROM channel_due WHERE channel_id = $1 FOR NO KEY UPDATE"

    async with holder.transaction():
        await holder.execute(lock, low)
        call = running(pasted.execute(REQUEUE_DEAD, tenant.workspace, deliveries))
        await eventually(lambda: is_waiting(tenant.db, pasted.get_server_pid()))
        await holder.execute("SET LOCAL lock_timeout = '1s'")
        await holder.execute(lock, high)
    await call

    budgets = await tenant.db.fetch("SELECT max_attempts - attempt FROM deliveries")
    assert [tuple(row) for row in budgets] == [(5,), (5,)]
