"""After a drain: whatever is missing makes the bench fail, loudly."""

from contextlib import nullcontext
from uuid import uuid4

import pytest
from autopost_bench.machine.server import BenchError, connected
from autopost_bench.machine.tenants import ALL_GATES_ON, Tenant, make_tenant
from autopost_bench.measures.drain import check_drained, fill
from autopost_bench.measures.growth import _claim_and_commit
from autopost_contracts.ids import WorkspaceId
from autopost_dispatcher.config import DispatcherConfig
from autopost_dispatcher.gateway import Gateway
from autopost_runtime.postgres.pool import open_database

DELIVERIES = 20
DAMAGES = {
    "nothing": None,
    "an event is gone": "DELETE FROM events WHERE id = (SELECT id FROM events WHERE action = 'sent' LIMIT 1)",
    "an event too many": "INSERT INTO events (workspace_id, delivery_id, action)"
    " SELECT workspace_id, delivery_id, action FROM events WHERE action = 'sent' LIMIT 1",
    "a row is left in the queue": "INSERT INTO delivery_queue (workspace_id, delivery_id, channel_id, asleep, sort_at)"
    " SELECT workspace_id, delivery_id, channel_id, false, now() FROM deliveries LIMIT 1",
    "a delivery is not sent": "UPDATE deliveries SET status = 'dead' WHERE delivery_id = (SELECT delivery_id FROM"
    " deliveries LIMIT 1)",
    "a row has another id than its event": "UPDATE deliveries SET provider_message_id = '2' WHERE delivery_id = (SELECT"
    " delivery_id FROM deliveries LIMIT 1)",
    "a row has another slot than its event": "UPDATE deliveries SET slot_at = slot_at + interval '1 s' WHERE"
    " delivery_id = (SELECT delivery_id FROM deliveries LIMIT 1)",
    "a row was sent at another time": "UPDATE deliveries SET sent_at = sent_at - interval '1 day' WHERE delivery_id ="
    " (SELECT delivery_id FROM deliveries LIMIT 1)",
    "a channel is still due": "UPDATE channel_due SET next_due_at = now() WHERE channel_id = (SELECT channel_id FROM"
    " channel_due LIMIT 1)",
}


@pytest.fixture
async def drained(database) -> Tenant:
    async with connected(database.url) as connection:
        made = await make_tenant(connection, WorkspaceId(uuid4()), 4, ALL_GATES_ON)
    tenant = made.at(database.url)
    config = DispatcherConfig(database_url=tenant.url)
    left = await fill(tenant, DELIVERIES)
    async with open_database(config, "bench") as opened:
        gateway = Gateway(opened)
        while left:
            left -= await _claim_and_commit(gateway, tenant, config)
        await gateway.claim_deliveries(tenant.workspace_id, uuid4(), 1, config.sending_lease)
    return tenant


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_drain_that_lost_something_is_no_drain(drained, damage):
    async with connected(drained.url) as connection:
        await connection.execute("SET session_replication_role = replica")
        if statement := DAMAGES[damage]:
            await connection.execute(statement)

    with nullcontext() if damage == "nothing" else pytest.raises(BenchError, match=f"drain of {DELIVERIES}"):
        await check_drained(drained, DELIVERIES)


async def test_a_delivery_that_never_was_is_missed(drained):
    with pytest.raises(BenchError):
        await check_drained(drained, DELIVERIES + 1)
