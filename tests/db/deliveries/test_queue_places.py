"""When a channel is due: a delivery was added, or a place that was given out and not used is free again."""

from uuid import UUID

from db.support.builders import NEVER
from db.support.consistency import consistent
from harness.eventually import eventually


async def test_a_delivery_that_somebody_holds_while_it_is_chosen_leaves_its_channel_open(database, tenant):
    """The channel was counted as full with it, and nothing is under way whose end would open it again."""
    channel = await tenant.channel(max_parallel=1)
    first, _second = await tenant.backlog(channel, 2)
    hand = await database.connect()
    async with hand.transaction():
        await hand.execute("SELECT FROM deliveries WHERE delivery_id = $1 FOR UPDATE", first)
        assert await tenant.claim() == []

    assert await consistent(database.pool, tenant.workspace)
    [claim] = await eventually(tenant.claim)
    assert claim["delivery_id"] == first


async def test_a_delivery_that_is_inserted_by_hand_makes_its_empty_channel_due(tenant):
    channel = await tenant.channel()
    first = await tenant.enqueue()
    await tenant.drain()
    assert (await tenant.due(channel))["next_due_at"] == NEVER

    added = await tenant.db.fetchval(
        """INSERT INTO deliveries (workspace_id, message_id, channel_id, rendering_id, hash_version, content_hash)
           SELECT workspace_id, message_id, channel_id, rendering_id, hash_version, content_hash FROM deliveries
           WHERE message_id = $1 RETURNING delivery_id""",
        UUID(first["message_id"]),
    )

    assert (await tenant.due(channel))["next_due_at"] != NEVER
    assert [claim["delivery_id"] for claim in await eventually(tenant.claim)] == [added]
