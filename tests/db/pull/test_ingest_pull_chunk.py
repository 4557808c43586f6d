"""A chunk of what a source brought: receipts, messages, deliveries and cursor in one transaction, or none of them."""

import asyncio
import json
from datetime import timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from db.support.builders import Tenant, is_waiting, running
from harness.eventually import eventually

LEASE = timedelta(seconds=60)


class Chunks:
    """One source of a tenant with two channels, leased."""

    def __init__(self, tenant: Tenant, claim: asyncpg.Record) -> None:
        self.tenant = tenant
        self.claim = claim

    def on(self, executor: Any) -> "Chunks":
        return Chunks(self.tenant.on(executor), self.claim)

    async def posts(self, *refs: str) -> list[dict[str, Any]]:
        return [await self.tenant.post(f"text of {ref}", source_ref=ref) for ref in refs]

    async def take(self, posts: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(
            await self.tenant.db.fetchval(
                "SELECT ingest_pull_chunk($1, $2, $3, $4, $5, $6, $7, $8, $9)",
                *(self.claim["workspace_id"], self.claim["source_id"], self.claim["endpoint_id"]),
                options.get("token", self.claim["lease_token"]),
                json.dumps(posts),
                json.dumps(options.get("refused", [])),
                json.dumps(options.get("cursor", {})),
                *(options.get("last", True), LEASE),
            )
        )
        return answer

    async def bring(self, *refs: str, **options: Any) -> dict[str, Any]:
        return await self.take(await self.posts(*refs), **options)

    async def cursor(self) -> dict[str, Any] | None:
        found = await self.tenant.db.fetchval("SELECT cursor_json FROM pull_cursors")
        return None if found is None else json.loads(found)

    async def receipts(self) -> list[str]:
        rows = await self.tenant.db.fetch("SELECT source_ref FROM pull_receipts ORDER BY received_at, source_ref")
        return [row["source_ref"] for row in rows]

    async def stats(self) -> dict[str, Any]:
        stats: dict[str, Any] = json.loads(
            await self.tenant.db.fetchval("SELECT stats_json FROM ingest_runs WHERE run_id = $1", self.claim["run_id"])
        )
        return stats


async def add_source(tenant: Tenant, source_id: str) -> None:
    await tenant.db.execute(
        "INSERT INTO pull_sources (workspace_id, source_id, kind) VALUES ($1, $2, 'rss')", tenant.workspace, source_id
    )
    await tenant.db.execute(
        "INSERT INTO workspace_endpoints (workspace_id, kind, source_id) VALUES ($1, 'pull_source', $2)",
        *(tenant.workspace, source_id),
    )


async def claimed(tenant: Tenant) -> list[Chunks]:
    rows = await tenant.db.fetch("SELECT * FROM claim_pull_sources(10, $1, 10) ORDER BY source_id", LEASE)
    return [Chunks(tenant, row) for row in rows]


@pytest.fixture
async def chunks(tenant: Tenant) -> Chunks:
    await tenant.channels(2)
    await add_source(tenant, "blog")
    [one] = await claimed(tenant)
    return one


async def test_a_chunk_leaves_receipts_messages_deliveries_cursor_and_counters(chunks: Chunks) -> None:
    taken = await chunks.bring("1", "2", cursor={"etag": "x", "last_seen": 2})

    assert taken == {
        **{"verdict": "taken", "accepted": 2, "staged": 0, "enqueued": 4, "deduped": 0},
        **{"dedup_dropped": 0, "payload_rejected": 0, "validation_failed": 0},
    }
    assert await chunks.receipts() == ["1", "2"]
    assert await chunks.cursor() == {"etag": "x", "last_seen": 2}
    assert await chunks.tenant.count("messages") == 2
    assert await chunks.tenant.count("deliveries") == 4
    stats = await chunks.stats()
    assert (stats["accepted"], stats["enqueued"], stats["sources"]["blog"]["accepted"]) == (2, 4, 2)
    orphans = "SELECT count(*) FROM pull_receipts WHERE message_id IS NULL"
    assert await chunks.tenant.db.fetchval(orphans) == 0


async def test_a_repeat_brings_nothing_new_whatever_it_says(chunks: Chunks) -> None:
    await chunks.bring("1", "2")

    again = await chunks.take(
        [await chunks.tenant.post("something else", source_ref="1"), *await chunks.posts("2", "3")]
    )

    assert (again["accepted"], again["dedup_dropped"]) == (1, 2)
    assert await chunks.tenant.count("messages") == 3
    assert (await chunks.stats())["accepted"] == 3


async def test_of_twins_in_a_chunk_the_first_counts_and_the_other_is_told(chunks: Chunks) -> None:
    twin = await chunks.tenant.post("another text", source_ref="1")

    taken = await chunks.take([*await chunks.posts("1"), twin])

    [event] = await chunks.tenant.events("ingress_dedup_dropped")
    texts = await chunks.tenant.db.fetch("SELECT payload ->> 'text' AS text FROM messages")
    assert (taken["accepted"], taken["dedup_dropped"]) == (1, 1)
    assert json.loads(event["error"])["source_refs"] == ["1"]
    assert [row["text"] for row in texts] == ["text of 1"]


SECRET_REF = "https://me:hunter2@blog.example/?token=s3cr3t&to=%2B79001234567&n=" + "9" * 180


async def test_events_tell_references_of_items_without_secrets_and_in_bounds(chunks: Chunks) -> None:
    twin = await chunks.tenant.post("twin", source_ref=SECRET_REF)
    refused = {"source_ref": SECRET_REF + "x", "code": "unprocessable", "message": "password=s3cr3t " + "я" * 500}

    await chunks.take([twin] * 40, refused=[refused])

    events = await chunks.tenant.events()
    told = {event["what"]: event["error"] for event in events if event["error"]}
    assert set(told) == {"ingress_dedup_dropped", "ingress_payload_rejected"}
    for error in told.values():
        assert len(error.encode()) < 2000
        assert "blog.example" in error
        assert not any(secret in error for secret in ("hunter2", "s3cr3t"))
    assert sorted(await chunks.receipts()) == [SECRET_REF, SECRET_REF + "x"]


async def test_channels_show_a_chunk_in_the_order_given(chunks: Chunks) -> None:
    names = [str(number) for number in range(30)]

    await chunks.bring(*names)

    rows = await chunks.tenant.db.fetch(
        "SELECT m.source_ref FROM delivery_queue q JOIN deliveries d USING (workspace_id, delivery_id) "
        "JOIN messages m USING (workspace_id, message_id) WHERE d.channel_id = (SELECT min(channel_id::text)::uuid "
        "FROM channels) ORDER BY q.sort_at, q.delivery_id"
    )
    assert [row["source_ref"] for row in rows] == names


async def test_etag_and_last_modified_are_kept_with_the_last_chunk_alone(chunks: Chunks) -> None:
    given = {"etag": "x", "last_modified": "y", "last_seen": 1}
    await chunks.bring("1", cursor=given, last=False)
    before = await chunks.cursor()

    await chunks.bring("2", cursor=given, last=True)

    assert (before, await chunks.cursor()) == ({"last_seen": 1}, given)


async def test_a_cursor_is_laid_over_the_old_one_and_null_takes_a_name_away(chunks: Chunks) -> None:
    await chunks.bring("1", cursor={"resume": "2", "etag": "x"})

    await chunks.bring("2", cursor={"resume": None, "last_seen": 5})

    assert await chunks.cursor() == {"etag": "x", "last_seen": 5}


async def test_a_chunk_that_fails_leaves_nothing_and_may_be_brought_again(chunks: Chunks) -> None:
    good = await chunks.posts("1", "2")
    bad = [good[0], {**good[1], "hash_version": "none"}]

    with pytest.raises(asyncpg.DataError):
        await chunks.take(bad, cursor={"last_seen": 2})

    assert (await chunks.receipts(), await chunks.cursor(), await chunks.tenant.count("messages")) == ([], None, 0)
    assert (await chunks.take(good))["accepted"] == 2


async def test_whoever_lost_the_lease_changes_nothing(chunks: Chunks) -> None:
    await chunks.tenant.db.execute("UPDATE pull_sources SET lease_until = clock_timestamp() - interval '1 second'")
    [other] = await claimed(chunks.tenant)

    late = await chunks.bring("1", cursor={"last_seen": 1})

    assert late == {"verdict": "stale"}
    assert (await chunks.receipts(), await chunks.cursor()) == ([], None)
    assert (await other.bring("1"))["accepted"] == 1


@pytest.mark.parametrize(
    "stop",
    [
        "UPDATE pull_sources SET enabled = false",
        "UPDATE workspace_endpoints SET enabled = false",
        "UPDATE workspaces SET status = 'paused'",
    ],
)
async def test_a_source_that_was_stopped_meanwhile_brings_nothing(chunks: Chunks, stop: str) -> None:
    await chunks.tenant.db.execute(stop)

    assert await chunks.bring("1") == {"verdict": "stopped"}
    assert await chunks.receipts() == []


async def test_profiles_that_nobody_compiled_for_are_asked_for_once_and_nothing_is_written(chunks: Chunks) -> None:
    posts = await chunks.posts("1", "2")
    await chunks.tenant.channel(settings={"silent": True})

    answer = await chunks.take(posts, cursor={"last_seen": 1})

    assert (answer["verdict"], len(answer["missing_profiles"])) == ("missing_profiles", 1)
    assert (await chunks.receipts(), await chunks.cursor()) == ([], None)


async def test_an_item_that_makes_no_sense_is_told_once_and_never_again(chunks: Chunks) -> None:
    refused = [{"source_ref": "9", "code": "unprocessable", "message": "text: a post needs text"}]

    first = await chunks.bring("1", refused=refused)
    second = await chunks.bring("2", refused=refused)

    [event] = await chunks.tenant.events("ingress_payload_rejected")
    assert (first["payload_rejected"], second["payload_rejected"]) == (1, 0)
    assert json.loads(event["error"]) == refused[0]
    assert await chunks.receipts() == ["1", "9", "2"]


async def test_a_post_whose_media_is_still_to_be_fetched_is_staged_in_the_same_transaction(chunks: Chunks) -> None:
    request = {"text": "a", "media": [{"type": "image", "url": "https://a.example/x.png"}]}
    staged = {"source_ref": "1", "request": request, "source": {"kind": "pull"}, "trace_id": "trace"}

    taken = await chunks.take([staged, *await chunks.posts("2")])
    again = await chunks.take([staged])

    row = await chunks.tenant.db.fetchrow("SELECT * FROM staged_posts")
    assert row is not None
    assert (taken["accepted"], taken["staged"], again["accepted"]) == (2, 1, 0)
    assert (json.loads(row["request"]), row["run_id"]) == (request, chunks.claim["run_id"])
    assert sorted(await chunks.receipts()) == ["1", "2"]


async def test_unseen_items_are_those_without_a_receipt(chunks: Chunks) -> None:
    await chunks.bring("1")
    query = "SELECT unseen_pull_items($1, $2, $3) AS ref"

    rows = await chunks.tenant.db.fetch(query, chunks.tenant.workspace, "blog", ["1", "2", "2"])
    others = await chunks.tenant.db.fetch(query, chunks.tenant.workspace, "another", ["1"])

    assert ([row["ref"] for row in rows], [row["ref"] for row in others]) == (["2"], ["1"])


async def test_two_sources_bring_the_same_content_in_opposite_order_at_once(tenant: Tenant) -> None:
    """Contents are locked in one order, so they do not wait in a circle; each channel gets each text once."""
    await tenant.channels(2)
    for name in ("a", "b"):
        await add_source(tenant, name)
    first, second = await claimed(tenant)
    posts = await first.posts(*map(str, range(20)))

    taken = await asyncio.gather(first.take(posts), second.take(posts[::-1]))

    assert [each["accepted"] for each in taken] == [20, 20]
    assert sum(each["enqueued"] for each in taken) == 40
    assert (await first.stats())["accepted"] == 40


async def test_a_second_chunk_of_the_same_source_waits_for_the_first(chunks: Chunks, database: Any) -> None:
    """The row of the source is held, so receipts are never written by two at once."""
    holder, waiter = await database.connect(), await database.connect()
    transaction = holder.transaction()
    await transaction.start()
    await chunks.on(holder).bring("1")

    second = running(chunks.on(waiter).bring("1"))
    await eventually(lambda: is_waiting(database.pool, waiter.get_server_pid()))
    await transaction.commit()

    assert (await second)["dedup_dropped"] == 1


async def released(chunks: Chunks, ref: str) -> bool:
    query = "SELECT release_pull_receipt($1, $2, $3)"
    again: bool = await chunks.tenant.db.fetchval(query, chunks.claim["workspace_id"], chunks.claim["source_id"], ref)
    return again


async def test_what_is_released_comes_again_three_times_in_all(chunks):
    found = []
    for _ in range(4):
        found.append((await chunks.bring("1"))["accepted"])
        await released(chunks, "1")

    assert found == [1, 1, 1, 0]
    assert await chunks.receipts() == ["1"]


async def test_what_is_released_while_an_answer_is_read_is_asked_for_by_the_next_pull(chunks):
    await chunks.bring("1", last=False)
    again = await released(chunks, "1")

    await chunks.bring("2", cursor={"etag": "new", "last_seen": 2})

    assert (again, await chunks.cursor()) == (True, {"last_seen": 2})


async def test_of_refused_items_with_the_same_reference_the_first_is_told(chunks):
    """Feeds repeat their ids. The second once failed the whole chunk: ON CONFLICT takes no row twice."""
    twins = [{"source_ref": "1", "code": "unprocessable", "message": message} for message in ("one", "two")]
    quiet = [{"source_ref": "2", "quiet": True}] * 2

    taken = await chunks.take([], refused=[*twins, *quiet])

    assert (taken["verdict"], taken["payload_rejected"], taken["passed_over"]) == ("taken", 1, 1)
    [event] = await chunks.tenant.events("ingress_payload_rejected")
    assert json.loads(event["error"])["message"] == "one"


async def test_what_is_released_and_then_refused_is_told(chunks):
    await chunks.bring("1")
    await released(chunks, "1")

    taken = await chunks.take([], refused=[{"source_ref": "1", "code": "unprocessable", "message": "no"}])

    assert (taken["payload_rejected"], await chunks.receipts()) == (1, ["1"])


async def test_items_that_no_channel_takes_are_told_and_never_looked_at_again(tenant, chunks):
    """With media still to be fetched or without: nothing is fetched for nobody."""
    await tenant.db.execute("""UPDATE channels SET route_filter = '{"include_any": ["news"]}'""")
    taken, left, staged = [
        {**post, "tags": [tag], "source": {"kind": "pull", "source_id": chunks.claim["source_id"]}}
        for post, tag in zip(await chunks.posts("a", "b", "c"), ("news", "other", "other"), strict=True)
    ]
    staged |= {"request": {"media": []}, "payload": {"type": "media"}}

    answer = await chunks.take([taken, left, staged])

    assert [answer[name] for name in ("accepted", "enqueued", "staged", "no_channel")] == [3, 2, 0, 2]
    assert await tenant.count("messages") == 1
    assert await tenant.count("staged_posts") == 0
    assert await chunks.receipts() == ["a", "b", "c"]
    events = [event for event in await tenant.events("enqueue") if event["delivery_id"] is None]
    assert [json.loads(event["meta"])["source_ref"] for event in events] == ["b", "c"]
    assert {json.loads(event["meta"])["run_id"] for event in events} == {str(chunks.claim["run_id"])}
    assert (await chunks.stats())["sources"][chunks.claim["source_id"]]["no_channel"] == 2


async def test_twins_of_a_chunk_with_other_tags_go_by_those_of_the_first(tenant, chunks):
    await tenant.db.execute("""UPDATE channels SET route_filter = '{"include_any": ["news"]}'""")
    posts = await chunks.posts("a", "b", "c")
    twins = [
        {**posts[0], "source_ref": post["source_ref"], "tags": [tag]}
        for post, tag in zip(posts, ("other", "news", "other"), strict=True)
    ]

    answer = await chunks.take(twins)

    assert [answer[name] for name in ("enqueued", "deduped", "no_channel")] == [2, 2, 1]
    assert await tenant.db.fetchval("SELECT tags FROM messages") == ["news"]


async def test_a_batch_that_is_repeated_does_not_enqueue_twice(tenant, chunks):
    """Also when nothing else keeps it back: its receipts are released, its content may be posted again."""
    await tenant.db.execute("UPDATE channels SET dedup_ttl_hours = 0")
    posts = [{**post, "batch_id": str(uuid4())} for post in await chunks.posts("a", "b")]
    await chunks.take(posts)
    await tenant.drain()
    await tenant.db.execute("UPDATE pull_receipts SET released_at = now()")

    again = await chunks.take(posts)
    await tenant.db.execute("UPDATE pull_receipts SET released_at = now()")
    another = await chunks.take([{**post, "batch_id": str(uuid4())} for post in posts])

    assert (again["enqueued"], another["enqueued"]) == (0, 4)
