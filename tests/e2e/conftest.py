"""The real services on a database of the test's own, with a simulator of their own."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from autopost_cli.stack.stack import Stack
from autopost_runtime.config.load import Secret, ServiceConfig
from autopost_runtime.storage.objects import Objects, open_objects
from harness.buckets import Bucket
from harness.databases import Database
from harness.http_client import http_client

from e2e.system import System

StartSystem = Callable[..., Awaitable[System]]


@pytest.fixture
async def start_system(
    seeded_database: Database, nats_url: str, nats_namespace: str, s3: Bucket, tmp_path: Path
) -> AsyncIterator[StartSystem]:
    """``await start_system(AUTOPOST_POLL_INTERVAL="60s")``: backends of the run, services and simulator of the test.

    ``None`` takes a variable away, which makes that part an embedded one.
    """
    async with AsyncExitStack() as ending:

        async def start(**env: str | None) -> System:
            given = {
                "AUTOPOST_DATABASE_URL": seeded_database.url,
                "AUTOPOST_NATS_URL": nats_url,
                "AUTOPOST_NATS_NAMESPACE": nats_namespace,
                "AUTOPOST_S3_ENDPOINT": s3.endpoint,
                "AUTOPOST_S3_BUCKET": s3.bucket,
                "AUTOPOST_S3_ACCESS_KEY": s3.access_key,
                "AUTOPOST_S3_SECRET_KEY": s3.secret_key,
                "AUTOPOST_LOG_LEVEL": "warning",
            }
            chosen = {name: value for name, value in {**given, **env}.items() if value is not None}
            stack: Any = Stack(data=tmp_path / "stack", env=chosen)
            await ending.enter_async_context(stack)
            http = await ending.enter_async_context(http_client(timeout=30))
            database = await asyncpg.connect(stack.describe()["database_url"])
            ending.push_async_callback(database.close)
            return System(stack, http, database)

        yield start


@pytest.fixture
async def objects(s3: Bucket) -> AsyncIterator[Objects]:
    config = ServiceConfig(
        database_url="postgresql://unused/unused",
        s3_endpoint=s3.endpoint,
        s3_bucket=s3.bucket,
        s3_access_key=Secret(s3.access_key),
        s3_secret_key=Secret(s3.secret_key),
    )
    async with open_objects(config) as opened:
        yield opened
