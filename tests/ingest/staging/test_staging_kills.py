"""Ingest killed anywhere inside a media post: it is delivered once, and nothing lies in the store unaccounted for."""

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import httpx
import msgspec
import pytest
from autopost_simulator import Simulator, listening
from db.support.builders import Tenant
from dispatcher.support.running_dispatcher import RunningDispatchers, running_dispatcher
from dispatcher.support.running_dispatcher import configured as dispatcher_configured
from harness.buckets import Bucket
from harness.databases import Database
from harness.eventually import eventually
from harness.http_client import http_client
from harness.telegram_media import png
from ingest.support.crashing_ingest import POINTS
from ingest.support.pictures import MP4, PNG, Pictures
from ingest.support.staging_ingest import configured, ingesting, keys

pytestmark = pytest.mark.time_limit(480)

SECRET = "a secret of the kill tests"
IN_PARTS = 9 * 1024 * 1024
"""So large that it is stored in more than one."""


class Grave:
    """Forks an ingest and tells where it listens and how it ended."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def bear(self, point: str) -> str:
        assert self._process.stdin
        self._process.stdin.write(f"{point}\n".encode())
        return await self._line()

    async def bury(self) -> int:
        return int(await self._line())

    async def _line(self) -> str:
        assert self._process.stdout
        async with asyncio.timeout(20):
            return (await self._process.stdout.readline()).decode().strip()


@pytest.fixture
async def grave(database: Database, s3: Bucket) -> AsyncIterator[Grave]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ingest.support.crashing_ingest", database.url, msgspec.json.encode(s3).decode()),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )
    yield Grave(process)
    os.killpg(process.pid, signal.SIGKILL)  # with whatever it has forked
    await process.wait()


@pytest.fixture
async def stage(database: Database, s3: Bucket) -> AsyncIterator[RunningDispatchers]:
    """A workspace with a channel on each platform, and a secret to post with."""
    async with listening(Simulator(open_to_all=True)) as simulator, http_client(timeout=30) as http:
        made = RunningDispatchers(await Tenant.create(database.pool), simulator, http, s3)
        await made.channels("telegram", 1)
        await made.channels("max", 1)
        await database.pool.execute(
            "INSERT INTO workspace_endpoints (workspace_id, kind, secret_hash, ingress_rps) "
            "VALUES ($1, 'webhook_push', $2, NULL)",
            *(made.tenant.workspace, sha256(SECRET.encode()).hexdigest()),
        )
        yield made


class Sender:
    """A careful one: sends the same until somebody has taken it in. Each has pictures of its own."""

    def __init__(self, site: Pictures, point: str) -> None:
        self.point = point
        self.picture = png(3, 2, POINTS.index(point))
        self.video = MP4 + point.encode() + (bytes(IN_PARTS) if point == "putting" else b"")
        media = [
            {"type": "photo", "url": site.put(f"/{point}.png", self.picture)},
            {"type": "video", "url": site.put(f"/{point}.mp4", self.video)},
        ]
        self._body = {"text": point, "media": media, "source_ref": uuid4().hex}
        self.answers: list[int] = []

    async def send(self, url: str) -> None:
        headers = {"Authorization": f"Bearer {SECRET}"}
        async with http_client(timeout=10) as http:
            try:
                answer = await http.post(f"{url}/v1/posts", json=self._body, headers=headers)
            except httpx.HTTPError:
                return
        self.answers.append(answer.status_code)


async def accounted(database: Database) -> set[str]:
    """The keys that the database knows: origins, and objects that were about to be written."""
    rows = await database.pool.fetch(
        "SELECT workspace_id, blob_ref FROM media_origin UNION SELECT workspace_id, unnest(puts) FROM media_fetches"
    )
    return {f"{row['workspace_id']}/media/{row['blob_ref'].removeprefix('sha256:')}" for row in rows}


async def killed(database: Database, s3: Bucket, grave: Grave, sender: Sender) -> None:
    """What is left is put aside, so that the next one to die has a post of its own to die for."""
    await sender.send(await grave.bear(sender.point))
    assert await grave.bury() == -signal.SIGKILL, sender.point
    assert await keys(s3) <= await accounted(database), sender.point
    await database.pool.execute(
        "UPDATE staged_posts SET next_attempt_at = 'infinity' WHERE status IN ('staged', 'fetching')"
    )


async def recover(database: Database, s3: Bucket, *senders: Sender) -> None:
    """The service starts again, the senders repeat what was not answered, and the leases of the dead are over."""
    await database.pool.execute(
        "UPDATE staged_posts SET next_attempt_at = now(), lease_until = CASE status WHEN 'fetching' THEN now() END "
        "WHERE status IN ('staged', 'fetching')"
    )
    async with ingesting(configured(database.url, s3)) as replica:
        for sender in senders:
            await sender.send(replica.url)

        async def enqueued() -> bool:
            query = "SELECT count(*) = $1 AND bool_and(status = 'enqueued') FROM staged_posts"
            return bool(await database.pool.fetchval(query, len(senders)))

        await eventually(enqueued, within=timedelta(seconds=30))


async def test_a_kill_at_any_step_of_a_media_post_leaves_one_post_and_no_stray_object(
    database: Database, s3: Bucket, stage: RunningDispatchers, grave: Grave, site: Pictures
) -> None:
    senders = [Sender(site, point) for point in POINTS]
    for sender in senders:
        await killed(database, s3, grave, sender)

    await recover(database, s3, *senders)

    assert await keys(s3) == await accounted(database)
    assert len(await keys(s3)) == 2 * len(POINTS)
    assert await database.pool.fetchval("SELECT count(*) FROM media_fetches WHERE puts <> '{}'") == 0
    texts = await database.pool.fetch("SELECT payload ->> 'text' FROM messages")
    assert sorted(row[0] for row in texts) == sorted(POINTS)
    uncommitted = {"received": 202, "admitting": 202}
    assert {sender.point: sender.answers[-1] for sender in senders} == dict.fromkeys(POINTS, 200) | uncommitted
    async with running_dispatcher(dispatcher_configured(database.url, stage.simulator, s3)):
        assert await stage.settled() == {"sent": 2 * len(POINTS)}
    assert Counter(line["text"] for line in await stage.accepted()) == dict.fromkeys(POINTS, 2)


async def test_a_picture_that_changed_after_a_kill_leaves_an_object_that_is_still_accounted_for(
    database: Database, s3: Bucket, stage: RunningDispatchers, grave: Grave, site: Pictures
) -> None:
    sender = Sender(site, "put")
    await killed(database, s3, grave, sender)
    stray = await keys(s3)
    site.put("/put.png", PNG)

    await recover(database, s3, sender)

    digests = {sha256(body).hexdigest() for body in (sender.picture, sender.video, PNG)}
    assert {key.rpartition("/")[2] for key in await keys(s3)} == digests
    assert await keys(s3) == await accounted(database)
    puts = await database.pool.fetchval("SELECT puts FROM media_fetches WHERE puts <> '{}'")
    assert [f"{stage.tenant.workspace}/media/{put.removeprefix('sha256:')}" for put in puts] == list(stray)
