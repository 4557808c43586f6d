"""What a known sender sent and was refused for lies in the store, one sample for each event that tells of it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from autopost_ingest.admission.refusal_samples import LARGEST
from autopost_runtime.config.load import Secret, ServiceConfig
from autopost_runtime.storage.objects import Objects, open_objects
from autopost_runtime.storage.payloads import HURRIED, MARGIN, Payloads
from harness.buckets import Bucket
from harness.databases import Database
from harness.eventually import eventually
from ingest.support.ingest_client import DEMO, DEMO_WORKSPACE, IngestClient
from ingest.support.ingest_server import RawIngestClient, head, opened

REFS = "SELECT array_agg(payload_ref ORDER BY seq) FROM events"
TOLD = "SELECT coalesce(sum((meta ->> 'count')::int), 0) FROM events"


@pytest.fixture
async def objects(s3: Bucket, _patient: None) -> AsyncIterator[Objects]:
    config = ServiceConfig(
        database_url="postgresql://nowhere/none",
        s3_endpoint=s3.endpoint,
        s3_bucket=s3.bucket,
        s3_access_key=Secret(s3.access_key),
        s3_secret_key=Secret(s3.secret_key),
    )
    async with open_objects(config) as objects:
        yield objects


@asynccontextmanager
async def keeping(database: Database, store: Any, **options: Any) -> AsyncIterator[RawIngestClient]:
    async with opened(database, settings={"payloads": Payloads(store, "ingest")}, **options) as client:
        yield client


@pytest.fixture
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a store that answers, however slowly."""
    monkeypatch.setattr("autopost_ingest.admission.refusal_samples.HURRIED", timedelta(minutes=1))


async def stored(objects: Objects) -> dict[str, dict[str, Any]]:
    return {one.key: json.loads(await objects.get(one.key)) async for one in objects.listed("")}


@pytest.mark.parametrize(
    ("options", "status", "code", "body"),
    [
        ({"content": b'{"text": 7, "by": "ann@example.com"'}, 400, "malformed", '{"text": 7, "by": "ann@example.com"'),
        ({"content": b'{"text": ""}'}, 422, "unprocessable", '{"text": ""}'),
        ({"content": b"x", "headers": {"Content-Encoding": "gzip"}}, 415, "unsupported_media_type", None),
        ({"content": b" " * 300_000}, 413, "content_too_large", None),
    ],
    ids=["no JSON", "makes no sense", "encoded", "too large by its own words"],
)
async def test_a_refused_request_is_kept_and_its_event_says_where(
    seeded_database: Database, objects: Objects, options: dict[str, Any], status: int, code: str, body: str | None
) -> None:
    async with keeping(seeded_database, objects) as client:
        answer = await client.post(**options)
        refs = await client.sql(REFS)
        error = json.loads(await client.sql("SELECT error FROM events"))

    [(key, found)] = (await stored(objects)).items()
    assert (answer.status_code, refs, error) == (status, [key], {"code": code})
    assert key.startswith(f"{DEMO_WORKSPACE}/payloads/")
    assert (found["service"], found["kind"], found["status"]) == ("ingest", "refused_input", status)
    assert (found["about"]["code"], found["body"], found["cut"]) == (code, body, None)
    assert "user-agent" in found["headers"]


async def test_of_what_is_too_large_only_the_beginning_is_kept(seeded_database: Database, objects: Objects) -> None:
    async with keeping(seeded_database, objects) as client:
        piece = b"x" * 8000
        pieces = [b"%x\r\n%s\r\n" % (len(piece), piece)] * 40
        status, _ = await client.raw(head("Transfer-Encoding: chunked"), *pieces)

    [found] = (await stored(objects)).values()
    assert status == 413
    assert LARGEST - MARGIN <= len(found["body"]) <= LARGEST
    assert found["cut"].startswith("truncated; the whole body has ")


async def test_no_secret_of_the_sender_is_kept(seeded_database: Database, objects: Objects) -> None:
    async with keeping(seeded_database, objects) as client:
        await client.post(content=f'{{"text": 1, "from": "{DEMO}", "token": "hush", "auth": "Bearer hush"'.encode())

    [found] = (await stored(objects)).values()
    assert found["body"] == '{"text": 1, "from": "***", "token": "***", "auth": "Bearer ***"'
    assert DEMO not in json.dumps(found)


async def test_a_flood_of_refusals_leaves_one_sample_for_each_event(
    seeded_database: Database, objects: Objects
) -> None:
    async with keeping(seeded_database, objects, timers=True) as client:
        await asyncio.gather(*(client.post(content=b"{") for _ in range(50)))

        async def all_told() -> bool:
            return bool(await client.sql(TOLD) == 50)

        await eventually(all_told, within=timedelta(seconds=30))
        refs = await client.sql(REFS)

    assert len(refs) < 10
    assert set(refs) == set(await stored(objects))


@pytest.mark.parametrize(
    ("secret", "params", "body"),
    [("wrong", {}, b"{"), (DEMO, {"dry_run": "1"}, b"{"), (DEMO, {}, b'{"text": "fine"}')],
    ids=["a stranger", "a dry run", "accepted"],
)
async def test_strangers_dry_runs_and_what_is_accepted_leave_nothing(
    seeded_database: Database, objects: Objects, secret: str, params: dict[str, str], body: bytes
) -> None:
    async with keeping(seeded_database, objects) as client:
        await client.post(secret=secret, params=params, content=body)

    assert await stored(objects) == {}


async def test_a_store_that_hangs_changes_no_answer_and_delays_it_only_so_long(seeded_database: Database) -> None:
    class Hanging:
        asked = 0

        async def put(self, *_: object, **__: object) -> None:
            self.asked += 1
            await asyncio.Event().wait()

    store = Hanging()
    async with keeping(seeded_database, store) as client:
        first, second = await client.post(content=b"{"), await client.post(content=b"{")
        refs = await client.sql(REFS)

    assert (first.status_code, second.status_code) == (400, 400)
    assert HURRIED < first.elapsed < HURRIED + timedelta(seconds=15)
    assert store.asked == 1  # the second sender does not wait for it at all
    assert set(refs) == {None}


async def test_without_a_store_refusals_are_told_as_ever(client: IngestClient) -> None:
    await client.post(content=b"{")

    assert await client.sql(REFS) == [None]
