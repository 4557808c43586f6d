"""Where stored media lies and what is known of it: remembered once per workspace, read by whoever names it."""

import asyncio
from hashlib import sha256
from typing import Any

import asyncpg
from db.support.builders import Tenant

PNG = sha256(b"png").hexdigest()
MP4 = sha256(b"mp4").hexdigest()
UNKNOWN = sha256(b"never stored").hexdigest()
EARLIER = "UPDATE media_origin SET last_seen_at = last_seen_at - interval '1 day'"


def ref(digest: str) -> str:
    return f"sha256:{digest}"


async def remember(tenant: Tenant, digest: str = PNG, content_type: str | None = "image/png", **more: Any) -> None:
    given = {"size": 68, "width": None, "height": None, "name": None, "bucket": "media", **more}
    await tenant.db.execute(
        "SELECT remember_media_origin($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        *(tenant.workspace, ref(digest), f"s3://{given['bucket']}/{tenant.workspace}/media/{digest}", digest),
        *(content_type, given["size"], given["width"], given["height"], given["name"]),
    )


async def read(tenant: Tenant, *digests: str) -> list[tuple[Any, ...]]:
    """Rows of blob_ref, content_type, size, width, height and name."""
    query = "SELECT * FROM read_media_origins($1, $2) ORDER BY size_bytes"
    return [tuple(row) for row in await tenant.db.fetch(query, tenant.workspace, [ref(digest) for digest in digests])]


async def stored(tenant: Tenant) -> asyncpg.Record:
    [row] = await tenant.db.fetch("SELECT * FROM media_origin WHERE workspace_id = $1", tenant.workspace)
    return row


async def test_what_was_remembered_is_read_by_its_ref(tenant):
    await remember(tenant, PNG, "image/png", size=68, width=3, height=2, name="a.png")
    await remember(tenant, MP4, "video/mp4", size=900)

    assert await read(tenant, PNG, MP4) == [
        (ref(PNG), "image/png", 68, 3, 2, "a.png"),
        (ref(MP4), "video/mp4", 900, None, None, None),
    ]


async def test_each_ref_that_is_asked_for_and_known_is_one_row(tenant):
    await remember(tenant, PNG)
    await remember(tenant, MP4)

    found = await read(tenant, PNG, PNG, UNKNOWN)

    assert [blob_ref for blob_ref, *_ in found] == [ref(PNG)]


async def test_media_of_another_workspace_is_not_there(tenant):
    other = await Tenant.create(tenant.db)
    await remember(other, PNG)

    assert await read(tenant, PNG) == []


async def test_two_workspaces_remember_the_same_bytes_apart(tenant):
    other = await Tenant.create(tenant.db)
    await remember(tenant, PNG, name="ours.png")
    await remember(other, PNG, name="theirs.png")

    assert [row[-1] for one in (tenant, other) for row in await read(one, PNG)] == ["ours.png", "theirs.png"]


async def test_remembering_again_moves_last_seen_at_and_nothing_of_its_birth(tenant):
    await remember(tenant)
    await tenant.db.execute(EARLIER)
    before = await stored(tenant)

    await remember(tenant)

    after = await stored(tenant)
    assert after["last_seen_at"] > before["last_seen_at"]
    assert after["created_at"] == before["created_at"]


async def test_last_seen_at_never_moves_back(tenant):
    await remember(tenant)
    await tenant.db.execute("UPDATE media_origin SET last_seen_at = last_seen_at + interval '1 day'")
    before = await stored(tenant)

    await remember(tenant)

    assert (await stored(tenant))["last_seen_at"] == before["last_seen_at"]


async def test_remembering_again_says_what_is_newer_and_keeps_what_it_does_not_say(tenant):
    await remember(tenant, PNG, "image/png", width=3, height=2, name="a.png")

    await remember(tenant, PNG, None, size=None, name="b.png", bucket="moved")

    row = await stored(tenant)
    assert row["origin_url"] == f"s3://moved/{tenant.workspace}/media/{PNG}"
    assert (row["content_type"], row["size_bytes"], row["sha256"]) == ("image/png", 68, PNG)
    assert (row["width"], row["height"], row["name"]) == (3, 2, "b.png")


async def test_of_many_who_remember_the_same_at_once_all_are_content(tenant):
    await asyncio.gather(*(remember(tenant, name=f"{number}.png") for number in range(8)))

    assert await tenant.count("media_origin") == 1


async def test_ingest_remembers_and_reads_in_its_own_role(tenant, database):
    connection = await database.connect()
    await connection.execute("SET ROLE autopost_ingest")
    as_ingest = tenant.on(connection)

    await remember(as_ingest)

    assert len(await read(as_ingest, PNG)) == 1
