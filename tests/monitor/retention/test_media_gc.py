"""The collector against a real store, and against ingest that brings the same pictures meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

import pytest
from autopost_ingest.staging.gateway import StagedGateway, StagedPost
from autopost_monitor.config import MonitorConfig
from autopost_monitor.retention.media_gc_gateway import MediaGcGateway
from autopost_runtime.storage.objects import Objects
from harness.buckets import Bucket
from harness.databases import Database
from harness.eventually import eventually
from harness.http_client import http_client
from harness.telegram_media import png
from ingest.support.ingest_client import DEMO_WORKSPACE, Ear
from ingest.support.pictures import PNG, Pictures, pictures
from ingest.support.staging_ingest import Workshop, ingesting, keys, workshop
from ingest.support.staging_ingest import configured as ingest_configured
from monitor.support.slow_store import (
    LONG_AGO,
    SlowStore,
    collector,
    configured,
    enqueued_in_a_hurry,
    lost,
    nobody_shows_it,
    storing,
)

CAT = f"{DEMO_WORKSPACE}/media/{sha256(PNG).hexdigest()}"
REF = f"sha256:{sha256(PNG).hexdigest()}"
SHORT = timedelta(seconds=6)
THE_MARK_IS_OVER = (
    "UPDATE media_origin SET deleting_until = now() - interval '1 second' WHERE deletion_token IS NOT NULL"
)


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
async def store(config: MonitorConfig) -> AsyncIterator[tuple[MediaGcGateway, Objects]]:
    async with storing(config) as opened:
        yield opened


async def test_an_object_that_nothing_refers_to_is_deleted_and_others_are_not(
    shop: Workshop, site: Pictures, s3: Bucket, store: tuple[MediaGcGateway, Objects], seeded_database: Database
) -> None:
    await shop.became(await shop.stage(site.put("/cat.png", PNG)), "enqueued")
    await nobody_shows_it(seeded_database)
    await shop.became(await shop.stage(site.put("/dog.png", png(3, 3))), "enqueued")
    await shop.sql(LONG_AGO)

    await collector(*store).run_once()

    assert await keys(s3) == {f"{DEMO_WORKSPACE}/media/{sha256(png(3, 3)).hexdigest()}"}
    assert await shop.sql("SELECT count(*) FROM media_origin") == 1


class Held:
    """A moment of ingest that can be held up: the object is written, and the database does not know it yet."""

    def __init__(self) -> None:
        self.reached, self.open = asyncio.Event(), asyncio.Event()

    def gateway(self) -> type[StagedGateway]:
        held = self

        class Holding(StagedGateway):
            async def finish_media_fetch(self, post: StagedPost, url_hash: str, **facts: Any) -> None:
                held.reached.set()
                await held.open.wait()
                await super().finish_media_fetch(post, url_hash, **facts)

        return Holding


async def test_the_same_picture_that_comes_in_between_the_mark_and_the_delete_is_not_lost(
    site: Pictures, s3: Bucket, store: tuple[MediaGcGateway, Objects], seeded_database: Database
) -> None:
    url, held = site.put("/cat.png", PNG), Held()
    async with workshop(seeded_database, s3) as shop:
        await shop.became(await shop.stage(url), "enqueued")
    await nobody_shows_it(seeded_database)
    gateway, objects = store
    slow = SlowStore(objects)
    collecting = asyncio.create_task(collector(gateway, slow).run_once())
    await slow.reached.wait()

    config = ingest_configured(seeded_database.url, s3)
    async with ingesting(config, staged_of=held.gateway()) as replica, http_client(timeout=10) as http:
        shop = Workshop(replica.url, http, seeded_database, Ear())
        post = await shop.stage(url, text="again")
        await eventually(lambda: given_back_or(held, shop, post))
        slow.open.set()
        await collecting
        held.open.set()
        await shop.hurry()
        await shop.became(post, "enqueued")

        assert slow.deleted == [CAT]
        assert await lost(shop, s3) == set()
        assert await keys(s3) == {CAT}


async def given_back_or(held: Held, shop: Workshop, post: dict[str, str]) -> bool:
    return held.reached.is_set() or await given_back(shop, post)


async def given_back(shop: Workshop, post: dict[str, str]) -> bool:
    """It has fetched the picture and was told to wait."""
    query = "SELECT status = 'staged' AND next_attempt_at > created_at FROM staged_posts WHERE post_id = $1"
    return bool(await shop.sql(query, UUID(post["post_id"])))


async def test_a_collector_that_was_held_up_for_longer_than_its_mark_deletes_nothing(
    shop: Workshop, site: Pictures, s3: Bucket, store: tuple[MediaGcGateway, Objects], seeded_database: Database
) -> None:
    url = site.put("/cat.png", PNG)
    await shop.became(await shop.stage(url), "enqueued")
    await nobody_shows_it(seeded_database)
    gateway, objects = store
    slow = SlowStore(objects)
    collecting = asyncio.create_task(collector(gateway, slow, SHORT).run_once())
    await slow.reached.wait()

    post = await shop.stage(url, text="again")
    await eventually(lambda: enqueued_in_a_hurry(shop, post), within=timedelta(seconds=30))
    slow.open.set()
    await collecting

    assert slow.deleted == []
    assert await lost(shop, s3) == set()


async def test_a_collector_that_was_stopped_before_it_began_to_delete_does_not_begin(
    shop: Workshop, site: Pictures, s3: Bucket, store: tuple[MediaGcGateway, Objects], seeded_database: Database
) -> None:
    await shop.became(await shop.stage(site.put("/cat.png", PNG)), "enqueued")
    await nobody_shows_it(seeded_database)
    gateway, objects = store
    slow = SlowStore(objects)

    await collector(gateway, slow, timedelta(microseconds=1)).run_once()

    assert not slow.reached.is_set()
    assert await keys(s3) == {CAT}


async def test_a_picture_named_while_it_is_collected_is_refused_and_one_named_before_is_kept(
    shop: Workshop, site: Pictures, s3: Bucket, store: tuple[MediaGcGateway, Objects], seeded_database: Database
) -> None:
    await shop.became(await shop.stage(site.put("/cat.png", PNG)), "enqueued")
    await nobody_shows_it(seeded_database)
    named = {"media": [{"type": "photo", "blob_ref": REF}]}
    gateway, objects = store
    slow = SlowStore(objects)
    collecting = asyncio.create_task(collector(gateway, slow).run_once())
    await slow.reached.wait()

    refused = await shop.post(named)
    slow.open.set()
    await collecting

    assert (refused.status_code, await keys(s3)) == (422, set())
    assert await shop.sql("SELECT count(*) FROM messages") == 0


async def test_a_crash_between_deletion_and_removal_of_the_row_is_continued(
    shop: Workshop, site: Pictures, s3: Bucket, store: tuple[MediaGcGateway, Objects], seeded_database: Database
) -> None:
    await shop.became(await shop.stage(site.put("/cat.png", PNG)), "enqueued")
    await nobody_shows_it(seeded_database)
    gateway, objects = store

    class Crash(Exception):  # noqa: N818
        pass

    class KilledGateway(MediaGcGateway):
        async def finish_media_deletion(self, deletion: object) -> bool:
            raise Crash

    with pytest.raises(Crash):
        await collector(KilledGateway(gateway._database), objects).run_once()
    assert await shop.sql("SELECT count(*) FROM media_origin WHERE deletion_token IS NOT NULL") == 1
    await shop.sql(THE_MARK_IS_OVER)
    await collector(gateway, objects).run_once()

    assert await shop.sql("SELECT count(*) FROM media_origin") == 0
    assert await keys(s3) == set()


async def test_a_store_that_is_away_costs_a_round_and_nothing_else(
    shop: Workshop, site: Pictures, s3: Bucket, store: tuple[MediaGcGateway, Objects], seeded_database: Database
) -> None:
    await shop.became(await shop.stage(site.put("/cat.png", PNG)), "enqueued")
    await nobody_shows_it(seeded_database)
    gateway, objects = store

    class Away:
        bucket = objects.bucket

        async def delete(self, key: str) -> None:
            raise OSError(key)

    await collector(gateway, Away()).run_once()

    assert await keys(s3) == {CAT}
    assert await shop.sql("SELECT count(*) FROM media_origin") == 1
