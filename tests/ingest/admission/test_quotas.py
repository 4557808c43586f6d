"""Nobody shuts the client for others: not with what he announces, nor with what he sends, nor by coming often."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from unittest.mock import AsyncMock
from uuid import uuid4

import pytest
from autopost_contracts.ids import EndpointId, WorkspaceId
from autopost_ingest.admission.admit import Admission
from autopost_ingest.errors import AtCapacity
from autopost_ingest.gateway import Endpoint
from autopost_ingest.posts.offload import Offload
from autopost_runtime.http.quotas import UNAUTHENTICATED, HeldBytes, MemoryQuota, tenant, unverified
from harness.databases import Database
from harness.eventually import eventually
from ingest.support.ingest_client import DEMO, SHOP, TABLES, IngestClient
from ingest.support.ingest_server import RawIngestClient, answer_of, head, opened

LIMIT = 262_144
NEARLY = b" " * (LIMIT - 1)

REFUSED = (
    "SELECT sum((meta ->> 'count')::int)::int FROM events "
    "WHERE action = 'ingress_rate_limited' AND error ->> 'code' = 'too_much_at_once'"
)


def unsigned() -> bytes:
    """Of somebody who knows the form and no secret."""
    return head(
        *("webhook-id: a", f"webhook-timestamp: {int(time.time())}", "webhook-signature: v1,AAAA"),
        f"Content-Length: {LIMIT}",
        path="/v1/posts/x",
    )


@asynccontextmanager
async def sending(client: RawIngestClient, *requests: bytes) -> AsyncIterator[list[asyncio.Task[int]]]:
    """Requests that never come to their end, and the statuses with which they are refused."""
    connections = [await asyncio.open_connection("127.0.0.1", client.port) for _ in requests]
    for (_, writer), request in zip(connections, requests, strict=True):
        writer.write(request)

    async def status(reader: asyncio.StreamReader) -> int:
        return (await answer_of(reader))[0]

    answers = [asyncio.create_task(status(reader)) for reader, _ in connections]
    yield answers
    for _, writer in connections:
        writer.close()
    await asyncio.gather(*answers, return_exceptions=True)


async def some_are_refused(answers: Sequence[asyncio.Task[int]]) -> None:
    done, _ = await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
    assert {answer.result() for answer in done} == {503}


async def status_of(client: IngestClient, secret: str) -> int:
    return (await client.post({"text": "a", "source_ref": str(uuid4())}, secret=secret)).status_code


async def test_bodies_that_are_only_announced_hold_nothing(seeded_database: Database) -> None:
    async with (
        opened(seeded_database) as client,
        sending(client, *[unsigned() + b"{"] * 130, *[head(f"Content-Length: {LIMIT}") + b"{"] * 130),
    ):
        assert [await status_of(client, DEMO), await status_of(client, SHOP)] == [202, 202]


async def test_what_strangers_send_fills_their_own_share(seeded_database: Database) -> None:
    async with (
        opened(seeded_database, settings={"body_memory": 4 * LIMIT}) as client,
        sending(client, *[unsigned() + NEARLY] * 20) as answers,
    ):
        await some_are_refused(answers)

        assert [await status_of(client, DEMO), await status_of(client, SHOP)] == [202, 202]
        assert await client.sql("SELECT count(*) FROM events WHERE action = 'ingress_rate_limited'") == 0


async def test_what_a_workspace_sends_fills_its_own_share_and_is_told(seeded_database: Database) -> None:
    async with opened(seeded_database, settings={"body_memory": 4 * LIMIT}) as client:
        async with sending(client, *[head(f"Content-Length: {LIMIT}") + NEARLY] * 20) as answers:
            await some_are_refused(answers)

            assert await status_of(client, SHOP) == 202
            assert await eventually(lambda: client.sql(REFUSED))
            assert await client.sql("SELECT count(*) FROM ingest_runs WHERE stats_json ? 'failed'") == 0

        async def has_room_again() -> bool:
            return await status_of(client, DEMO) == 202

        await eventually(has_room_again)


async def test_a_burst_of_one_workspace_leaves_others_served(seeded_database: Database) -> None:
    await seeded_database.pool.execute("UPDATE workspace_endpoints SET ingress_rps = NULL")
    async with (
        opened(seeded_database, settings={"requests_per_workspace": 10}) as client,
        sending(client, *[head(f"Content-Length: {LIMIT}") + b"{"] * 100) as answers,
    ):
        await eventually(lambda: sum(answer.done() for answer in answers) == 90)
        before = await client.rows()

        refused = await client.post({"text": "a"})
        served = await asyncio.gather(*(status_of(client, SHOP) for _ in range(10)))
        still_open = sum(not answer.done() for answer in answers)

        assert before == dict.fromkeys(TABLES, 0)
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert served == [202] * 10
        assert still_open == 10  # who was kept waiting would be served when these have ended
        assert (await client.try_out({"text": "a"})).status_code == 503


def test_a_body_alone_may_be_larger_than_a_share() -> None:
    quota, one = MemoryQuota(100), tenant(WorkspaceId(uuid4()))
    first, second = HeldBytes(one), HeldBytes(one)

    quota.acquire(first, 90)
    with pytest.raises(AtCapacity):
        quota.acquire(second, 1)
    quota.release(first)
    quota.acquire(second, 90)

    with pytest.raises(AtCapacity):  # the memory is the end of all quota
        quota.acquire(HeldBytes(tenant(WorkspaceId(uuid4()))), 11)


def test_the_shares_of_strangers_of_an_endpoint_and_of_its_workspace_are_apart() -> None:
    quota = MemoryQuota(80)
    for holder in (UNAUTHENTICATED, unverified(EndpointId(uuid4())), tenant(WorkspaceId(uuid4()))):
        quota.acquire(HeldBytes(holder), 1)
        quota.acquire(HeldBytes(holder), 9)

        with pytest.raises(AtCapacity):
            quota.acquire(HeldBytes(holder), 11)


async def test_places_are_given_back_however_a_request_ends() -> None:
    admission = Admission(AsyncMock(), timedelta(seconds=1), parser=Offload(), requests_per_workspace=1).silent()
    request: Any = None
    endpoint = Endpoint(
        workspace_id=WorkspaceId(uuid4()),
        endpoint_id=EndpointId(uuid4()),
        workspace_status="active",
        max_payload_bytes=LIMIT,
    )

    for _ in range(3):
        with pytest.raises(ValueError, match="ended"):
            async with admission.accounted(request, endpoint):
                raise ValueError("ended")

    async with admission.accounted(request, endpoint):
        with pytest.raises(AtCapacity):
            async with admission.accounted(request, endpoint):
                raise AssertionError("there is no place for two")
