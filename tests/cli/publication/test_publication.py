"""`autopost publication` calls ingest as other programs do, and shows what it answers."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from autopost_cli.__main__ import main
from click.testing import CliRunner, Result
from db.support.builders import Tenant
from harness.databases import Database
from ingest.support.publication_client import SECRET, PublicationClient, publication_client


@pytest.fixture
async def client(database: Database) -> AsyncIterator[PublicationClient]:
    async with publication_client(database, await Tenant.create(database.pool)) as made:
        yield made


async def run(client: PublicationClient, *words: str, given: str | None = None, secret: str = SECRET) -> Result:
    environment = {"AUTOPOST_INGEST_URL": client.url, "AUTOPOST_SECRET": secret, "AUTOPOST_OPERATOR": "Анна"}
    return await asyncio.to_thread(CliRunner().invoke, main, ["publication", *words], input=given, env=environment)


async def test_from_a_file_to_the_calendar(client: PublicationClient, tmp_path: Path) -> None:
    file = tmp_path / "sale.json"
    file.write_text(json.dumps(client.creative("Sale")))

    drafted = json.loads((await run(client, "draft", str(file), "--json")).output)
    publication = drafted["publication_id"]
    previewed = await run(client, "preview", publication)
    plan = json.loads((await run(client, "preview", publication, "--json")).output)["plan_hash"]
    approved = await run(client, "approve", publication, "--version", "1", "--plan-hash", plan)
    local = ("--local", "2030-12-03T09:00", "--timezone", "Europe/Moscow")
    scheduled = json.loads((await run(client, "schedule", publication, *local, "--json")).output)
    week = await run(client, "calendar", "--week", "2030-W49", "--timezone", "Europe/Moscow")
    listed = await run(client, "list", "--status", "scheduled")
    cancelled = await run(client, "cancel", publication, "--reason", "a wrong price", "--json")

    assert (previewed.exit_code, plan in previewed.output, "Sale" in previewed.output) == (0, True, True)
    assert "approved_by           Анна (crm)" in approved.output
    assert scheduled["scheduled_at"] == "2030-12-03T06:00:00+00:00"
    assert week.output.splitlines()[0] == "Tue 03 Dec 2030"
    assert week.output.splitlines()[1].split()[:3] == ["09:00", "scheduled", publication]
    assert publication in listed.output
    assert json.loads(cancelled.output)["cancel_reason"] == "a wrong price"


async def test_a_refusal_is_shown_in_the_words_of_the_service(client: PublicationClient) -> None:
    publication = await client.draft()

    early = await run(client, "schedule", publication, "--at", "2030-01-01T00:00:00Z")
    stale = await run(client, "approve", publication, "--version", "7")
    gone = await run(client, "show", str(client.channel))
    stranger = await run(client, "list", secret="wrong")

    assert [one.exit_code for one in (early, stale, gone, stranger)] == [1] * 4
    assert "409: approve it first: it is a draft" in early.output
    assert "412: the publication has changed: its version is 1 now" in stale.output
    assert "404" in gone.output
    assert "401" in stranger.output


async def test_a_creative_without_a_plan_exits_with_its_problems(client: PublicationClient) -> None:
    publication = await client.draft("x" * 5000)

    answer = await run(client, "preview", publication)

    assert answer.exit_code == 1
    assert "FIELD" in answer.output


async def test_an_edit_from_stdin_is_a_draft_again(client: PublicationClient) -> None:
    publication = await client.approved()

    edited = await run(client, "edit", publication, "-", given=json.dumps(client.creative("other")))
    wrong = await run(client, "draft", "-", given="[]")

    assert "draft" in edited.output
    assert (wrong.exit_code, "not a JSON object" in wrong.output) == (1, True)


@pytest.mark.parametrize("words", [("--week", "2026-49"), ("--week", "2026-W60"), ("--timezone", "Mars/Olympus")])
async def test_a_calendar_needs_a_week_and_a_zone(client: PublicationClient, words: tuple[str, str]) -> None:
    answer = await run(client, "calendar", *words)

    assert (answer.exit_code, "is not a" in answer.output) == (2, True)
