"""What a sender is told of tags: which ones a repeated content goes by, and that nobody takes a post."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from harness.buckets import Bucket
from harness.databases import Database
from ingest.support.ingest_client import TABLES, IngestClient
from ingest.support.pictures import PNG, Pictures
from ingest.support.staging_ingest import Workshop, workshop

FILTERED = """
    UPDATE channels SET route_filter = CASE platform
        WHEN 'telegram' THEN '{"include_any": ["a"]}'::jsonb ELSE '{"include_any": ["b"]}' END
"""
MISMATCH = {
    "code": "tag_mismatch",
    "message": "this content was first posted with other tags; it is routed by first_tags, tags are ignored",
    "first_tags": ["a"],
    "tags": ["b", "c"],
}


@pytest.fixture
async def shop(seeded_database: Database, s3: Bucket) -> AsyncIterator[Workshop]:
    """Fetches media too."""
    await seeded_database.pool.execute(FILTERED)
    async with workshop(seeded_database, s3) as made:
        yield made


def counts(answer: dict[str, Any]) -> tuple[int, int, int]:
    told = answer["counts"] if "counts" in answer else answer["channels"]
    return told["routed"], told["enqueued"], told["deduped"]


async def test_a_repeat_with_other_tags_is_warned_with_both_sets(client: IngestClient) -> None:
    await client.sql(FILTERED)
    first = (await client.post({"text": "hello", "tags": ["A "]})).json()

    dry = (await client.try_out({"text": "hello", "tags": ["c", "B"]})).json()
    again = await client.post({"text": "hello", "tags": ["c", "B"]})

    assert "warnings" not in first
    assert (again.status_code, again.json()["warnings"]) == (202, [MISMATCH])
    assert dry["warnings"] == [MISMATCH]
    assert counts(again.json()) == counts(dry) == (20, 0, 20)


async def test_a_dry_run_of_a_repeat_says_what_keeps_channels_away_by_the_first_tags(client: IngestClient) -> None:
    await client.sql(FILTERED)
    await client.post({"text": "hello", "tags": ["a"]})

    dry = (await client.try_out({"text": "hello", "tags": ["b"]})).json()

    reasons = {channel["route"]["reasons"][0] for channel in dry["channels"] if not channel["route"]["routed"]}
    assert reasons == {"route_filter requires one of the tags b; the post has a"}


async def test_a_post_that_no_channel_takes_is_refused_and_leaves_its_event(client: IngestClient) -> None:
    await client.sql(FILTERED)

    dry = (await client.try_out({"text": "hello", "tags": ["c"], "source_ref": "1"})).json()
    answer = await client.post({"text": "hello", "tags": ["c"], "source_ref": "1"})
    repeated = await client.post({"text": "hello", "tags": ["a"], "source_ref": "1"})

    assert (answer.status_code, answer.json()["code"], counts(answer.json())) == (422, "no_channel", (0, 0, 0))
    assert counts(dry) == (0, 0, 0)
    assert (repeated.status_code, counts(repeated.json())) == (202, (20, 20, 0))
    events = "SELECT count(*) FROM events WHERE action = 'enqueue' AND error ->> 'code' = 'no_channel'"
    assert await client.sql(events) == 1


async def test_media_is_not_fetched_for_a_post_that_no_channel_takes(shop: Workshop, site: Pictures) -> None:
    url = site.put("/cat.png", PNG)

    answer = await shop.post({"media": [{"type": "photo", "url": url}], "tags": ["c"]})

    assert (answer.status_code, answer.json()["code"], counts(answer.json())) == (422, "no_channel", (0, 0, 0))
    assert site.hits["/cat.png"] == 0
    assert await shop.rows() == dict.fromkeys(TABLES, 0)
    assert await shop.sql("SELECT error ->> 'code' FROM events") == "no_channel"
    assert await shop.sql("SELECT finished_at IS NOT NULL FROM ingest_runs")


async def test_a_staged_repeat_with_other_tags_is_warned_where_its_sender_asks(shop: Workshop, site: Pictures) -> None:
    url = site.put("/cat.png", PNG)
    await shop.became(await shop.stage(url, tags=["a"]), "enqueued")

    told = await shop.became(await shop.stage(url, tags=["b", "c"]), "enqueued")

    assert (told["warnings"], counts(told)) == ([MISMATCH], (20, 0, 20))


async def test_a_dry_run_of_media_by_url_says_the_same_as_the_post(shop: Workshop, site: Pictures) -> None:
    """By its own tags nobody takes it, so nobody fetches it, whatever the first tags of its content were."""
    media = [{"type": "photo", "url": site.put("/cat.png", PNG)}]
    await shop.became(await shop.stage(media[0]["url"], tags=["a"]), "enqueued")

    dry = (await shop.try_out({"media": media, "tags": ["c"]})).json()
    answer = (await shop.post({"media": media, "tags": ["c"]})).json()

    assert counts(dry) == counts(answer) == (0, 0, 0)
    assert dry["warnings"] == []
