"""Collecting and forgetting while the same few pictures come in again and again: nothing is lost."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from hashlib import sha256

import pytest
from autopost_monitor.config import MonitorConfig
from autopost_monitor.retention.gateway import RetainGateway
from autopost_monitor.retention.media_gc_gateway import Deletion, MediaGcGateway
from autopost_monitor.retention.retain import Retention
from autopost_runtime.postgres.pool import open_database
from db.support.ages import OLD_WEEKS
from harness.buckets import Bucket
from harness.databases import Database
from harness.eventually import eventually
from harness.full import FULL
from harness.telegram_media import png
from ingest.support.pictures import Pictures, pictures
from ingest.support.staging_ingest import Workshop, workshop
from monitor.support.slow_store import LONG_AGO, LaggingStore, collector, configured, enqueued_in_a_hurry, lost, storing

pytestmark = pytest.mark.time_limit(480)

PLENTY = timedelta(minutes=1)
TIMES = 25 if FULL else 6
GROW_OLD = (
    "DELETE FROM delivery_queue q USING deliveries d JOIN shown USING (message_id) WHERE d.delivery_id = q.delivery_id",
    "UPDATE events e SET ts = now() - interval '100 days' FROM shown s "
    "WHERE s.message_id = e.message_id AND e.ts > now() - interval '90 days'",
    "UPDATE deliveries d SET status = 'sent', updated_at = now() - interval '1 year', "
    "created_at = now() - interval '1 year' FROM shown s WHERE s.message_id = d.message_id",
    "UPDATE messages m SET created_at = now() - interval '1 year', last_seen_at = now() - interval '1 year' "
    "FROM shown s WHERE s.message_id = m.message_id",
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
                await eventually(self._is_being_deleted if time % 3 == 2 else self._is_forgotten, within=PLENTY)
            item = {"type": "photo", "blob_ref": self.ref}
            staged, named = await asyncio.gather(
                self._shop.stage(self._url, text=f"{self._size} {time}"),
                self._shop.post({"text": f"named {self._size} {time}", "media": [item]}),
            )
            self.by_name.append(named.status_code)
            await eventually(partial(enqueued_in_a_hurry, self._shop, staged), within=PLENTY)

    async def _is_forgotten(self) -> bool:
        shown = "SELECT count(*) FROM messages WHERE payload #>> '{media,0,blob_ref}' = $1"
        return bool(await self._shop.sql(shown, self.ref) == 0)

    async def _is_being_deleted(self) -> bool:
        living = "SELECT count(*) FROM media_origin WHERE blob_ref = $1 AND deletion_token IS NULL"
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

    class Counting(MediaGcGateway):
        async def finish_media_deletion(self, deletion: Deletion) -> bool:
            nonlocal collected
            collected += 1
            return await super().finish_media_deletion(deletion)

    async def guard() -> None:
        async with storing(config) as (_, objects), open_database(config, "monitor") as database:
            retention = Retention(RetainGateway(database), config)
            while not over.is_set():
                await retention.run_once()
                await collector(Counting(database), LaggingStore(objects)).run_once()

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
