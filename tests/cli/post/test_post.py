"""`autopost post` calls ingest as a sender does, and shows what it answers."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from autopost_cli.__main__ import main
from click.testing import CliRunner, Result
from harness.buckets import Bucket
from harness.databases import Database
from ingest.support.ingest_client import DEMO
from ingest.support.staging_ingest import Workshop, workshop


@pytest.fixture
async def shop(seeded_database: Database, s3: Bucket) -> AsyncIterator[Workshop]:
    async with workshop(seeded_database, s3, resting=True) as made:
        yield made


async def run(shop: Workshop, *words: str, given: str | None = None) -> Result:
    environment = {"AUTOPOST_INGEST_URL": shop.url, "AUTOPOST_SECRET": DEMO}
    return await asyncio.to_thread(CliRunner().invoke, main, ["post", *words], input=given, env=environment)


async def test_from_sending_to_cancelling(shop: Workshop) -> None:
    later = (datetime.now(UTC) + timedelta(days=9)).isoformat()

    sent = json.loads((await run(shop, "send", "a", "--channel", "Demo MAX 1", "--at", later, "--json")).output)
    listed = await run(shop, "list", "--state", "scheduled")
    moved = await run(shop, "reschedule", sent["run_id"])
    shown = await run(shop, "status", sent["run_id"])
    cancelled = await run(shop, "cancel", sent["run_id"])
    again = await run(shop, "cancel", sent["run_id"])

    assert sent["channels"]["enqueued"] == 1
    assert sent["run_id"] in listed.output
    assert (moved.exit_code, moved.output.splitlines()[0]) == (0, "rescheduled")
    assert shown.output.startswith(f"queued  run {sent['run_id']}")
    assert "Demo MAX 1" in shown.output
    assert (cancelled.exit_code, cancelled.output.splitlines()[0]) == (0, "cancelled")
    assert again.exit_code == 1
    assert "409: nothing was changed: it has ended" in again.output


async def test_a_refusal_is_shown_with_its_problems_or_as_json(shop: Workshop) -> None:
    words = await run(shop, "send", "я" * 5000)
    whole = await run(shop, "send", "--file", "-", "--json", given=json.dumps({"text": "я" * 5000}))
    dry = await run(shop, "send", "я" * 4050, "--dry-run")
    neither = await run(shop, "send")

    assert [one.exit_code for one in (words, whole, dry, neither)] == [1, 1, 0, 2]
    assert "422: no channel can show this post" in words.output
    assert "20 channels: 5000 characters, at most 4000 are allowed; shorten it" in words.output
    assert json.loads(whole.output)["code"] == "validation_failed"
    assert "the post would be accepted" in dry.output
    assert "20 of 40 channels cannot show this post" in dry.output
