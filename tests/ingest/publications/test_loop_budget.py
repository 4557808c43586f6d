"""Whatever one caller drafts and previews, the loop of ingest is never held longer than 50 ms, nor are others."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta

import httpx
import pytest
from autopost_ingest.config import IngestConfig
from harness.databases import Database
from harness.hostile_texts import HTML, MARKDOWN, PLAIN
from harness.http_client import http_client
from ingest.support.ingest_client import DEMO_WORKSPACE, SHOP
from ingest.support.watched_ingest import Ingest

BUDGET = timedelta(milliseconds=50)
PAUSE = timedelta(milliseconds=20)
SECRET = "demo-publications-secret-for-development"
SIZE = 10_000
"""Characters; the whole body may have 64 KiB."""
CREATIVES = {
    f"{name}, {parse_mode}": {"text": make(SIZE), "parse_mode": parse_mode}
    for parse_mode, texts in (("HTML", HTML), ("Markdown", MARKDOWN), ("HTML", PLAIN))
    for name, make in texts.items()
} | {
    "marks": {"text": "a" + "\u0301\u0323" * SIZE},
    "media": {"text": "a", "media": [{"type": "photo", "file_id": "x" * 200}] * 10},
    "buttons": {
        "text": "a",
        "buttons": [[{"text": "a", "url": f"https://a.example/{'🦊' * 60}{n}"}] for n in range(100)],
    },
    "lists": {"text": "a", "media": [[]] * 12_000},
    "a deep list": {"text": "a", "media": json.loads("[" * 400 + "]" * 400)},
}


class Stage:
    def __init__(self, ingest: Ingest, http: httpx.AsyncClient, channel: str) -> None:
        self.ingest, self._http, self._channel = ingest, http, channel

    async def _call(self, path: str, body: object = None) -> httpx.Response:
        url, headers = f"{self.ingest.url}/v1/publications{path}", {"Authorization": f"Bearer {SECRET}"}
        return await self._http.post(url, json=body, headers=headers)

    async def preview(self, creative: object) -> tuple[int, ...]:
        drafted = await self._call("", {"channel_id": self._channel, "creative_draft": creative})
        if drafted.status_code != 201:
            return (drafted.status_code,)
        previewed = await self._call(f"/{drafted.json()['publication_id']}/preview")
        return drafted.status_code, previewed.status_code

    async def post_of_another(self, number: int) -> int:
        body = {"text": f"an ordinary post {number}", "tags": ["sale"]}
        headers = {"Authorization": f"Bearer {SHOP}"}
        return (await self._http.post(f"{self.ingest.url}/v1/posts", json=body, headers=headers)).status_code


@pytest.fixture
async def stage(seeded_database: Database) -> AsyncIterator[Stage]:
    await seeded_database.pool.execute("UPDATE workspace_endpoints SET ingress_rps = NULL")
    query = "SELECT channel_id::text FROM channels WHERE workspace_id = $1 LIMIT 1"
    channel = await seeded_database.pool.fetchval(query, DEMO_WORKSPACE)
    ingest = Ingest(IngestConfig(database_url=seeded_database.url, nats_url=None, pull_concurrency=0))
    async with ingest.running(), http_client(timeout=60) as http:
        yield Stage(ingest, http, channel)


@pytest.mark.time_limit(240)
async def test_no_creative_holds_the_loop_and_another_workspace_is_served_meanwhile(stage: Stage) -> None:
    assert await stage.post_of_another(0) == 202
    held: dict[str, timedelta] = {}
    answers: dict[str, tuple[int, ...]] = {}
    of_another: list[int] = []
    for name, creative in CREATIVES.items():
        stage.ingest.probe.longest()

        previewed = asyncio.create_task(stage.preview(creative))
        while not (await asyncio.wait({previewed}, timeout=PAUSE.total_seconds()))[0]:
            of_another.append(await stage.post_of_another(len(of_another) + 1))

        held[name], answers[name] = stage.ingest.probe.longest(), previewed.result()

    assert {name: longest for name, longest in held.items() if longest > BUDGET} == {}
    assert {name: given for name, given in answers.items() if not {*given} <= {200, 201, 400, 422}} == {}
    assert set(of_another) == {202}
    assert (201, 200) in answers.values()
