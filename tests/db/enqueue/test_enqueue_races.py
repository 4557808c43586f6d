"""Enqueue under real concurrency: twins meet at the content's row, batches never stand in each other's way."""

import asyncio
import random
from uuid import uuid4

from db.support.builders import is_waiting, running
from harness.eventually import eventually


async def test_of_twelve_twins_each_channel_gets_one(tenant):
    await tenant.channels(5)

    for _ in range(60):
        post = await tenant.post()
        answers = await asyncio.gather(*(tenant.put({**post, "run_id": str(uuid4())}) for _ in range(12)))
        assert sorted(answer["enqueued"] for answer in answers) == [0] * 11 + [5]

    assert await tenant.count("deliveries") == 60 * 5
    assert len(await tenant.events("enqueue")) == 60 * 5
    assert len(await tenant.events("dedup_suppressed")) == 60 * 5 * 11


async def test_a_twin_waits_for_the_first_and_then_sees_it(database, tenant):
    await tenant.channel()
    post = await tenant.post()
    holder, waiter = await database.connect(), await database.connect()

    async with holder.transaction():
        await tenant.on(holder).put(post)
        twin = running(tenant.on(waiter).put(post))
        await eventually(lambda: is_waiting(tenant.db, waiter.get_server_pid()))

    assert (await twin)["deduped"] == 1


async def test_a_twin_goes_on_when_the_first_takes_everything_back(database, tenant):
    await tenant.channel()
    post = await tenant.post()
    holder, waiter = await database.connect(), await database.connect()
    first = holder.transaction()
    await first.start()
    await tenant.on(holder).put(post)
    twin = running(tenant.on(waiter).put(post))
    await eventually(lambda: is_waiting(tenant.db, waiter.get_server_pid()))

    await first.rollback()

    assert (await twin)["enqueued"] == 1


async def test_sixty_four_unsorted_batches_do_not_deadlock(database, tenant):
    """Contents overlap in any order, and so do the channels that each content goes to."""
    chance = random.Random(64)
    for tag in "abcdefgh":
        await tenant.channel(route_filter={"include_any": [tag]})
    await tenant.drain()
    posts = [await tenant.post(f"post {n}", tags=chance.sample("abcdefgh", 2)) for n in range(40)]

    batches = [chance.sample(posts, 8) for _ in range(64)]
    connections = [await database.connect() for _ in batches]  # a pool would let only some of them meet
    answers = await asyncio.gather(
        *(tenant.on(connection).put_batch(batch) for connection, batch in zip(connections, batches, strict=True))
    )

    wanted = {post["content_hash"] for batch in batches for post in batch}
    assert sum(answer["enqueued"] for batch in answers for answer in batch) == 2 * len(wanted)
    assert await tenant.count("deliveries") == 2 * len(wanted)


async def test_two_batches_that_reach_two_idle_channels_crosswise_both_pass(database, tenant):
    """One has reached its first channel and waits for a content; the other comes the opposite way."""
    await tenant.channel(route_filter={"include_any": ["a"]})
    await tenant.channel(route_filter={"include_any": ["b"]})
    await tenant.drain()
    posts = sorted([await tenant.post() for _ in range(4)], key=lambda post: post["content_hash"])
    there = [{**posts[0], "tags": ["a"]}, {**posts[3], "tags": ["b"]}]
    back = [{**posts[1], "tags": ["b"]}, {**posts[2], "tags": ["a"]}]
    holder, one, two = [await database.connect() for _ in range(3)]

    async with holder.transaction():
        await tenant.on(holder).put({**posts[3], "tags": ["nobody"]})
        first = running(tenant.on(one).put_batch(there))
        await eventually(lambda: is_waiting(tenant.db, one.get_server_pid()))
        second = running(tenant.on(two).put_batch(back))
        await eventually(lambda: _settled(tenant, two, second))

    answers = [*await first, *await second]
    assert [answer["enqueued"] for answer in answers] == [1, 1, 1, 1]


PAUSE = """
CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(1);
    RETURN NEW;
END $$;
CREATE TRIGGER pause BEFORE INSERT ON events
FOR EACH ROW WHEN (NEW.action = 'message_tag_mismatch') EXECUTE FUNCTION pause()
"""


async def test_batches_of_new_and_seen_posts_that_reach_two_idle_channels_crosswise_both_pass(database, tenant):
    """Both have enqueued what is new, each to another channel, when they go on with what was seen."""
    for tag in ("a", "b"):
        await tenant.channel(route_filter={"include_any": [tag]})
    await tenant.drain()
    seen = [await tenant.post(tags=[tag]) for tag in ("b", "a")]
    await tenant.put_batch(seen)
    await tenant.drain()
    await tenant.db.execute("UPDATE deliveries SET sent_at = now() - interval '8 days'")
    there = [await tenant.post(tags=["a"]), {**seen[0], "tags": ["other"]}]
    back = [await tenant.post(tags=["b"]), {**seen[1], "tags": ["other"]}]
    await tenant.db.execute(PAUSE)
    holder, one, two = [await database.connect() for _ in range(3)]

    async with holder.transaction():
        await holder.execute("SELECT pg_advisory_xact_lock(1)")
        batches = [running(tenant.on(each).put_batch(posts)) for each, posts in ((one, there), (two, back))]
        for each in (one, two):
            await eventually(lambda each=each: is_waiting(tenant.db, each.get_server_pid()))

    answers = [answer for batch in batches for answer in await batch]
    assert [answer["enqueued"] for answer in answers] == [1, 1, 1, 1]


async def _settled(tenant, connection, task) -> bool:
    return task.done() or await is_waiting(tenant.db, connection.get_server_pid())
