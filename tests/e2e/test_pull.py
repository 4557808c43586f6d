"""A feed pulled by the real services: what it has reaches the chat once, whoever dies on the way."""

import signal
from datetime import timedelta
from uuid import UUID

from autopost_cli.development import WORKSPACE
from autopost_ingest.posts.normalize import normalize
from autopost_ingest.pull.items import Item
from autopost_ingest.pull.posts import request_of
from autopost_ingest.pull.source_config import SourceOptions
from harness.databases import Database
from harness.eventually import eventually
from harness.telegram_media import png
from ingest.support.pull_setup import Site, entry, numbered, rss

from e2e.conftest import StartSystem
from e2e.system import System

ITEMS = 25
PLENTY = timedelta(minutes=1)
ENV = {
    "AUTOPOST_FETCH_ALLOW": "127.0.0.0/8",
    "AUTOPOST_POLL_INTERVAL": "100ms",
    "AUTOPOST_PULL_TIMEOUT": "6s",
    "AUTOPOST_PULL_CHUNK": "10",
    "AUTOPOST_LOG_LEVEL": "error",
}
WAITS_IN_THE_SECOND_CHUNK = """
SELECT (SELECT count(*) FROM pull_receipts) = 10
   AND EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ 'ingest_pull_chunk'
               AND datname = current_database())
"""


async def _one_fast_channel(system: System) -> None:
    workspace = UUID(WORKSPACE)
    await system.database.execute(
        "UPDATE channels SET enabled = title = 'Demo Telegram 1', rate_rps = NULL, max_parallel = 1 "
        "WHERE workspace_id = $1",
        workspace,
    )
    await system.database.execute("UPDATE platform_limits SET rate_rps = NULL WHERE workspace_id = $1", workspace)
    target = await system.database.fetchval("SELECT target_id FROM channels WHERE title = 'Demo Telegram 1'")
    await system.control("chats", [{"platform": "telegram", "id": int(target), "limits": []}])


async def _add_source(system: System, url: str) -> None:
    await system.database.execute(
        "INSERT INTO pull_sources (workspace_id, source_id, kind, config_json, every) "
        "VALUES ($1, 'blog', 'rss', jsonb_build_object('url', $2::text, 'first', 'all'), '1 second')",
        *(UUID(WORKSPACE), url),
    )
    await system.database.execute(
        "INSERT INTO workspace_endpoints (workspace_id, kind, source_id) VALUES ($1, 'pull_source', 'blog')",
        UUID(WORKSPACE),
    )


async def test_a_feed_arrives_whole_in_order_and_once_although_its_puller_is_killed_between_two_chunks(
    start_system: StartSystem, seeded_database: Database
) -> None:
    async with Site().open() as site:
        system = await start_system(**ENV)
        await _one_fast_channel(system)
        in_the_second_chunk = normalize(request_of(Item(title="Title 0015"), SourceOptions())).content_hash
        holder = await seeded_database.connect()
        held = holder.transaction()
        await held.start()  # whoever stores this content waits for us
        await holder.execute(
            "INSERT INTO messages (workspace_id, hash_version, content_hash, payload) VALUES ($1, 2, $2, '{}')",
            *(UUID(WORKSPACE), in_the_second_chunk),
        )

        await _add_source(system, site.put("/feed", numbered(ITEMS), headers={"ETag": '"1"'}))
        await eventually(lambda: system.database.fetchval(WAITS_IN_THE_SECOND_CHUNK), within=PLENTY)
        system.stack.kill("ingest", signal.SIGKILL)
        await held.rollback()

        async def arrived() -> bool:
            return (await system.statuses()).get("sent") == ITEMS

        await eventually(arrived, within=PLENTY)
        reads = len(site.asked)
        await eventually(lambda: len(site.asked) > reads + 1, within=PLENTY)

    texts = [call["text"] for call in await system.accepted()]
    assert texts == [f"<b>Title {number:04}</b>" for number in range(ITEMS)]
    assert await system.statuses() == {"sent": ITEMS}
    assert site.asked[-1].headers["If-None-Match"] == '"1"'


async def test_an_item_with_a_picture_arrives_with_it(start_system: StartSystem) -> None:
    async with Site().open() as site:
        system = await start_system(**ENV)
        await _one_fast_channel(system)
        picture = site.put("/1.png", png(40, 30))
        feed = rss(entry(1, f'<enclosure url="{picture}" type="image/png" length="1"/>'))

        await _add_source(system, site.put("/feed", feed))
        await eventually(system.accepted, within=PLENTY)

    [call] = await system.accepted()
    run = await system.database.fetchrow(
        "SELECT r.stats_json ->> 'staged' AS staged, r.stats_json ->> 'enqueued' AS enqueued "
        "FROM ingest_runs r JOIN staged_posts s USING (workspace_id, run_id)"
    )
    assert (call["method"], call["text"]) == ("sendPhoto", "<b>Title 1</b>")
    assert (run["staged"], run["enqueued"]) == ("1", "1")
