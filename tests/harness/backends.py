"""Postgres, NATS and S3 for one test run, each started when a test first asks for it.

Both kinds answer the same questions: ``postgres()``, ``nats()``, ``bucket()``.
"""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import Protocol

from autopost_cli.embedded.folders import scratch
from autopost_cli.embedded.nats import NatsServer
from autopost_cli.embedded.postgres import FAST, PostgresServer
from autopost_cli.embedded.s3 import S3Server

from harness.buckets import Bucket, make_bucket

MEMORY = Path("/dev/shm")  # noqa: S108 -- only as the parent of a folder made by mkdtemp
ENOUGH = 2 << 30
SURVIVES_A_KILL = {**FAST, "synchronous_commit": "on"}  # FAST alone loses what it committed last


class Backends(Protocol):
    async def postgres(self) -> str: ...
    async def nats(self) -> str: ...
    async def bucket(self) -> Bucket: ...
    async def stop(self) -> None: ...


def scratch_root() -> Path:
    """Memory where there is enough: a clone takes 15 ms there, and up to ten times that on a busy disk."""
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ENOUGH:
        return MEMORY
    return Path(tempfile.gettempdir())


class EmbeddedBackends:
    def __init__(self) -> None:
        self._open = contextlib.AsyncExitStack()
        folder = self._open.enter_context(scratch("autopost-test-", scratch_root()))
        self._postgres = PostgresServer(folder / "postgres", settings=FAST)
        self._nats = NatsServer(folder / "nats")
        self._s3 = S3Server(folder / "s3")

    async def postgres(self) -> str:
        await self._started(self._postgres)
        return self._postgres.url()

    async def nats(self) -> str:
        await self._started(self._nats)
        return self._nats.url

    async def bucket(self) -> Bucket:
        await self._started(self._s3)
        return await make_bucket(self._s3.url, self._s3.access_key, self._s3.secret_key)

    async def stop(self) -> None:
        await self._open.aclose()

    async def _started(self, server: PostgresServer | NatsServer | S3Server) -> None:
        if not server.process:
            await self._open.enter_async_context(server)
