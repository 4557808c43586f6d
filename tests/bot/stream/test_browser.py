"""A plain EventSource in Chromium: behind a proxy that buffers, after a kill, and after it was sent away."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
from aiohttp import web
from autopost_bot.stream.serve import StreamTimes
from bot.conftest import StartReplica
from bot.support.process import running
from bot.support.replicas import BEARER, CHAT, WORKSPACE, Replica
from harness.browser import browsing, opened
from harness.databases import Database
from harness.eventually import eventually
from harness.http_client import http_client
from harness.nginx import nginx
from playwright.async_api import Page, expect

EXAMPLES = Path(__file__).parents[3] / "examples"
LISTEN = """address => {
    window.events = []
    window.opened = 0
    window.source = new EventSource(address)
    window.source.onopen = () => { window.opened += 1 }
    window.source.onmessage = ({ lastEventId, data }) => window.events.push([Number(lastEventId), JSON.parse(data)])
}"""
FIRST_BYTES = """async address => {
    const began = performance.now()
    const reader = (await fetch(address)).body.getReader()
    const { value } = await reader.read()
    const taken = performance.now() - began
    reader.cancel()
    return [taken, new TextDecoder().decode(value)]
}"""


@asynccontextmanager
async def listening_page(url: str, address: str) -> AsyncIterator[Page]:
    """A page of the service's own origin with an EventSource."""
    async with browsing() as browser:
        page = await browser.new_page()
        await page.goto(f"{url}/api/chat/action-types")
        await page.evaluate(LISTEN, address)
        await page.wait_for_function("window.opened > 0")
        yield page


async def heard(page: Page, count: int) -> list[tuple[int, dict[str, Any]]]:
    async def all_of_them() -> Any:
        events = await page.evaluate("window.events")
        return events if len(events) >= count else None

    return [(number, event) for number, event in await eventually(all_of_them, timedelta(seconds=20))]


async def start(http: httpx.AsyncClient, url: str, action: str) -> None:
    body = {"workspaceId": WORKSPACE, "chatId": CHAT, "actionId": action, "actionType": "summarize"}
    answer = await http.post(f"{url}/api/chat/actions/start", json=body, headers=BEARER)
    assert answer.status_code == 201


async def test_behind_a_buffering_proxy_a_browser_misses_nothing_when_its_replica_is_killed(
    seeded_database: Database, nats_url: str, nats_namespace: str, tmp_path: Path
) -> None:
    async with (
        running(seeded_database, nats_url, nats_namespace) as (one, first, _),
        running(seeded_database, nats_url, nats_namespace) as (_, second, _),
        nginx(tmp_path, first, second) as url,
        http_client(timeout=10) as http,
    ):
        ticket = (await http.post(f"{url}/api/chats/{CHAT}/tickets", headers=BEARER)).json()["ticket"]
        address = f"/api/chats/{CHAT}/events?ticket={ticket}"
        async with listening_page(url, address) as page:
            taken, text = await page.evaluate(FIRST_BYTES, address)
            await start(http, second, "before")
            await heard(page, 1)

            one.kill()
            await one.wait()
            for number in range(5):
                await start(http, second, f"missed {number}")
            await page.wait_for_function("window.opened > 1")
            await start(http, second, "after")
            events = await heard(page, 7)

    assert text.startswith("retry: 2000\nid: 0\n\n: connected\n\n")
    assert taken < 100
    assert [number for number, _ in events] == list(range(1, 8))
    actions = [event["action"]["actionId"] for _, event in events]
    assert actions == ["before", *(f"missed {number}" for number in range(5)), "after"]


async def test_a_browser_that_was_sent_away_comes_back_when_there_is_room(start_replica: StartReplica) -> None:
    times = StreamTimes(keep_alive=timedelta(milliseconds=100), come_back=timedelta(milliseconds=300))
    bot = await start_replica(stream_clients=1, times=times)
    ticket = await bot.ticket()
    other = asyncio.create_task(hold(bot))
    await eventually(lambda: bot.hub.clients == 1)
    async with listening_page(bot.url, f"/api/chats/{CHAT}/events?after=0&ticket={ticket}") as page:
        await page.wait_for_function("window.opened > 1")  # it has come back, and was sent away once more
        assert await page.evaluate("window.source.readyState") != 2, "it has given up"
        other.cancel()
        await bot.start()
        [(number, _)] = await heard(page, 1)

    assert number == 1


async def hold(bot: Replica) -> None:
    """The only place."""
    async with http_client(timeout=None) as http, http.stream("GET", bot.events(), headers=BEARER) as response:
        async for _ in response.aiter_lines():
            pass


async def test_the_example_page_shows_what_is_under_way(start_replica: StartReplica, seeded_database: Database) -> None:
    async with example_page() as site:
        bot = await start_replica(cors_origins=(site,))
        await bot.start("long", actionType="transcribe_audio")
        given = {"url": bot.url, "workspace": WORKSPACE, "chat": CHAT, "ticket": await bot.ticket()}
        async with browsing() as browser, opened(browser, f"{site}/chat.html?{urlencode(given)}") as page:
            shown = page.locator("#actions li")
            await expect(shown).to_have_text(["Готовим стенограмму…"])
            await bot.start("other", actionType="translate", displayText="&lt;b&gt; переводим")
            await expect(shown).to_have_text(["Готовим стенограмму…", "<b> переводим"])
            await bot.update("long")
            await expect(shown).to_have_text(["<b> переводим"])
            await say(seeded_database, bot, "Здравствуйте")
            await expect(page.locator("#messages li")).to_have_text(["Здравствуйте"])


async def say(database: Database, bot: Replica, text: str) -> None:
    """As ingest stores and announces it."""
    update = {"provider": "max", "chat_id": CHAT, "key": "mid.1", "kind": "message_created", "answer": True}
    body = {"message": {"body": {"mid": "mid.1", "text": text}}}
    endpoint = await database.pool.fetchval(
        "SELECT endpoint_id FROM workspace_endpoints WHERE kind = 'bot_webhook' AND workspace_id = $1", WORKSPACE
    )
    given = json.dumps({**update, "body": body})
    stored = await database.pool.fetchval("SELECT store_bot_update($1, $2, $3)", WORKSPACE, endpoint, given)
    assert json.loads(stored)["verdict"] == "stored"
    await bot.hub.poll()


@asynccontextmanager
async def example_page() -> AsyncIterator[str]:
    """The folder of examples, of another origin than the service."""
    app = web.Application()
    app.router.add_static("/", EXAMPLES)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()
