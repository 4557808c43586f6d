"""The collector against a real store, and against ingest that brings the same pictures meanwhile."""

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from hashlib import sha256
from uuid import UUID

import pytest
from autopost_monitor.collect_gateway import CollectGateway, Doomed
from autopost_monitor.config import MonitorConfig
from autopost_monitor.retain import Retention
from autopost_monitor.retain_gateway import RetainGateway
from autopost_runtime.objects import Objects
from autopost_runtime.postgres import open_database
from db.ages import OLD_WEEKS
from harness.buckets import Bucket
from harness.databases import Database
from harness.eventually import eventually
from harness.telegram_media import png
from ingest.door import DEMO_WORKSPACE
from ingest.pictures import PNG, Pictures, pictures
from ingest.workshop import Workshop, keys, workshop

from monitor.store import LaggingStore, SlowStore, collector, configured, storing

CAT = f"{DEMO_WORKSPACE}/media/{sha256(PNG).hexdigest()}"
REF = f"sha256:{sha256(PNG).hexdigest()}"
LONG_AGO = "UPDATE media_origin SET last_seen_at = now() - interval '100 days'"
FORGET = "DELETE FROM delivery_queue; DELETE FROM deliveries; DELETE FROM messages"
SHORT = timedelta(seconds=2)
THE_MARK_IS_OVER = "UPDATE media_origin SET doomed_until = now() - interval '1 second' WHERE doom IS NOT NULL"
GROW_OLD = (
    "DELETE FROM delivery_queue q USING deliveries d JOIN shown USING (message_id) WHERE d.delivery_id = q.delivery_id",
    "UPDATE events e SET ts = now() - interval '100 days' FROM shown s "
    "WHERE s.message_id = e.message_id AND e.ts > now() - interval '90 days'",
    "UPDATE deliveries d SET status = 'sent', updated_at = now() - interval '1 year', "
    "created_at = now() - interval '1 year' FROM shown s WHERE s.message_id = d.message_id",
    "UPDATE messages m SET created_at = now() - interval '1 year', last_seen_at = now() - interval '1 year' "
    "FROM shown s WHERE s.message_id = m.message_id",
)
TIMES = 25 if os.environ.get("CI") else 6


@pytest.fixture
async def site() -> AsyncIterator[Pictures]:
    async with pictures() as made:
        yield made


@pytest.fixture
async def shop(seeded_database: Database, s3: Bucket) -> AsyncIterator[Workshop]:
    async with workshop(seeded_database, s3) as made:
        yield made


@pytest.fixture
def config(seeded_database: Database, s3: Bucket) -> MonitorConfig:
    return configured(seeded_database.url, s3)


@pytest.fixture
async def store(config: MonitorConfig) -> AsyncIterator[tuple[CollectGateway, Objects]]:
    async with storing(config) as opened:
        yield opened


async def nobody_shows_it(database: Database) -> None:
    """The picture was posted long ago, and its post is forgotten."""
    async with database.pool.acquire() as connection, connection.transaction():
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.execute(FORGET)
        await connection.execute(LONG_AGO)


async def lost(shop: Workshop, s3: Bucket) -> set[str]:
    """What messages or origins name and is not there; what is marked is not there."""
    named = await shop.sql(
        "SELECT array_agg(workspace_id || '/media/' || replace(blob_ref, 'sha256:', '')) FROM ("
        "SELECT workspace_id, m ->> 'blob_ref' AS blob_ref "
        "FROM messages, jsonb_array_elements(payload -> 'media') AS m "
        "UNION SELECT workspace_id, blob_ref FROM media_origin WHERE doom IS NULL) AS n"
    )
    unknown = await shop.sql(
        "SELECT array_agg(m ->> 'blob_ref') FROM messages g, jsonb_array_elements(payload -> 'media') AS m "
        "WHERE NOT EXISTS (SELECT 1 FROM media_origin o WHERE o.workspace_id = g.workspace_id "
        "AND o.blob_ref = m ->> 'blob_ref' AND o.doom IS NULL)"
    )
    return set(named or ()) - await keys(s3) | set(unknown or ())


async def test_an_object_that_nothing_refers_to_is_deleted_and_others_are_not(
    shop: Workshop, site: Pictures, s3: Bucket, store: tuple[CollectGateway, Objects], seeded_database: Database
) -> None:
    await shop.became(await shop.stage(site.put("/cat.png", PNG)), "enqueued")
    await nobody_shows_it(seeded_database)
    await shop.became(await shop.stage(site.put("/dog.png", png(3, 3))), "enqueued")
    await shop.sql(LONG_AGO)

    await collector(*store).round()

    assert await keys(s3) == {f"{DEMO_WORKSPACE}/media/{sha256(png(3, 3)).hexdigest()}"}
    assert await shop.sql("SELECT count(*) FROM media_origin") == 1


async def test_the_same_picture_that_comes_in_between_the_mark_and_the_delete_is_not_lost(
    shop: Workshop, site: Pictures, s3: Bucket, store: tuple[CollectGateway, Objects], seeded_database: Database
) -> None:
    url = site.put("/cat.png", PNG)
    await shop.became(await shop.stage(url), "enqueued")
    await nobody_shows_it(seeded_database)
    gateway, objects = store
    slow = SlowStore(objects)
    collecting = asyncio.create_task(collector(gateway, slow).round())
    await slow.reached.wait()

    post = await shop.stage(url, text="again")
    await eventually(lambda: given_back(shop, post))
    slow.open.set()
    await collecting
    await shop.hurry()

    await shop.became(post, "enqueued")
    assert slow.deleted == [CAT]
    assert await lost(shop, s3) == set()
    assert await keys(s3) == {CAT}


async def given_back(shop: Workshop, post: dict[str, str]) -> bool:
    """It has fetched the picture and was told to wait."""
    query = "SELECT status = 'staged' AND next_attempt_at > created_at FROM staged_posts WHERE post_id = $1"
    return bool(await shop.sql(query, UUID(post["post_id"])))


async def test_a_collector_that_was_held_up_for_longer_than_its_mark_deletes_nothing(
    shop: Workshop, site: Pictures, s3: Bucket, store: tuple[CollectGateway, Objects], seeded_database: Database
) -> None:
    url = site.put("/cat.png", PNG)
    await shop.became(await shop.stage(url), "enqueued")
    await nobody_shows_it(seeded_database)
    gateway, objects = store
    slow = SlowStore(objects)
    collecting = asyncio.create_task(collector(gateway, slow, SHORT).round())
    await slow.reached.wait()

    post = await shop.stage(url, text="again")
    await eventually(lambda: enqueued_in_a_hurry(shop, post), within=timedelta(seconds=30))
    slow.open.set()
    await collecting

    assert slow.deleted == []
    assert await lost(shop, s3) == set()


async def test_a_collector_that_was_stopped_before_it_began_to_delete_does_not_begin(
    shop: Workshop, site: Pictures, s3: Bucket, store: tuple[CollectGateway, Objects], seeded_database: Database
) -> None:
    await shop.became(await shop.stage(site.put("/cat.png", PNG)), "enqueued")
    await nobody_shows_it(seeded_database)
    gateway, objects = store
    slow = SlowStore(objects)

    await collector(gateway, slow, timedelta(microseconds=1)).round()

    assert not slow.reached.is_set()
    assert await keys(s3) == {CAT}


async def enqueued_in_a_hurry(shop: Workshop, post: dict[str, str]) -> bool:
    await shop.hurry()
    return await shop.status(post) == "enqueued"


async def test_a_picture_named_while_it_is_collected_is_refused_and_one_named_before_is_kept(
    shop: Workshop, site: Pictures, s3: Bucket, store: tuple[CollectGateway, Objects], seeded_database: Database
) -> None:
    await shop.became(await shop.stage(site.put("/cat.png", PNG)), "enqueued")
    await nobody_shows_it(seeded_database)
    named = {"media": [{"type": "photo", "blob_ref": REF}]}
    gateway, objects = store
    slow = SlowStore(objects)
    collecting = asyncio.create_task(collector(gateway, slow).round())
    await slow.reached.wait()

    refused = await shop.post(named)
    slow.open.set()
    await collecting

    assert (refused.status_code, await keys(s3)) == (422, set())
    assert await shop.sql("SELECT count(*) FROM messages") == 0


async def test_a_crash_between_the_delete_and_the_burial_is_continued(
    shop: Workshop, site: Pictures, s3: Bucket, store: tuple[CollectGateway, Objects], seeded_database: Database
) -> None:
    await shop.became(await shop.stage(site.put("/cat.png", PNG)), "enqueued")
    await nobody_shows_it(seeded_database)
    gateway, objects = store

    class Crash(Exception):  # noqa: N818
        pass

    class Mortal(CollectGateway):
        async def bury_media(self, doomed: object) -> bool:
            raise Crash

    with pytest.raises(Crash):
        await collector(Mortal(gateway._database), objects).round()
    assert await shop.sql("SELECT count(*) FROM media_origin WHERE doom IS NOT NULL") == 1
    await shop.sql(THE_MARK_IS_OVER)
    await collector(gateway, objects).round()

    assert await shop.sql("SELECT count(*) FROM media_origin") == 0
    assert await keys(s3) == set()


async def test_a_store_that_is_away_costs_a_round_and_nothing_else(
    shop: Workshop, site: Pictures, s3: Bucket, store: tuple[CollectGateway, Objects], seeded_database: Database
) -> None:
    await shop.became(await shop.stage(site.put("/cat.png", PNG)), "enqueued")
    await nobody_shows_it(seeded_database)
    gateway, objects = store

    class Away:
        bucket = objects.bucket

        async def delete(self, key: str) -> None:
            raise OSError(key)

    await collector(gateway, Away()).round()

    assert await keys(s3) == {CAT}
    assert await shop.sql("SELECT count(*) FROM media_origin") == 1


class Picture:
    """Posted again and again, by its URL and by its name; before each time all that was shows that it is long ago."""

    def __init__(self, shop: Workshop, database: Database, site: Pictures, size: int) -> None:
        body = png(size, size)
        self._shop, self._database, self._size = shop, database, size
        self._url = site.put(f"/{size}.png", body)
        self.ref = f"sha256:{sha256(body).hexdigest()}"
        self.by_name: list[int] = []

    async def post(self, times: int) -> None:
        for time in range(times):
            await self._grow_old()
            if time % 3:  # a race with the collector, else with retention
                await eventually(self._is_doomed if time % 3 == 2 else self._is_forgotten)
            item = {"type": "photo", "blob_ref": self.ref}
            staged, named = await asyncio.gather(
                self._shop.stage(self._url, text=f"{self._size} {time}"),
                self._shop.post({"text": f"named {self._size} {time}", "media": [item]}),
            )
            self.by_name.append(named.status_code)
            await eventually(partial(enqueued_in_a_hurry, self._shop, staged), within=timedelta(seconds=30))

    async def _is_forgotten(self) -> bool:
        shown = "SELECT count(*) FROM messages WHERE payload #>> '{media,0,blob_ref}' = $1"
        return bool(await self._shop.sql(shown, self.ref) == 0)

    async def _is_doomed(self) -> bool:
        living = "SELECT count(*) FROM media_origin WHERE blob_ref = $1 AND doom IS NULL"
        return bool(await self._shop.sql(living, self.ref) == 0)

    async def _grow_old(self) -> None:
        async with self._database.pool.acquire() as connection, connection.transaction():
            await connection.execute("SET LOCAL session_replication_role = replica")
            await connection.execute(
                "CREATE TEMP TABLE shown ON COMMIT DROP AS SELECT message_id FROM messages "
                "WHERE payload -> 'media' @> jsonb_build_array(jsonb_build_object('blob_ref', $1::text))",
                self.ref,
            )
            for statement in GROW_OLD:
                await connection.execute(statement)
            await connection.execute(f"{LONG_AGO} WHERE blob_ref = $1", self.ref)


async def test_collecting_and_forgetting_under_concurrent_ingest_loses_nothing(
    shop: Workshop, site: Pictures, s3: Bucket, config: MonitorConfig, seeded_database: Database
) -> None:
    await seeded_database.pool.execute(OLD_WEEKS)
    collected, over = 0, asyncio.Event()

    class Counting(CollectGateway):
        async def bury_media(self, doomed: Doomed) -> bool:
            nonlocal collected
            collected += 1
            return await super().bury_media(doomed)

    async def guard() -> None:
        async with storing(config) as (_, objects), open_database(config, "monitor") as database:
            retention = Retention(RetainGateway(database), config)
            while not over.is_set():
                await retention.round()
                await collector(Counting(database), LaggingStore(objects)).round()

    guarding = asyncio.create_task(guard())
    shown = [Picture(shop, seeded_database, site, size) for size in range(1, 5)]
    try:
        await asyncio.gather(*(picture.post(TIMES) for picture in shown))
    finally:
        over.set()
        await guarding

    assert await lost(shop, s3) == set()
    assert collected > 0
    assert {status for picture in shown for status in picture.by_name} <= {202, 422}
    left = await shop.sql("SELECT count(*) FROM messages")
    assert left < 2 * 4 * TIMES
