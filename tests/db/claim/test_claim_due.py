"""``claim_due``: what is due in many workspaces, as if each were claimed in alone."""

import asyncio
from collections import Counter
from datetime import timedelta
from uuid import uuid4

from db.model.queue_model import SECOND, check_spacing
from db.support.builders import Tenant, sent
from db.support.consistency import consistent
from db.support.many_tenants import Claimed, alike, claim_due, tenants

STEP = timedelta(seconds=1 / 27)


async def limited(tenant: Tenant, channels: int = 3, each: int = 3, rate: float = 0.1) -> None:
    """A slot in ten seconds, so that a slow machine does not see a second one."""
    await tenant.group(rate)
    for channel in await tenant.channels(channels, max_parallel=1):
        await tenant.backlog(channel, each)


async def test_each_workspace_gets_what_it_would_get_alone(database):
    among = await tenants(database.pool, 4)
    for tenant in among[:3]:
        await limited(tenant)

    claimed = await claim_due(database.pool, among)

    assert claimed.counts(among) == [1, 1, 1, 0]  # an idle gate has room for one
    assert {row["status"] for tenant in among for row in await tenant.deliveries()} == {"sending", "queued"}
    for tenant in among:
        [given] = claimed.of(tenant) or [None]
        if given:
            stored = await tenant.delivery(given["delivery_id"])
            assert (stored["status"], stored["attempt"], stored["claim_token"]) == ("sending", 1, given["claim_token"])
            assert await tenant.history(given["delivery_id"]) == ["send_attempt"]
            assert given["plan"] is not None
        told = claimed.workspaces[tenant.workspace]
        assert (told["due_in"] is None, told["looked"]) == (given is None, given is not None)
        assert given is None or 0 < told["due_in"] <= 10
        await consistent(database.pool, tenant.workspace, None)


async def test_where_every_rate_is_used_up_it_says_so_and_nothing_else(database):
    """As after a poll: the slots were given between its answer and this claim."""
    among = await tenants(database.pool, 2)
    for tenant in among:
        await limited(tenant)
    await claim_due(database.pool, among)

    again = await claim_due(database.pool, among)

    assert again.rows == []
    assert [again.workspaces[tenant.workspace]["looked"] for tenant in among] == [False, False]
    assert all(again.workspaces[tenant.workspace]["due_in"] > 0 for tenant in among)


async def test_one_token_and_one_lease_are_for_the_whole_call(database):
    among = await tenants(database.pool, 3)
    for tenant in among:
        await limited(tenant)

    rows = (await claim_due(database.pool, among)).rows

    assert len({(row["claim_token"], row["sending_lease_until"]) for row in rows}) == 1


async def test_slots_of_one_workspace_never_depend_on_another(database):
    """The moment is the same for all, so the slots are the same too."""
    among = await tenants(database.pool, 3)
    for tenant in among:
        await limited(tenant, rate=27)
    now = await database.pool.fetchval("SELECT clock_timestamp()")

    first = await claim_due(database.pool, among, now=now)
    later = await claim_due(database.pool, among, now=now + 2 * STEP)

    assert Counter(row["slot_at"] for row in first.rows) == {now: 3}
    assert later.counts(among) == [2, 2, 2]
    assert len({row["slot_at"] for row in later.rows}) == 1  # channels without a rate have no slot in the past
    assert {row["slot_at"] for row in later.rows} == {now + 2 * STEP}


async def test_ids_that_two_tenants_share_are_two_things(database):
    """An id is unique in its workspace only; looked up alone it would bring another tenant's token, chat or text."""
    both, channel, delivery = await alike(database.pool)
    first, second = both

    claimed = await claim_due(database.pool, [first])

    assert claimed.counts(both) == [1, 0]
    assert (await second.delivery(delivery))["status"] == "queued"
    assert await database.pool.fetchval(
        "SELECT claim_token IS NULL FROM delivery_queue WHERE workspace_id = $1", second.workspace
    )
    assert not (await second.due(channel))["waits_for_place"]
    again = await claim_due(database.pool, both)
    assert again.counts(both) == [0, 1]
    for tenant in both:
        [given] = claimed.of(tenant) + again.of(tenant)
        own = str(tenant.workspace)
        assert (given["auth_ref"], given["target_id"], given["rate_group"]) == (own, own, own)
        assert given["plan"] == {"of": own}
        await consistent(database.pool, tenant.workspace, None)


async def test_ids_that_two_tenants_share_are_two_things_also_in_one_call(database):
    both, _, _ = await alike(database.pool)

    claimed = await claim_due(database.pool, both)

    assert claimed.counts(both) == [1, 1]
    for tenant in both:
        [given] = claimed.of(tenant)
        assert given["plan"] == {"of": str(tenant.workspace)}
        assert given["auth_ref"] == str(tenant.workspace)


async def test_what_one_of_two_alike_has_sent_ends_nothing_of_the_other(database):
    (first, second), _, delivery = await alike(database.pool)
    claimed = await claim_due(database.pool, [first, second])

    await first.commit(*(sent(row) for row in claimed.of(first)))

    assert (await second.delivery(delivery))["status"] == "sending"
    assert await second.count("delivery_queue") == 1
    assert await first.count("delivery_queue") == 0
    await consistent(database.pool, first.workspace, None)
    await consistent(database.pool, second.workspace, None)


async def test_the_limit_is_for_each_workspace(database):
    among = await tenants(database.pool, 3)
    for tenant in among:
        for channel in await tenant.channels(4):
            await tenant.backlog(channel, 5)

    assert (await claim_due(database.pool, among, limit=7)).counts(among) == [7, 7, 7]


async def test_when_there_is_not_room_for_all_every_workspace_gets_as_much(database):
    among = await tenants(database.pool, 4)
    for tenant in among:
        await tenant.backlog(await tenant.channel(), 10)

    assert (await claim_due(database.pool, among, most=8)).counts(among) == [2, 2, 2, 2]


async def test_a_group_that_another_claim_holds_is_passed_over(database):
    among = await tenants(database.pool, 3)
    for tenant in among:
        await limited(tenant)
    holder = await database.connect()
    async with holder.transaction():
        await holder.execute("SELECT 1 FROM platform_limits WHERE workspace_id = $1 FOR UPDATE", among[1].workspace)
        claimed = await claim_due(database.pool, among)
    after = await claim_due(database.pool, among)

    assert claimed.counts(among) == [1, 0, 1]
    told = claimed.workspaces[among[1].workspace]
    assert (told["looked"], told["due_in"] <= 0) == (False, True)  # so the caller comes back
    assert after.counts(among) == [0, 1, 0]


async def test_a_claim_in_one_workspace_and_a_claim_in_many_give_no_slot_twice(database):
    among = await tenants(database.pool, 2)
    for tenant in among:
        await limited(tenant)
    holder = await database.connect()
    async with holder.transaction():
        alone = await among[0].on(holder).claim()
        many = await claim_due(database.pool, among)

    assert len(alone) == 1
    assert many.counts(among) == [0, 1]


async def test_many_claims_at_once_take_each_delivery_once_and_keep_every_rate(database):
    among = await tenants(database.pool, 6)
    for tenant in among:
        await tenant.group(200)
        for channel in await tenant.channels(5, max_parallel=2):
            await tenant.backlog(channel, 6)
    rows = []

    async def replica() -> None:
        connection = await database.connect()
        while True:
            claimed = await claim_due(connection, among)
            rows.extend(claimed.rows)
            for tenant in among:
                await tenant.on(connection).commit(*(sent(row) for row in claimed.of(tenant)))
            if not any(await asyncio.gather(*(tenant.count("delivery_queue") for tenant in among))):
                return

    async with asyncio.timeout(60):
        await asyncio.gather(*(replica() for _ in range(4)))

    assert Counter((row["workspace_id"], row["delivery_id"]) for row in rows).most_common(1)[0][1] == 1
    assert len(rows) == 6 * 5 * 6
    for tenant in among:
        slots = [row["slot_at"].timestamp() for row in rows if row["workspace_id"] == tenant.workspace]
        check_spacing([round(slot * SECOND) for slot in slots], SECOND // 200, "group")
        await consistent(database.pool, tenant.workspace, None)


async def test_a_paused_or_disabled_workspace_is_left_out(database):
    among = await tenants(database.pool, 3)
    for tenant in among:
        await limited(tenant)
    for tenant, status in zip(among[1:], ("paused", "disabled"), strict=True):
        await database.pool.execute(
            f"UPDATE workspaces SET status = '{status}' WHERE workspace_id = $1", tenant.workspace
        )

    claimed = await claim_due(database.pool, among)

    assert claimed.counts(among) == [1, 0, 0]
    assert claimed.workspaces.keys() == {among[0].workspace}


async def test_a_workspace_whose_pause_ran_out_is_left_for_a_claim_of_its_own(database):
    """There the catch-up policy comes first, and ``claim_deliveries`` applies it."""
    among = await tenants(database.pool, 2)
    for tenant in among:
        channel = await tenant.channel(catch_up={"policy": "newest", "keep": 1})
        await tenant.backlog(channel, 3)
        if tenant is among[0]:
            await tenant.set_channel(channel, "paused_until = clock_timestamp() - interval '1 second'")

    claimed = await claim_due(database.pool, among)

    assert claimed.counts(among) == [0, 3]
    assert [claimed.workspaces[tenant.workspace]["alone"] for tenant in among] == [True, False]
    assert len(await among[0].claim()) == 1


async def test_a_workspace_that_nobody_knows_is_no_error(database):
    [tenant] = await tenants(database.pool, 1)
    await limited(tenant)
    stranger = Tenant(database.pool, uuid4())

    claimed = await claim_due(database.pool, [stranger, tenant, tenant])

    assert claimed.counts([tenant]) == [1]
    assert Claimed(await database.pool.fetch("SELECT * FROM claim_due('{}', $1, 1, 1)", uuid4())).rows == []


async def test_a_full_channel_whose_own_rate_is_used_up_is_due_when_that_allows_it(tenant):
    """Until then its send has ended as a rule. So the commit has nothing to write, and a late one makes it due."""
    channel = await tenant.channel(rate_rps=0.5, max_parallel=1)
    await tenant.backlog(channel, 2)
    claim = await tenant.claim_one()
    due = await tenant.due(channel)
    await tenant.commit(sent(claim))

    assert (due["waits_for_place"], due["next_due_at"]) == (False, claim["slot_at"] + timedelta(seconds=2))
    assert await tenant.due(channel) == due


async def test_a_channel_that_is_still_full_then_waits_for_the_place(tenant):
    channel = await tenant.channel(rate_rps=0.5, max_parallel=1)
    await tenant.backlog(channel, 2)
    claim = await tenant.claim_one()
    later = claim["slot_at"] + timedelta(seconds=3)

    claimed = await tenant.claim(now=later)
    waits = (await tenant.due(channel))["waits_for_place"]
    await tenant.commit(sent(claim))

    assert (claimed, waits) == ([], True)
    assert len(await tenant.claim(now=later)) == 1
