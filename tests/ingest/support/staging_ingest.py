"""Ingest with real Postgres, real S3 and a web server to fetch images from."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
from aiobotocore.config import AioConfig
from aiobotocore.session import get_session
from autopost_contracts.subjects import Topology
from autopost_ingest.admission.admit import Admission
from autopost_ingest.config import IngestConfig
from autopost_ingest.dry_run.dry_run import DryRunner
from autopost_ingest.dry_run.media import DryMedia
from autopost_ingest.gateway import Gateway
from autopost_ingest.http.post_changes import PostChangesHandler
from autopost_ingest.http.post_status import PostStatusHandler
from autopost_ingest.http.receive import PostReceiver, application
from autopost_ingest.posts.enqueue import Enqueuer
from autopost_ingest.posts.offload import Offload
from autopost_ingest.posts.post_gateway import PostGateway
from autopost_ingest.posts.stored_media import StoredMedia
from autopost_ingest.staging.assembly import downloader_of, fetcher_of, fetching
from autopost_ingest.staging.download import Downloader
from autopost_ingest.staging.gateway import StagedGateway
from autopost_runtime.config.load import Secret
from autopost_runtime.http.web import Site, serve
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.nats.bus import open_bus
from autopost_runtime.postgres.pool import open_database
from harness.buckets import Bucket
from harness.eventually import eventually
from harness.http_client import http_client
from ingest.support.ingest_client import DEMO, Ear, IngestClient
from ingest.support.pictures import HERE

PLENTY = timedelta(seconds=20)


def configured(url: str, bucket: Bucket, **settings: Any) -> IngestConfig:
    """Of defaults, with addresses of the test; no NATS."""
    given: dict[str, Any] = {
        "database_url": url,
        "nats_url": None,
        "s3_endpoint": bucket.endpoint,
        "s3_access_key": Secret(bucket.access_key),
        "s3_secret_key": Secret(bucket.secret_key),
        "s3_bucket": bucket.bucket,
        "poll_interval": timedelta(milliseconds=50),
        "fetch_allow": HERE,
    }
    return IngestConfig(**(given | settings))


@asynccontextmanager
async def ingesting(
    config: IngestConfig,
    gateway_of: type[Gateway] = Gateway,
    staged_of: type[StagedGateway] = StagedGateway,
    downloader: Downloader | None = None,
    *,
    resting: bool = False,
) -> AsyncIterator[Site]:
    """A replica, wired as the service wires itself, but for what a test replaces. A ``resting`` one fetches nothing."""
    service, staged = Service("ingest"), asyncio.Event()
    async with open_database(config, service) as database, open_bus(config, service) as bus:
        gateway, staged_gateway = gateway_of(database), staged_of(database)
        offload = Offload(upload_policy=config.upload_policy)
        enqueuer = Enqueuer(gateway, bus, Topology(), audit_deduped=False, staged=staged, offload=offload)
        stored_media, admission = StoredMedia(gateway), Admission(gateway, timedelta(seconds=5), parser=offload)
        downloads = downloader or downloader_of(config, fetcher_of(config))
        dry_runner = DryRunner(admission, gateway, DryMedia(stored_media, downloads, offload=offload))
        app = application(admission, stored_media, enqueuer, dry_runner)
        posts, receiver = PostGateway(database), PostReceiver(admission, stored_media, enqueuer, dry_runner)
        PostStatusHandler(admission, posts).add_to(app)
        PostChangesHandler(admission, posts, receiver, enqueuer).add_to(app)
        try:
            async with (
                await serve(app, config.http_host, config.http_port) as site,
                fetching(
                    *(config, service, staged_gateway, stored_media, enqueuer, downloads),
                    None if resting else staged,
                ),
            ):
                yield site
        finally:
            await service.end_tasks()


class Workshop(IngestClient):
    """A client whose posts may name pictures by URL."""

    async def stage(self, *urls: str, kind: str = "photo", secret: str = DEMO, **fields: Any) -> dict[str, Any]:
        body = {"media": [{"type": kind, "url": url} for url in urls], **fields}
        answer = await self.post(body, secret=secret)
        assert (answer.status_code, answer.json()["status"]) == (202, "staged"), answer.text
        return dict(answer.json())

    async def told(self, post_id: str, secret: str | None = DEMO) -> httpx.Response:
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        return await self.http.get(f"{self.url}/v1/posts/{post_id}", headers=headers)

    async def became(self, post: dict[str, Any], status: str, within: timedelta = PLENTY) -> dict[str, Any]:
        """What is told of it once it has this status; asked of the database, which minds no rate."""

        async def there() -> bool:
            return bool(await self.status(post) == status)

        await eventually(there, within=within)
        answer = await self.told(post["post_id"])
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def status(self, post: dict[str, Any]) -> str:
        return str(await self.sql("SELECT status FROM staged_posts WHERE post_id = $1", UUID(post["post_id"])))

    async def hurry(self) -> None:
        """What waits for its next attempt waits no more."""
        await self.sql("UPDATE staged_posts SET next_attempt_at = now() WHERE status = 'staged'")


@asynccontextmanager
async def workshop(
    database: Any,
    bucket: Bucket,
    *,
    staged_of: type[StagedGateway] = StagedGateway,
    resting: bool = False,
    **settings: Any,
) -> AsyncIterator[Workshop]:
    await database.pool.execute("UPDATE workspace_endpoints SET ingress_rps = NULL")
    async with (
        ingesting(configured(database.url, bucket, **settings), staged_of=staged_of, resting=resting) as site,
        http_client(timeout=10) as http,
    ):
        yield Workshop(site.url, http, database, Ear())


async def keys(bucket: Bucket) -> set[str]:
    """Every object there is."""
    client = get_session().create_client(
        "s3",
        endpoint_url=bucket.endpoint,
        region_name="us-east-1",
        aws_access_key_id=bucket.access_key,
        aws_secret_access_key=bucket.secret_key,
        config=AioConfig(s3={"addressing_style": "path"}),
    )
    async with client as s3:
        answer = await s3.list_objects_v2(Bucket=bucket.bucket)
    return {found["Key"] for found in answer.get("Contents", [])}
