"""The media of staged posts: each address fetched by one post at a time, each object accounted for."""

import asyncio


async def test_a_url_is_fetched_by_one_post_at_a_time(staging):
    for _ in range(6):
        await staging.stage()
    posts = await staging.lease()

    verdicts = await asyncio.gather(*(staging.take(post) for post in posts))

    assert sorted(verdicts) == ["busy"] * 5 + ["ours"]


async def test_a_fetch_is_free_again_when_its_post_has_ended_however_that_was(tenant, staging):
    await staging.stage()
    await staging.stage()
    one, two = await staging.lease()
    await staging.take(one)
    meanwhile = await staging.take(two)

    await staging.fail(one, attempts=5)

    assert (meanwhile, await staging.take(two)) == ("busy", "ours")


async def test_a_fetch_is_free_again_when_the_lease_of_a_dead_worker_is_over(tenant, staging):
    await staging.stage()
    dead = await staging.leased()
    await staging.take(dead)
    await staging.stage()
    post = await staging.leased()

    meanwhile = await staging.take(post)
    await staging.tenant.db.execute(
        "UPDATE staged_posts SET lease_until = now() - interval '1 s' WHERE post_id = $1", dead["post_id"]
    )

    assert (meanwhile, await staging.take(post)) == ("busy", "ours")


async def test_what_was_fetched_meanwhile_is_held_for_those_who_waited_and_not_for_those_who_came_later(
    tenant, staging
):
    await staging.stage()
    await staging.stage()
    one, waiting = await staging.lease()
    await staging.take(one)
    await staging.fetched(one, "sha256:cat")
    await staging.stage()

    [later] = await staging.lease()

    assert [await staging.take(post) for post in (one, waiting, later)] == ["held", "held", "ours"]


async def test_a_worker_that_lost_its_lease_fetches_and_stores_nothing(staging):
    await staging.stage()
    old = await staging.leased()
    await staging.take(old)
    await staging.let_leases_end()
    new = await staging.leased()
    await staging.take(new)

    assert await staging.take(old) == "stale"
    assert await staging.note(old, "sha256:cat") is False
    assert await staging.note(new, "sha256:cat") is True


async def test_an_object_that_may_exist_is_accounted_for_until_it_is_an_origin(tenant, staging):
    await staging.stage()
    post = await staging.leased()
    await staging.take(post)
    await staging.note(post, "sha256:cat")  # and then the worker died, and the picture changed
    await staging.let_leases_end()
    again = await staging.leased()
    await staging.take(again)

    await staging.note(again, "sha256:dog")
    before = await staging.puts()
    await staging.fetched(again, "sha256:dog")

    assert before == ["sha256:cat", "sha256:dog"]
    assert await staging.puts() == ["sha256:cat"]
    assert await tenant.db.fetchval("SELECT array_agg(blob_ref) FROM media_origin") == ["sha256:dog"]


async def test_fetches_of_long_ago_are_forgotten_unless_they_leave_something_to_account_for(tenant, staging):
    await tenant.db.execute(
        "INSERT INTO media_fetches (workspace_id, url_hash, puts, started_at) "
        "SELECT $1, 'old ' || n, CASE WHEN n = 1 THEN '{sha256:cat}' ELSE '{}' END::text[], now() - interval '2 days' "
        "FROM generate_series(1, 5) AS n",
        tenant.workspace,
    )
    await staging.stage()
    post = await staging.leased()
    await staging.take(post)

    await staging.fetched(post, "sha256:dog")

    left = await tenant.db.fetch("SELECT url_hash FROM media_fetches ORDER BY 1")
    assert [row["url_hash"] for row in left] == ["a.png", "old 1"]
