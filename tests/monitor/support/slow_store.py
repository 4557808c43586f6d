"""A store that can be delayed before a delete, and helpers for stored images."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from random import Random
from typing import Any

from autopost_monitor.config import MonitorConfig
from autopost_monitor.retention.media_gc import MediaCollector
from autopost_monitor.retention.media_gc_gateway import Keep, MediaGcGateway
from autopost_monitor.retention.retain import DeletionBatches
from autopost_runtime.config.load import Secret
from autopost_runtime.postgres.pool import open_database
from autopost_runtime.storage.objects import Objects, open_objects
from harness.buckets import Bucket
from harness.databases import Database
from ingest.support.staging_ingest import Workshop, keys

KEEP = Keep(origin=timedelta(days=30), large_video=timedelta(days=7), large_bytes=20 * 1024 * 1024)
QUICK = DeletionBatches(100, timedelta(0))
LONG_AGO = "UPDATE media_origin SET last_seen_at = now() - interval '100 days'"
FORGET = "DELETE FROM delivery_queue; DELETE FROM deliveries; DELETE FROM messages"


class SlowStore:
    """``reached`` says that a delete is about to be made; it is made once ``open`` is set."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.bucket = objects.bucket
        self.reached, self.open = asyncio.Event(), asyncio.Event()
        self.deleted: list[str] = []

    async def delete(self, key: str) -> None:
        self.reached.set()
        await self.open.wait()
        await self._objects.delete(key)
        self.deleted.append(key)


class LaggingStore:
    """Takes its time before each delete, so that others come in between."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.bucket = objects.bucket
        self._chance = Random(7)

    async def delete(self, key: str) -> None:
        await asyncio.sleep(self._chance.random() / 10)
        await self._objects.delete(key)


def configured(url: str, bucket: Bucket, **settings: Any) -> MonitorConfig:
    given: dict[str, Any] = {
        "database_url": url,
        "nats_url": None,
        "s3_endpoint": bucket.endpoint,
        "s3_access_key": Secret(bucket.access_key),
        "s3_secret_key": Secret(bucket.secret_key),
        "s3_bucket": bucket.bucket,
        "retain_pause": timedelta(0),
    }
    return MonitorConfig(**(given | settings))


@asynccontextmanager
async def storing(config: MonitorConfig) -> AsyncIterator[tuple[MediaGcGateway, Objects]]:
    async with open_database(config, "monitor") as database, open_objects(config) as objects:
        yield MediaGcGateway(database), objects


def collector(gateway: MediaGcGateway, store: Any, lease: timedelta = timedelta(minutes=2)) -> MediaCollector:
    return MediaCollector(gateway, store, KEEP, QUICK, lease)


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
        "UNION SELECT workspace_id, blob_ref FROM media_origin WHERE deletion_token IS NULL) AS n"
    )
    unknown = await shop.sql(
        "SELECT array_agg(m ->> 'blob_ref') FROM messages g, jsonb_array_elements(payload -> 'media') AS m "
        "WHERE NOT EXISTS (SELECT 1 FROM media_origin o WHERE o.workspace_id = g.workspace_id "
        "AND o.blob_ref = m ->> 'blob_ref' AND o.deletion_token IS NULL)"
    )
    return set(named or ()) - await keys(s3) | set(unknown or ())


async def enqueued_in_a_hurry(shop: Workshop, post: dict[str, str]) -> bool:
    await shop.hurry()
    return await shop.status(post) == "enqueued"
