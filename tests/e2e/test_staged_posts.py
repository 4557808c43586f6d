"""Pictures that a post names by URL, from the sender's server to the readers of forty channels."""

import asyncio
import signal
from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import UUID

from aiohttp import web
from autopost_cli.development import PUSH_SECRET
from harness.eventually import eventually
from ingest.support.pictures import PNG, pictures

from e2e.conftest import StartSystem
from e2e.system import System

CHANNELS = 40
PLENTY = timedelta(seconds=60)
ALLOWED = {"AUTOPOST_FETCH_ALLOW": "127.0.0.1/32"}


async def _told(system: System, post: dict[str, Any]) -> dict[str, Any]:
    answer = await system.http.get(
        f"{system.places['ingest']}/v1/posts/{post['post_id']}", headers={"Authorization": f"Bearer {PUSH_SECRET}"}
    )
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def _all_sent(system: System) -> bool:
    return await system.statuses() == {"sent": CHANNELS}


async def test_a_picture_by_url_reaches_every_channel_once(start_system: StartSystem) -> None:
    system = await start_system(**ALLOWED)
    async with pictures() as site:
        answer = await system.post(text="hello", media=[{"type": "photo", "url": site.put("/cat.png", PNG)}])

        assert (answer.status_code, answer.json()["message_id"]) == (202, None)
        await eventually(lambda: _all_sent(system), within=PLENTY)

    told = await _told(system, answer.json())
    assert (told["status"], told["channels"]["enqueued"]) == ("enqueued", CHANNELS)
    assert set(Counter(line["chat"] for line in await system.accepted()).values()) == {1}
    assert site.hits == {"/cat.png": 1}


async def test_without_leave_a_picture_from_inside_is_never_asked_for(start_system: StartSystem) -> None:
    system = await start_system()
    async with pictures() as site:
        answer = await system.post(media=[{"type": "photo", "url": site.put("/cat.png", PNG)}])

        async def failed() -> bool:
            query = "SELECT status = 'failed' FROM staged_posts WHERE post_id = $1"
            return bool(await system.database.fetchval(query, UUID(answer.json()["post_id"])))

        await eventually(failed, within=PLENTY)

    assert (await _told(system, answer.json()))["error"]["code"] == "forbidden_address"
    assert site.hits == {}


async def test_a_service_that_is_told_to_stop_in_the_middle_gives_the_post_back_in_time(
    start_system: StartSystem,
) -> None:
    system = await start_system(**ALLOWED)
    begun = asyncio.Event()

    async def hang(_: web.Request) -> web.StreamResponse:
        begun.set()
        await asyncio.Event().wait()
        return web.Response()

    async with pictures() as site:
        await system.post(text="hello", media=[{"type": "photo", "url": site.answer("/cat.png", hang)}])
        await begun.wait()
        site.put("/cat.png", PNG)

        system.stack.kill("ingest", signal.SIGTERM)

        await eventually(lambda: _all_sent(system), within=PLENTY)  # long before the lease would have ended
    assert await system.database.fetchval("SELECT attempt FROM staged_posts") == 1
    assert site.hits == {"/cat.png": 2}
