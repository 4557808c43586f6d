"""Ingest served in process with any options: posts, signed posts, the webhook of the bot, timers."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx
import pytest
from autopost_contracts.subjects import Topology
from autopost_ingest.admission.admit import Admission
from autopost_ingest.dry_run.dry_run import DryRunner
from autopost_ingest.dry_run.media import DryMedia
from autopost_ingest.gateway import Gateway
from autopost_ingest.http.bot_webhook import BotWebhook
from autopost_ingest.http.receive import application
from autopost_ingest.posts.enqueue import Enqueuer
from autopost_ingest.posts.offload import Offload
from autopost_ingest.posts.stored_media import StoredMedia
from autopost_runtime.config.load import ServiceConfig
from autopost_runtime.http.web import HEAD_TIMEOUT, serve
from autopost_runtime.postgres.pool import open_database
from harness.databases import Database
from harness.http_client import http_client
from ingest.support.ingest_client import DEMO, Ear, IngestClient

MOMENT = timedelta(milliseconds=200)
LONG = timedelta(seconds=20)


class RawIngestClient(IngestClient):
    """A client that also takes raw bytes, so that a request may lie."""

    port = 0

    async def raw(self, *pieces: bytes, pause: timedelta = timedelta()) -> tuple[int, dict[str, Any]]:
        """The first answer: its status and its body. 0 when the connection was closed without one."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(pause.total_seconds())
            return await answer_of(reader)
        except ConnectionError:
            return 0, {}
        finally:
            writer.close()


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, dict[str, Any]]:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    except asyncio.IncompleteReadError:
        return 0, {}
    return int(first.split()[1]), json.loads(body) if "json" in headers.get("content-type", "") else {}


def tell(capture: pytest.CaptureFixture[str], line: str) -> None:
    """For whoever reads the output of the run, also of one that succeeds."""
    with capture.disabled():
        sys.stderr.write(f"\n{line}\n")


def head(*headers: str, path: str = "/v1/posts", secret: str = DEMO) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: ingest", f"Authorization: Bearer {secret}", *headers, "", ""]
    return "\r\n".join(lines).encode()


@asynccontextmanager
async def opened(
    database: Database,
    *,
    body_timeout: timedelta = LONG,
    head_timeout: timedelta = HEAD_TIMEOUT,
    timers: bool = False,
    bus: Any = None,
    topology: Topology | None = None,
    settings: Mapping[str, Any] | None = None,
    **serving: Any,
) -> AsyncIterator[RawIngestClient]:
    """``settings`` are those of ``Admission``, ``serving`` those of ``serve``; ``timers`` makes refusals told as in the
    running service."""
    config = ServiceConfig(database_url=database.url, database_role="autopost_ingest", database_pool=20)
    limits = httpx.Limits(max_connections=200)
    async with open_database(config, "ingest") as pool, http_client(limits=limits, timeout=30) as http:
        gateway, ear, topology = Gateway(pool), Ear(), topology or Topology()
        admission = Admission(gateway, body_timeout, parser=Offload(), **(settings or {}))
        stored_media = StoredMedia(gateway)
        enqueuer = Enqueuer(gateway, bus or ear, topology, audit_deduped=False)
        dry_runner = DryRunner(admission, gateway, DryMedia(stored_media, None, offload=Offload()))
        app = application(admission, stored_media, enqueuer, dry_runner)
        BotWebhook(admission, gateway, bus or ear, topology).add_to(app)
        telling = asyncio.create_task(admission.refusals.run()) if timers else None
        async with await serve(app, "127.0.0.1", 0, head_timeout=head_timeout, **serving) as site:
            client = RawIngestClient(site.url, http, database, ear)
            client.port = site.port
            yield client
        if telling:
            telling.cancel()
