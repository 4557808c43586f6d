"""A place in a channel that was given out and not used is free again."""

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
