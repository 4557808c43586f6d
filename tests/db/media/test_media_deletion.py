"""Collecting objects: what is marked is gone for readers, and nothing is marked that somebody needs or brings."""

import json
from datetime import timedelta

import asyncpg
import pytest
from db.media.test_media_origin import PNG, read, remember
from db.support.builders import Tenant, is_waiting, running
from db.support.collecting import CAT, KEEP, LARGE_BYTES, age, end_leases, fetching, finish, mark
from db.support.senders import make_sender
from db.support.staging import REQUEST, Staging
from harness.eventually import eventually


@pytest.fixture
async def staging(tenant: Tenant) -> Staging:
    await tenant.channel()
    return Staging(tenant, await make_sender(tenant))


@pytest.mark.parametrize(
    ("content_type", "size", "days", "collected"),
    [
        ("image/png", 68, 31, True),
        ("image/png", 68, 29, False),
        ("image/png", LARGE_BYTES, 29, False),
        ("video/mp4", LARGE_BYTES, 8, True),
        ("video/mp4", LARGE_BYTES, 6, False),
        ("video/mp4", LARGE_BYTES - 1, 29, False),
        (None, 68, 31, True),
    ],
)
async def test_an_object_that_nothing_refers_to_goes_when_it_is_old(tenant, content_type, size, days, collected):
    await remember(tenant, PNG, content_type, size=size)
    await age(tenant, timedelta(days=days))

    deletion = await mark(tenant)

    assert [one["blob_ref"] for one in deletion] == [CAT] * collected
    assert (await read(tenant, PNG) == []) == collected


async def test_a_large_video_that_was_posted_goes_with_its_message_and_not_by_its_own_period(tenant):
    await remember(tenant, PNG, "video/mp4", size=LARGE_BYTES)
    message = await tenant.db.fetchval(
        "INSERT INTO messages (workspace_id, content_hash, payload, last_seen_at) "
        "VALUES ($1, 'video', $2, now() - interval '91 days') RETURNING message_id",
        *(tenant.workspace, json.dumps({"media": [{"type": "video", "blob_ref": CAT}]})),
    )
    await age(tenant, timedelta(days=89))
    assert await mark(tenant) == []

    await tenant.db.execute("DELETE FROM messages WHERE message_id = $1", message)

    assert [one["blob_ref"] for one in await mark(tenant)] == [CAT]


async def test_what_is_buried_leaves_nothing_behind(tenant):
    await remember(tenant)
    await tenant.db.execute(
        "INSERT INTO media_blobs (workspace_id, blob_ref, provider, file_id) VALUES ($1, $2, 'telegram', 'x')",
        *(tenant.workspace, CAT),
    )
    await age(tenant)
    [deletion] = await mark(tenant)

    assert await finish(tenant, deletion)

    assert await tenant.count("media_origin") == await tenant.count("media_blobs") == 0
    assert not await finish(tenant, deletion)


async def test_an_object_of_another_bucket_stays(tenant):
    await remember(tenant, bucket="elsewhere")
    await age(tenant)

    assert await mark(tenant) == []


async def refer_by_message(tenant: Tenant) -> None:
    await tenant.enqueue(payload={"type": "media", "media": [{"type": "image", "blob_ref": CAT}]})
    await tenant.db.execute("UPDATE messages SET created_at = now() - interval '1 year', last_seen_at = created_at")


async def refer_by_staged_post(tenant: Tenant) -> None:
    request = {"media": [*REQUEST["media"], {"type": "image", "blob_ref": CAT}]}
    await tenant.db.execute(
        "INSERT INTO staged_posts (workspace_id, endpoint_id, run_id, request) "
        "SELECT $1, endpoint_id, new_id(), $2 FROM workspace_endpoints",
        *(tenant.workspace, json.dumps(request)),
    )


async def refer_by_publication(tenant: Tenant) -> None:
    await tenant.db.execute(
        "INSERT INTO publications (workspace_id, channel_id, creative_draft, media_type, status) "
        "SELECT $1, channel_id, $2, 'photo', 'draft' FROM channels",
        *(tenant.workspace, json.dumps({"blocks": [{"picture": {"blob_ref": CAT}}]})),
    )


async def refer_by_reply(tenant: Tenant) -> None:
    await tenant.db.execute(
        "INSERT INTO bot_outbox (workspace_id, chat_id, inbound_provider_message_id, response_hash, response) "
        "VALUES ($1, '1', '1', 'x', $2)",
        *(tenant.workspace, json.dumps({"attachments": [CAT]})),
    )


async def test_a_reply_that_was_refused_for_good_keeps_nothing(tenant: Tenant) -> None:
    await refer_by_reply(tenant)
    is_live = "SELECT media_is_live($1, $2)"
    before = await tenant.db.fetchval(is_live, tenant.workspace, CAT)

    await tenant.db.execute("UPDATE bot_outbox SET failed_at = now()")

    assert (before, await tenant.db.fetchval(is_live, tenant.workspace, CAT)) == (True, False)


async def refer_by_put(tenant: Tenant) -> None:
    await tenant.db.execute(
        "INSERT INTO media_fetches (workspace_id, url_hash, puts) VALUES ($1, 'a', $2)", tenant.workspace, [CAT]
    )


@pytest.mark.parametrize(
    "refer", [refer_by_message, refer_by_staged_post, refer_by_publication, refer_by_reply, refer_by_put]
)
async def test_an_object_that_something_refers_to_stays(tenant, staging, refer):
    await remember(tenant)
    await age(tenant)
    await refer(tenant)

    assert await mark(tenant) == []
    assert len(await read(tenant, PNG)) == 1


async def test_a_reference_of_another_workspace_keeps_nothing(tenant, staging):
    other = await Tenant.create(tenant.db)
    await remember(tenant)
    await age(tenant)
    await refer_by_message(other)

    assert [one["blob_ref"] for one in await mark(tenant)] == [CAT]


async def test_an_object_that_was_read_stays_until_the_reader_had_time_to_name_it(tenant):
    await remember(tenant)
    await age(tenant)

    await read(tenant, PNG)

    assert await mark(tenant) == []


async def test_reading_what_was_seen_lately_writes_nothing(tenant):
    await remember(tenant)
    version = "SELECT xmin::text FROM media_origin"
    before = await tenant.db.fetchval(version)

    await read(tenant, PNG)

    assert await tenant.db.fetchval(version) == before


async def test_a_reader_that_meets_a_mark_being_made_finds_nothing(database, tenant):
    await remember(tenant)
    await age(tenant)
    marking, reading = await database.connect(), await database.connect()

    async with marking.transaction():
        await mark(tenant.on(marking))
        reader = running(read(tenant.on(reading), PNG))
        await eventually(lambda: is_waiting(tenant.db, reading.get_server_pid()))

    assert await reader == []


async def test_a_reader_that_was_first_keeps_the_object(database, tenant):
    await remember(tenant)
    await age(tenant)
    connection = await database.connect()

    async with connection.transaction():
        assert len(await read(tenant.on(connection), PNG)) == 1
        assert await mark(tenant) == []

    assert await mark(tenant) == []


async def test_the_same_bytes_are_not_written_while_they_are_collected_and_the_post_is_given_back(tenant, staging):
    await remember(tenant)
    await age(tenant)
    await mark(tenant)
    post = await fetching(staging)

    assert await staging.note(post, CAT) is False

    row = await staging.row()
    assert (row["status"], row["attempt"], row["lease_token"]) == ("staged", 0, None)
    assert await tenant.db.fetchval("SELECT next_attempt_at < now() + interval '10 s' FROM staged_posts")
    assert await staging.puts() == []


@pytest.mark.parametrize("ended", ["buried", "lease over"])
async def test_they_are_written_once_nobody_collects_them_any_more(tenant, staging, ended):
    await remember(tenant)
    await age(tenant)
    [deletion] = await mark(tenant)
    post = await fetching(staging)
    if ended == "buried":
        await finish(tenant, deletion)
    else:
        await end_leases(tenant)

    assert await staging.note(post, CAT)
    assert await mark(tenant) == []
    await staging.fetched(post, CAT)

    assert len(await read(tenant, PNG)) == 1
    assert not await finish(tenant, deletion)
    assert await mark(tenant) == []


async def test_a_put_that_was_noted_first_keeps_the_object(database, tenant, staging):
    await remember(tenant)
    await age(tenant)
    post = await fetching(staging)
    connection = await database.connect()

    async with connection.transaction():
        assert await Staging(tenant.on(connection), staging.sender).note(post, CAT)
        assert await mark(tenant) == []

    assert await mark(tenant) == []


async def test_a_put_that_is_noted_while_the_collector_looks_keeps_the_object(database, tenant, staging):
    """The collector looks again once it holds the row: it is held up in its first look."""
    await remember(tenant)
    await age(tenant)
    post = await fetching(staging)
    blocking, marking = await database.connect(), await database.connect()

    async with blocking.transaction():
        await blocking.execute("LOCK TABLE bot_outbox")
        looking = running(mark(tenant.on(marking)))
        await eventually(lambda: is_waiting(tenant.db, marking.get_server_pid()))
        assert await staging.note(post, CAT)

    assert await looking == []
    assert len(await read(tenant, PNG)) == 1


async def test_whoever_stores_without_a_note_is_told_that_the_object_may_vanish(tenant):
    await remember(tenant)
    await age(tenant)
    await mark(tenant)

    with pytest.raises(asyncpg.PostgresError) as refusal:
        await remember(tenant)

    assert refusal.value.sqlstate == "AP012"
    await end_leases(tenant)
    await remember(tenant)
    assert len(await read(tenant, PNG)) == 1


async def test_a_mark_that_nobody_buried_is_taken_over_when_it_is_over(tenant):
    await remember(tenant)
    await age(tenant)
    [first] = await mark(tenant)
    assert await mark(tenant) == []

    await end_leases(tenant)
    [second] = await mark(tenant)

    assert first["deletion_token"] != second["deletion_token"]
    assert not await finish(tenant, first)
    assert await finish(tenant, second)


async def test_a_picture_that_was_fetched_and_is_being_collected_is_fetched_again(tenant, staging):
    await staging.stage()
    await staging.stage()
    one, two = await staging.lease()
    assert await staging.take(one) == "ours"
    await staging.note(one, CAT)
    await staging.fetched(one, CAT)
    assert await staging.take(two) == "held"
    await tenant.db.execute("UPDATE media_origin SET origin_url = 's3://media/x'")
    await age(tenant)

    await mark(tenant)

    assert await staging.take(two) == "ours"


async def test_a_picture_that_a_post_was_told_of_is_young_again(tenant, staging):
    await staging.stage()
    await staging.stage()
    one, two = await staging.lease()
    await staging.take(one)
    await staging.note(one, CAT)
    await staging.fetched(one, CAT)
    await tenant.db.execute("UPDATE media_origin SET origin_url = 's3://media/x'")
    await age(tenant)

    assert await staging.take(two) == "held"

    assert await mark(tenant) == []


async def test_ids_of_providers_go_with_what_they_were_of(tenant, staging):
    await remember(tenant)
    await tenant.db.execute(
        "INSERT INTO media_blobs (workspace_id, blob_ref, provider, file_id, updated_at) "
        "SELECT $1, b, 'telegram', 'x', now() - interval '40 days' FROM unnest($2::text[]) AS b",
        *(tenant.workspace, [CAT, "sha256:gone", "sha256:shown"]),
    )
    await tenant.enqueue(payload={"type": "media", "media": [{"type": "image", "blob_ref": "sha256:shown"}]})

    gone, after = 0, "{}"
    while after is not None:
        step = json.loads(await tenant.db.fetchval("SELECT retain_media_blobs($1, $2, 1)", KEEP, after))
        gone, after = gone + step["gone"], step["after"] and json.dumps(step["after"])

    left = {row["blob_ref"] for row in await tenant.db.fetch("SELECT blob_ref FROM media_blobs")}
    assert (gone, left) == (1, {CAT, "sha256:shown"})


async def test_a_look_costs_no_more_than_its_page_however_many_messages_there_are(database, tenant, staging):
    await tenant.db.execute(
        "INSERT INTO messages (workspace_id, content_hash, payload) SELECT $1, n::text, "
        "jsonb_build_object('type', 'media', 'media', jsonb_build_array(jsonb_build_object('blob_ref', 'x' || n))) "
        "FROM generate_series(1, 20000) AS n",
        tenant.workspace,
    )
    await remember(tenant)
    await age(tenant)
    await tenant.db.execute("VACUUM ANALYZE messages")
    connection = await database.connect()
    call = f"mark_media_for_deletion('media', '30 days', '7 days', {LARGE_BYTES}, '1 minute', '{{}}', 100)"
    await connection.execute(f"BEGIN; SELECT {call}; ROLLBACK")  # plans are made once

    [plan] = json.loads(await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT {call}"))

    assert plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"] < 300, plan
    assert await tenant.db.fetchval("SELECT deletion_token IS NOT NULL FROM media_origin")
