"""Whatever one sender posts, the loop of ingest is never held longer than 50 ms, and others are served meanwhile."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta

import httpx
import pytest
from autopost_ingest.config import IngestConfig
from harness.databases import Database
from harness.http_client import http_client
from ingest.support.hostile_bodies import REQUESTS
from ingest.support.ingest_client import DEMO, DEMO_WORKSPACE, SHOP
from ingest.support.watched_ingest import Ingest

BUDGET = timedelta(milliseconds=50)
PAUSE = timedelta(milliseconds=20)
BOT_SECRET = "bot-secret-of-this-test"
PROFILES = """
    UPDATE channels
    SET settings = jsonb_build_object(
        'overflow', (ARRAY['split', 'truncate', 'fail'])[1 + n % 3], 'on_markup', 'plain', 'buttons_text', 'n' || n % 2)
    FROM (SELECT channel_id AS id, row_number() OVER (ORDER BY channel_id) AS n
          FROM channels WHERE workspace_id = $1) AS numbered
    WHERE workspace_id = $1 AND channel_id = id
"""


class Stage:
    def __init__(self, ingest: Ingest, http: httpx.AsyncClient) -> None:
        self.ingest = ingest
        self._http = http

    async def send(self, path: str, body: bytes) -> httpx.Response:
        headers = {"Authorization": f"Bearer {DEMO}", "X-Max-Bot-Api-Secret": BOT_SECRET}
        return await self._http.post(self.ingest.url + path, content=body, headers=headers)

    async def post_of_another(self, number: int) -> int:
        body = json.dumps({"text": f"an ordinary post {number}", "tags": ["sale"]}).encode()
        headers = {"Authorization": f"Bearer {SHOP}"}
        return (await self._http.post(f"{self.ingest.url}/v1/posts", content=body, headers=headers)).status_code


@pytest.fixture
async def stage(seeded_database: Database) -> AsyncIterator[Stage]:
    await seeded_database.pool.execute(
        "UPDATE workspace_endpoints SET ingress_rps = NULL, max_payload_bytes = 8 * 1024 * 1024"
    )
    await seeded_database.pool.execute(PROFILES, DEMO_WORKSPACE)
    await seeded_database.pool.execute(
        "INSERT INTO workspace_endpoints (workspace_id, kind, secret_hash, max_payload_bytes)"
        " VALUES ($1, 'bot_webhook', encode(sha256($2::bytea), 'hex'), 8 * 1024 * 1024)",
        *(DEMO_WORKSPACE, BOT_SECRET.encode()),
    )
    ingest = Ingest(IngestConfig(database_url=seeded_database.url, nats_url=None, pull_concurrency=0))
    async with ingest.running(), http_client(timeout=120) as http:
        yield Stage(ingest, http)


@pytest.mark.time_limit(480)
async def test_no_request_holds_the_loop_and_another_workspace_is_served_meanwhile(stage: Stage) -> None:
    assert await stage.post_of_another(0) == 202
    held: dict[str, timedelta] = {}
    answers: dict[str, int] = {}
    of_another: list[int] = []
    for name, hostile in REQUESTS.items():
        stage.ingest.probe.longest()

        sent = asyncio.create_task(stage.send(hostile.path, hostile.make()))
        of_another.append(await stage.post_of_another(len(of_another) + 1))
        while not (await asyncio.wait({sent}, timeout=PAUSE.total_seconds()))[0]:
            of_another.append(await stage.post_of_another(len(of_another) + 1))

        held[name], answers[name] = stage.ingest.probe.longest(), sent.result().status_code

    assert {name: longest for name, longest in held.items() if longest > BUDGET} == {}
    assert {name: status for name, status in answers.items() if status not in (200, 202, 400, 422)} == {}
    assert set(of_another) == {202}
