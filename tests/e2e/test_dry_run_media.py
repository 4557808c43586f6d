"""Media by URL through the running services: what the dry run shows is what the staged post then stores."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from autopost_cli.development import PUSH_SECRET
from autopost_runtime.http.web import serve
from harness.eventually import eventually
from harness.telegram_media import png
from ingest.http.test_openapi import agree

from e2e.conftest import StartSystem

HEADERS = {"Authorization": f"Bearer {PUSH_SECRET}"}


@pytest.fixture
async def gallery() -> AsyncIterator[str]:
    async def show(_: web.Request) -> web.Response:
        return web.Response(body=png(40, 30), content_type="image/png")

    app = web.Application()
    app.router.add_get("/{name}", show)
    async with await serve(app, "127.0.0.1", 0) as site:
        yield site.url


async def test_a_staged_post_stores_the_plans_that_its_dry_run_showed(start_system: StartSystem, gallery: str) -> None:
    system = await start_system(AUTOPOST_FETCH_ALLOW="127.0.0.0/8")
    posts = f"{system.places['ingest']}/v1/posts"
    body = {
        "text": "hello",
        "media": [{"type": "photo", "url": f"{gallery}/a%20b.png"}, {"type": "photo", "url": f"{gallery}/c.png"}],
    }

    shown = await system.http.post(f"{posts}?dry_run=1", headers=HEADERS, json=body)
    staged = await system.http.post(posts, headers=HEADERS, json=body)
    post_id = staged.json()["post_id"]

    async def state() -> Any:
        answer = await system.http.get(f"{posts}/{post_id}", headers=HEADERS)
        agree(answer, "/v1/posts/{id}", "get")
        return answer.json() if answer.json()["status"] != "staged" else None

    became = await eventually(state, within=timedelta(minutes=1))
    nobody = await system.http.get(f"{posts}/{shown.json()['channels'][0]['channel_id']}", headers=HEADERS)

    agree(shown, "/v1/posts")
    agree(staged, "/v1/posts")
    agree(nobody, "/v1/posts/{id}", "get")
    assert [answer.status_code for answer in (shown, staged, nobody)] == [200, 202, 404]
    assert (became["status"], became["channels"]) == ("enqueued", shown.json()["counts"])
    stored = await system.database.fetch("SELECT plan_hash FROM renderings")
    assert {row["plan_hash"] for row in stored} == {plan["plan_hash"] for plan in shown.json()["plans"].values()}
    assert await system.database.fetchval("SELECT content_hash FROM messages") == shown.json()["content_hash"]
