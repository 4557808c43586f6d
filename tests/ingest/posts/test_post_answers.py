"""What the answer to a post says beside its verdict: marks that are never closed, and the topic that it names."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from harness.buckets import Bucket
from harness.databases import Database
from ingest.support.ingest_client import IngestClient
from ingest.support.pictures import PNG, Pictures
from ingest.support.staging_ingest import Workshop, workshop


@pytest.fixture
async def shop(seeded_database: Database, s3: Bucket) -> AsyncIterator[Workshop]:
    """Fetches media too."""
    async with workshop(seeded_database, s3) as made:
        yield made


def warning(field: str, mark: str) -> dict[str, Any]:
    says = f"{mark} is never closed and is shown as it stands; close it, or write a backslash before it"
    return {"code": "unclosed_mark", "message": says, "field": field, "mark": mark}


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("**Sale until *friday**", ["*"]),
        ("a **b", ["**"]),
        ("a `b", ["`"]),
        ("**a** 2 * 3, C++ or D++", []),
        ("x " * 1990 + "**b", ["**"]),
    ],
)
async def test_a_mark_that_is_never_closed_is_warned_of_in_the_answer_and_the_dry_run(
    client: IngestClient, text: str, marks: list[str]
) -> None:
    body = {"text": text, "parse_mode": "Markdown"}

    dry = (await client.try_out(body)).json()
    answer = (await client.post(body)).json()

    assert answer["status"] == "accepted"
    assert answer.get("warnings", []) == dry["warnings"] == [warning("text", mark) for mark in marks]


@pytest.mark.parametrize("parse_mode", [None, "HTML"])
async def test_without_markdown_a_mark_is_a_sign(client: IngestClient, parse_mode: str | None) -> None:
    answer = (await client.post({"text": "a **b", "parse_mode": parse_mode})).json()

    assert (answer["status"], "warnings" in answer) == ("accepted", False)


async def test_a_staged_post_is_warned_at_once_and_by_the_field(shop: Workshop, site: Pictures) -> None:
    media = [{"type": "photo", "url": site.put("/cat.png", PNG), "caption": "a *b"}]

    answer = (await shop.post({"text": "c ~~d", "media": media, "parse_mode": "Markdown"})).json()

    assert answer["status"] == "staged"
    assert answer["warnings"] == [warning("text", "~~"), warning("media[0].caption", "*")]


async def test_a_post_may_name_the_topic_of_its_chats(client: IngestClient) -> None:
    body = {"text": "a", "routing": {"thread": 7}}

    dry = (await client.try_out(body)).json()
    answer = (await client.post(body)).json()

    threads = {plan["plan"]["platform"]: plan["plan"].get("thread") for plan in dry["plans"].values()}
    stored = "SELECT string_agg(DISTINCT plan ->> 'thread', ',') FROM renderings"
    assert threads == {"telegram": 7, "max": None}
    assert answer["status"] == "accepted"
    assert await client.sql(stored) == "7"


async def test_the_same_content_for_another_topic_is_a_twin(client: IngestClient) -> None:
    """The channel is the chat: it gets a content once."""
    first = (await client.post({"text": "a", "routing": {"thread": 7}})).json()
    again = (await client.post({"text": "a", "routing": {"thread": 8}})).json()

    assert first["channels"]["enqueued"] == again["channels"]["deduped"] > 0
    assert again["channels"]["enqueued"] == 0


@pytest.mark.parametrize("thread", [0, -1, 2**31, "7", 1.5])
async def test_a_topic_that_is_no_number_of_one_is_refused_by_name(client: IngestClient, thread: Any) -> None:
    answer = await client.post({"text": "a", "routing": {"thread": thread}})

    assert (answer.status_code, answer.json()["field"]) == (400, "routing.thread")
