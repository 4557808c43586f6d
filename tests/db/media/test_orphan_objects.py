"""Objects that a killed fetch may have left: collected after a day, unless somebody brings them again."""

from datetime import timedelta

import pytest
from db.media.test_media_origin import PNG, read, remember
from db.support.builders import Tenant, is_waiting, running
from db.support.collecting import CAT, age_fetches, end_leases, fetching, finish, mark, mark_orphan_objects
from db.support.senders import make_sender
from db.support.staging import Staging
from harness.eventually import eventually


@pytest.fixture
async def staging(tenant: Tenant) -> Staging:
    await tenant.channel()
    return Staging(tenant, await make_sender(tenant))


async def test_an_object_that_a_killed_fetch_may_have_left_is_collected_after_a_day(tenant, staging):
    post = await fetching(staging)
    await staging.note(post, CAT)
    assert await mark_orphan_objects(tenant) == []

    await age_fetches(tenant, timedelta(days=2))
    [stray] = await mark_orphan_objects(tenant)

    assert stray["origin_url"] == f"s3://media/{tenant.workspace}/media/{PNG}"
    assert await read(tenant, PNG) == []
    assert await staging.puts() == []
    assert await finish(tenant, stray)
    assert await tenant.count("media_origin") == 0


async def test_a_stray_that_nobody_buried_is_taken_over(tenant, staging):
    post = await fetching(staging)
    await staging.note(post, CAT)
    await age_fetches(tenant, timedelta(days=2))
    await mark_orphan_objects(tenant)

    await end_leases(tenant)

    assert [one["blob_ref"] for one in await mark(tenant)] == [CAT]


async def test_a_stray_that_became_an_origin_elsewhere_is_only_crossed_off(tenant, staging):
    post = await fetching(staging)
    await staging.note(post, CAT)
    await age_fetches(tenant, timedelta(days=2))
    await remember(tenant)

    assert await mark_orphan_objects(tenant) == []

    assert await staging.puts() == []
    assert len(await read(tenant, PNG)) == 1


async def test_a_stray_that_is_being_brought_again_is_left_alone(database, tenant, staging):
    """Its name is the lock: there is no row yet that both could hold."""
    old = await fetching(staging)
    await staging.note(old, CAT)
    await age_fetches(tenant, timedelta(days=2))
    await staging.stage()
    new = await staging.leased()
    assert await staging.take(new, "b.png") == "ours"
    noting, marking = await database.connect(), await database.connect()

    async with noting.transaction():
        query = "SELECT note_media_put($1, 'b.png', $2, $3)"
        assert await noting.fetchval(query, tenant.workspace, new["lease_token"], CAT)
        strays = running(mark_orphan_objects(tenant.on(marking)))
        await eventually(lambda: is_waiting(tenant.db, marking.get_server_pid()))

    assert await strays == []


async def test_a_put_of_what_is_marked_as_a_stray_waits_until_that_is_over(tenant, staging):
    old = await fetching(staging)
    await staging.note(old, CAT)
    await age_fetches(tenant, timedelta(days=2))
    await mark_orphan_objects(tenant)

    await staging.let_leases_end()
    [new] = await staging.lease()
    await staging.take(new)

    assert await staging.note(new, CAT) is False
