"""Closing and opening channels by hand: what waits is kept, and each channel says what of it is still worth sending."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import asyncpg
import pytest
from db.support.builders import NEVER, Tenant, is_waiting, permanent, running, transient
from db.support.operators import Operator, meta
from harness.eventually import eventually

HOURS = timedelta(hours=1)
READ = """
    SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))
    FROM pg_stat_xact_user_tables
    WHERE relname IN ('deliveries', 'messages')"""


async def seen(tenant: Tenant, delivery, age: timedelta) -> None:
    """Its content was last posted so long ago."""
    await tenant.db.execute(
        "UPDATE messages SET last_seen_at = clock_timestamp() - $2::interval "
        "WHERE message_id = (SELECT message_id FROM deliveries WHERE delivery_id = $1)",
        *(delivery, age),
    )


async def piled_up(tenant: Tenant, channel, *hours: float) -> list:
    """Deliveries of a channel, whose contents were last posted so many hours ago."""
    deliveries = await tenant.backlog(channel, len(hours))
    for delivery, age in zip(deliveries, hours, strict=True):
        await seen(tenant, delivery, age * HOURS)
    return deliveries


async def claimed(tenant: Tenant) -> list:
    return [claim["delivery_id"] for claim in await tenant.claim()]


async def test_a_paused_channel_keeps_what_it_has_and_is_told_about(tenant, operator):
    channel, other = await tenant.channels(2)
    [kept], [free] = await tenant.backlog(channel, 1), await tenant.backlog(other, 1)

    assert await operator.pause(channel) == {channel: "paused"}

    [event] = await tenant.events("channel_paused")
    until = (await tenant.state(channel))["paused_until"]
    assert HOURS * 0.99 < until - datetime.now(UTC) < HOURS * 1.01
    assert (event["channel_id"], event["attempt"], event["ended"]) == (channel, 0, "ok")
    assert meta(event).items() >= {"operator": "ann", "reason": "because", "manual": True}.items()
    assert await claimed(tenant) == [free]
    await operator.resume(channel)
    assert await claimed(tenant) == [kept]


async def test_a_pause_is_never_shortened(tenant, operator):
    channel = await tenant.channel()
    await operator.pause(channel, **{"for": None})

    assert (await tenant.state(channel))["paused_until"] == NEVER
    assert await operator.pause(channel) == {channel: "unchanged"}
    assert (await tenant.state(channel))["paused_until"] == NEVER
    assert len(await tenant.events("channel_paused")) == 1


async def test_a_group_is_paused_disabled_and_enabled_as_one(tenant, operator):
    mine = await tenant.channels(2, rate_group="mine")
    await tenant.channel(rate_group="other")
    await tenant.enqueue()

    assert await operator.pause(group="mine") == dict.fromkeys(mine, "paused")
    assert await operator.disable(group="mine") == dict.fromkeys(mine, "disabled")
    assert await operator.disable(group="mine") == dict.fromkeys(mine, "unchanged")
    assert len(await tenant.claim()) == 1
    assert await operator.resume(group="mine") == dict.fromkeys(mine, "still_disabled")
    assert await tenant.claim() == []
    assert await operator.enable(group="mine") == dict.fromkeys(mine, "enabled")
    assert await operator.enable(group="mine") == dict.fromkeys(mine, "unchanged")
    assert len(await tenant.claim()) == 2

    told = await tenant.events("channel_paused", "channel_disabled", "channel_enabled")
    assert {meta(event)["rate_group"] for event in told} == {"mine"}
    assert [event["what"] for event in told] == [
        *["channel_paused"] * 2,
        *["channel_disabled"] * 2,
        *["channel_enabled"] * 4,
    ]


async def test_nothing_new_is_routed_to_a_disabled_channel(tenant, operator):
    channel = await tenant.channel()
    await operator.disable(channel)

    assert (await tenant.enqueue())["enqueued"] == 0


async def test_resume_leaves_the_streak_and_enable_ends_it(tenant, operator):
    channel = await tenant.channel()
    await tenant.backlog(channel, 1)
    await tenant.commit(permanent(await tenant.claim_one(), "channel"))

    assert await operator.resume(channel) == {channel: "resumed"}
    state = await tenant.state(channel)
    assert (state["paused_until"], state["error_streak"]) == (None, 1)

    assert await operator.enable(channel) == {channel: "enabled"}
    state = await tenant.state(channel)
    assert (state["enabled"], state["error_streak"]) == (True, 0)
    assert [meta(event)["how"] for event in await tenant.events("channel_enabled")] == ["resume", "enable"]


async def test_what_is_not_there_is_a_value_and_what_is_not_said_is_raised(operator):
    nobody = uuid4()

    for act in (operator.pause, operator.disable, operator.resume, operator.enable):
        assert await act(nobody) == {nobody: "not_found"}
        assert await act(group="nobody") == {}
        for target in ((None, None), (nobody, "bot")):
            with pytest.raises(asyncpg.PostgresError) as raised:
                await act(*target)
            assert raised.value.sqlstate == "AP011"
    with pytest.raises(asyncpg.PostgresError) as raised:
        await operator.pause(nobody, **{"for": timedelta(0)})
    assert raised.value.sqlstate == "AP011"


async def test_all_is_kept_by_default(tenant, operator):
    channel = await tenant.channel()
    await operator.disable(channel)
    deliveries = await piled_up(tenant, channel, 900, 30, 1)

    await operator.enable(channel)

    assert await claimed(tenant) == deliveries
    assert await tenant.events("catch_up_dropped") == []


@pytest.mark.parametrize("closed_by", ["pause", "disable"])
async def test_the_newest_are_kept_by_when_they_were_last_posted(tenant, operator, closed_by):
    channel = await tenant.channel(catch_up={"policy": "newest", "keep": 2})
    await getattr(operator, closed_by)(channel)
    reposted, *lost, fresh = await piled_up(tenant, channel, 1, 5, 4, 3, 2)

    await (operator.resume if closed_by == "pause" else operator.enable)(channel)

    assert await claimed(tenant) == [reposted, fresh]
    events = await tenant.events("catch_up_dropped")
    assert {event["delivery_id"] for event in events} == set(lost)
    for delivery in lost:
        row = await tenant.delivery(delivery)
        assert (row["status"], row["attempt"]) == ("failed_permanent", 0)
        assert json.loads(row["last_error"])["code"] == "catch_up_dropped"
    [told] = await tenant.events("channel_enabled")
    assert meta(told)["dropped"] == 3
    assert meta(events[0]).items() >= {"operator": "ann", "manual": True, "from_status": "queued"}.items()


async def test_what_was_posted_too_long_ago_is_dropped(tenant, operator):
    channel = await tenant.channel(catch_up={"policy": "drop_older", "older_than": "2 hours"})
    await operator.pause(channel)
    _, kept, reposted = await piled_up(tenant, channel, 2.1, 1.9, 50)
    await seen(tenant, reposted, timedelta(0))

    await operator.resume(channel)

    assert await claimed(tenant) == [kept, reposted]


async def test_each_channel_of_a_group_follows_its_own_policy(tenant, operator):
    every = await tenant.channel()
    last = await tenant.channel(catch_up={"policy": "newest", "keep": 1})
    await operator.pause(group="bot")
    kept = await piled_up(tenant, every, 2, 1)
    _, newest = await piled_up(tenant, last, 2, 1)

    await operator.resume(group="bot")

    assert sorted(await claimed(tenant)) == sorted([*kept, newest])


async def test_what_is_not_part_of_the_pile_is_not_dropped(tenant, operator):
    """Scheduled for later, held for a human, begun already: none is dropped, none takes a place."""
    channel = await tenant.channel(catch_up={"policy": "newest", "keep": 1}, on_ambiguous="hold")
    [doubtful] = await tenant.backlog(channel, 1)
    await tenant.commit(transient(await tenant.claim_one(), ambiguous=True))
    await operator.pause(channel)
    later, begun, old, new = await piled_up(tenant, channel, 1, 9, 8, 7)
    await tenant.set_delivery(later, "scheduled_for = now() + interval '1 day'")
    await tenant.set_delivery(begun, """render_meta = '{"series_progress": {"sent_items": [0]}}'""")

    await operator.resume(channel)

    assert [event["delivery_id"] for event in await tenant.events("catch_up_dropped")] == [old]
    assert await claimed(tenant) == [begun, new]
    assert (await tenant.delivery(doubtful))["hold_reason"] == "ambiguous"


async def test_nothing_is_dropped_while_the_channel_stays_closed_or_was_open(tenant, operator):
    channel = await tenant.channel(catch_up={"policy": "newest", "keep": 0})
    await tenant.backlog(channel, 1)
    await operator.resume(channel)
    await operator.enable(channel)
    await operator.disable(channel)
    await operator.pause(channel)
    await operator.resume(channel)

    assert (await tenant.only_delivery())["status"] == "queued"


async def test_a_post_that_is_repeated_during_the_resume_is_never_lost(database, tenant):
    """Either the repetition makes it young in time, or it finds it dropped and is queued anew."""
    channel = await tenant.channel(catch_up={"policy": "drop_older", "older_than": "2 hours"})
    await tenant.enqueue("same")
    await Operator(tenant).pause(channel)
    delivery = (await tenant.only_delivery())["delivery_id"]
    holder, waiter = await database.connect(), await database.connect()

    await seen(tenant, delivery, 3 * HOURS)
    async with holder.transaction():
        assert (await tenant.on(holder).enqueue("same"))["deduped"] == 1
        resume = running(Operator(tenant.on(waiter)).resume(channel))
        await eventually(lambda: is_waiting(tenant.db, waiter.get_server_pid()))
    await resume
    assert (await tenant.delivery(delivery))["status"] == "queued"

    await Operator(tenant).pause(channel)
    await seen(tenant, delivery, 3 * HOURS)
    async with holder.transaction():
        await Operator(tenant.on(holder)).resume(channel)
        repeated = running(tenant.on(waiter).enqueue("same"))
        await eventually(lambda: is_waiting(tenant.db, waiter.get_server_pid()))
    assert (await repeated)["enqueued"] == 1


async def test_a_resume_waits_for_a_delivery_before_it_makes_the_channel_due(database, tenant, operator):
    """Who holds a delivery may want channel_due next, and must not find it taken by who waits for the delivery."""
    channel = await tenant.channel(catch_up={"policy": "newest", "keep": 0})
    [delivery] = await tenant.backlog(channel, 1)
    await operator.pause(channel)
    await tenant.claim()
    holder, waiter = await database.connect(), await database.connect()

    async with holder.transaction():
        await holder.execute("SELECT 1 FROM deliveries WHERE delivery_id = $1 FOR UPDATE", delivery)
        resume = running(Operator(tenant.on(waiter)).resume(channel))
        await eventually(lambda: is_waiting(tenant.db, waiter.get_server_pid()))
        await tenant.on(holder).set_delivery(delivery, "not_before = now()")

    assert await resume == {channel: "resumed"}


async def test_opening_and_closing_among_claims_and_posts_meets_no_deadlock(database, tenant):
    for tag in "abc":
        await tenant.channel(
            catch_up={"policy": "newest", "keep": 2}, max_parallel=2, route_filter={"include_any": [tag]}
        )
    posts = [await tenant.post(f"post {n}", tags=["a", "b", "c"]) for n in range(6)]

    async def close_and_open(connection) -> None:
        operator = Operator(tenant.on(connection))
        for _ in range(15):
            await operator.pause(group="bot")
            await operator.enable(group="bot")

    async def work(connection) -> None:
        mine = tenant.on(connection)
        for turn in range(15):
            await mine.put_batch(posts[turn % 6 :] + posts[: turn % 6])
            await mine.commit(*(permanent(claim) for claim in await mine.claim(4)))

    connections = [await database.connect() for _ in range(5)]
    await asyncio.gather(*map(close_and_open, connections[:2]), *map(work, connections[2:]))
    await Operator(tenant).enable(group="bot")


@pytest.mark.parametrize(
    "policy",
    [
        {},
        {"policy": "some"},
        {"policy": "newest"},
        {"policy": "newest", "keep": "3"},
        {"policy": "newest", "keep": -1},
        {"policy": "newest", "keep": 1.5},
        {"policy": "drop_older"},
        {"policy": "drop_older", "older_than": 7},
        {"policy": "drop_older", "older_than": "a while"},
        {"policy": "drop_older", "older_than": "0 hours"},
    ],
    ids=str,
)
async def test_a_policy_that_could_not_be_applied_is_refused(tenant, policy):
    with pytest.raises(asyncpg.CheckViolationError, match="catch_up_is_known"):
        await tenant.channel(catch_up=policy)


async def test_quarantine_shows_what_waits_why_and_until_when(tenant, operator):
    open_, paused, punished, off = [await tenant.channel(title=title) for title in "abcd"]
    await tenant.backlog(open_, 1)
    await tenant.backlog(punished, 1)
    for claim in await tenant.claim():
        if claim["channel_id"] == punished:
            await tenant.commit(permanent(claim, "channel", code="chat_not_found"))
    oldest, _ = await tenant.backlog(paused, 2)
    await tenant.backlog(off, 1)
    await operator.pause(paused)
    await operator.disable(off)

    rows = await operator.quarantine()

    assert [(row["channel_id"], row["state"], row["reason"], row["operator"], row["waiting"]) for row in rows] == [
        (paused, "paused", "because", "ann", 2),
        (punished, "paused", "chat_not_found", None, 0),
        (off, "disabled", "because", "ann", 1),
    ]
    assert rows[0]["oldest_at"] == (await tenant.delivery(oldest))["created_at"]
    assert rows[0]["until"] == (await tenant.state(paused))["paused_until"]
    assert rows[2]["until"] is None
    assert all(row["since"] <= datetime.now(UTC) for row in rows)


async def test_quarantine_counts_a_backlog_without_reading_its_deliveries(tenant, operator):
    channel = await tenant.channel(on_ambiguous="hold")
    await tenant.backlog(channel, 1)
    await tenant.commit(transient(await tenant.claim_one(), ambiguous=True))
    await tenant.backlog(channel, 50)
    await operator.pause(channel)

    async with tenant.db.acquire() as connection, connection.transaction():
        await connection.execute("SET LOCAL enable_seqscan = off")  # as with a table that is not this small
        before = await connection.fetchval(READ)
        row = await connection.fetchrow("SELECT * FROM quarantine WHERE channel_id = $1", channel)
        read = await connection.fetchval(READ) - before

    assert (row["waiting"], row["held"]) == (51, 1)
    assert row["last_seen_at"] is not None
    assert read <= 6


async def test_a_pause_that_runs_out_is_followed_by_the_catch_up(tenant, operator):
    channel = await tenant.channel(catch_up={"policy": "newest", "keep": 1})
    await operator.pause(channel, **{"for": timedelta(milliseconds=200)})
    *lost, newest = await piled_up(tenant, channel, 4, 3, 2, 1)

    [claim] = await eventually(tenant.claim)

    events = await tenant.events("catch_up_dropped")
    assert claim["delivery_id"] == newest
    assert {event["delivery_id"] for event in events} == set(lost)
    assert meta(events[0]).items() >= {"how": "pause_ended", "run_id": str(tenant.run_id)}.items()
    assert (await tenant.state(channel))["paused_until"] is None
    await piled_up(tenant, channel, 2, 1)
    assert len(await tenant.claim()) == 2  # it was followed once


async def test_a_channel_that_is_off_when_its_pause_runs_out_catches_up_when_it_is_enabled(tenant, operator):
    channel = await tenant.channel(catch_up={"policy": "newest", "keep": 1})
    await tenant.set_channel(channel, "paused_until = now() - interval '1 hour', enabled = false")
    *_, newest = await piled_up(tenant, channel, 2, 1)
    assert await tenant.claim() == []
    assert await tenant.events("catch_up_dropped") == []

    await operator.enable(channel)

    assert await claimed(tenant) == [newest]


async def test_a_pause_that_ran_out_before_there_was_a_policy_is_no_matter_of_it(tenant):
    channel = await tenant.channel()
    await tenant.set_channel(channel, "paused_until = now() - interval '1 hour'")
    deliveries = await piled_up(tenant, channel, 2, 1)

    await tenant.set_channel(channel, """catch_up = '{"policy": "newest", "keep": 1}'""")

    assert await claimed(tenant) == deliveries


async def test_enabling_a_channel_whose_pause_ran_out_unseen_catches_up(tenant, operator):
    channel = await tenant.channel(catch_up={"policy": "newest", "keep": 1})
    await tenant.set_channel(channel, "paused_until = now() - interval '1 hour', error_streak = 1")
    *_, newest = await piled_up(tenant, channel, 2, 1)

    await operator.enable(channel)

    assert await claimed(tenant) == [newest]
