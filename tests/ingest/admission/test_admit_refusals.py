"""Every refusal leaves its event and its count, none leaves a message, and no count waits for ever."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from autopost_ingest.admission.refusals import FAILURES_KEPT, Refusals
from autopost_ingest.gateway import Endpoint
from autopost_runtime.http.rate_limit import RateLimiter
from autopost_runtime.telemetry import metrics
from harness.databases import Database
from harness.eventually import eventually
from ingest.support.ingest_client import DEMO, DEMO_WORKSPACE, SHOP, SHOP_WORKSPACE, TABLES
from ingest.support.ingest_server import RawIngestClient, opened

EVENTS = (
    "SELECT jsonb_object_agg(action, n) FROM (SELECT action, sum((meta ->> 'count')::int) AS n FROM events "
    "WHERE action::text LIKE 'ingress%' GROUP BY 1) e"
)
COUNTS = (
    "SELECT jsonb_object_agg(key, n) FROM (SELECT key, sum(value::int) AS n FROM ingest_runs, "
    "jsonb_each_text(stats_json) WHERE finished_at IS NOT NULL GROUP BY 1) c"
)
ONE_A_SECOND = (
    "SELECT count(*) <= 2 + extract(epoch FROM max(ts) - min(ts)) FROM events WHERE action = $1::text::event_action"
)
UNFINISHED = "SELECT count(*) FROM ingest_runs WHERE finished_at IS NULL"


PLENTY = timedelta(seconds=30)


@pytest.fixture
async def client(seeded_database: Database) -> AsyncIterator[RawIngestClient]:
    async with opened(seeded_database, timers=True) as client:
        yield client


@pytest.mark.parametrize(
    ("options", "status", "event", "counter", "code"),
    [
        ({"content": b" " * 300_000}, 413, "ingress_payload_rejected", "payload_rejected", "content_too_large"),
        (
            {"content": b"x", "headers": {"Content-Encoding": "gzip"}},
            *(415, "ingress_payload_rejected", "payload_rejected", "unsupported_media_type"),
        ),
        ({"content": b"{"}, 400, "ingress_payload_rejected", "payload_rejected", "malformed"),
        ({"params": {"x": "1"}, "content": b"{}"}, 400, "ingress_payload_rejected", "payload_rejected", "malformed"),
        ({"content": b"{}"}, 422, "ingress_payload_rejected", "payload_rejected", "unprocessable"),
    ],
    ids=["too large", "encoded", "no JSON", "unknown parameter", "makes no sense"],
)
async def test_a_refused_request_leaves_its_event_and_its_count_and_nothing_else(
    client: RawIngestClient, options: dict[str, Any], status: int, event: str, counter: str, code: str
) -> None:
    answer = await client.post(**options)

    assert answer.status_code == status
    assert await client.sql(EVENTS) == f'{{"{event}": 1}}'
    assert await client.sql("SELECT error ->> 'code' FROM events") == code
    assert await client.sql(COUNTS) == f'{{"{counter}": 1}}'
    assert await client.rows() == dict.fromkeys(TABLES, 0)


async def test_a_paused_workspace_is_told_of(client: RawIngestClient) -> None:
    await client.sql("UPDATE workspaces SET status = 'paused'")

    answer = await client.post()

    assert answer.status_code == 503
    assert await client.sql("SELECT error ->> 'code' FROM events") == "workspace_paused"
    assert (await client.sql(EVENTS), await client.sql(COUNTS)) == ('{"ingress_config_error": 1}', '{"skipped": 1}')
    assert await client.rows() == dict.fromkeys(TABLES, 0)


async def test_a_disabled_workspace_keeps_nothing_at_all(client: RawIngestClient) -> None:
    await client.sql("UPDATE workspaces SET status = 'disabled'")

    answer = await client.post()

    assert answer.status_code == 403
    for table in (*TABLES, "ingest_runs", "events", "ingress_gates"):
        assert await client.sql(f"SELECT count(*) FROM {table}") == 0


async def test_a_stranger_leaves_nothing_at_all(client: RawIngestClient) -> None:
    await asyncio.gather(*(client.post(secret="wrong") for _ in range(20)))

    for table in (*TABLES, "ingest_runs", "events", "ingress_gates"):
        assert await client.sql(f"SELECT count(*) FROM {table}") == 0


async def test_the_last_refusals_of_a_burst_are_told_although_none_follows(client: RawIngestClient) -> None:
    answers = await asyncio.gather(*(client.post(content=b"{") for _ in range(30)))
    assert [answer.status_code for answer in answers] == [400] * 30

    async def all_told() -> bool:
        return await client.sql(COUNTS) == '{"payload_rejected": 30}'

    await eventually(all_told, within=PLENTY)
    assert await client.sql(EVENTS) == '{"ingress_payload_rejected": 30}'
    assert await client.sql(ONE_A_SECOND, "ingress_payload_rejected")


async def test_refusals_counted_in_the_database_are_told_too_although_none_follows(client: RawIngestClient) -> None:
    answers = await asyncio.gather(*(client.post({"text": "same"}) for _ in range(30)))
    assert sorted(answer.status_code for answer in answers) == [200] * 29 + [202]

    async def all_told() -> bool:
        return await client.sql("SELECT sum((stats_json ->> 'dedup_dropped')::int) FROM ingest_runs") == 29

    await eventually(all_told, within=PLENTY)
    assert await client.sql(EVENTS) == '{"ingress_dedup_dropped": 29}'
    assert await client.sql(ONE_A_SECOND, "ingress_dedup_dropped")


async def test_every_request_of_a_burst_over_the_rate_is_in_some_run(client: RawIngestClient) -> None:
    began = time.monotonic()
    answers = await asyncio.gather(*(client.post({"text": str(n)}, secret=SHOP) for n in range(40)))
    took = time.monotonic() - began
    refused = [answer for answer in answers if answer.status_code == 429]
    assert 40 - 5 * (1 + took) - 1 <= len(refused) <= 35
    assert all(int(answer.headers["Retry-After"]) >= 1 for answer in refused)

    async def all_told() -> bool:
        counted = "SELECT sum(coalesce((stats_json ->> 'rate_limited')::int, (stats_json ->> 'accepted')::int))"
        return await client.sql(f"{counted} FROM ingest_runs") == 40

    await eventually(all_told, within=PLENTY)
    assert await client.sql(EVENTS) == f'{{"ingress_rate_limited": {len(refused)}}}'
    assert await client.sql(UNFINISHED) == 0


async def test_what_could_not_be_told_is_told_when_the_database_is_back(client: RawIngestClient) -> None:
    await client.sql(
        "ALTER FUNCTION refuse_ingress(uuid,uuid,text,event_action,text,jsonb,text,bigint) RENAME TO hidden"
    )
    await client.sql(
        "CREATE FUNCTION refuse_ingress(uuid,uuid,text,event_action,text,jsonb,text,bigint) RETURNS void "
        "LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'away' USING ERRCODE = '57P03'; END $$"
    )
    await client.sql("GRANT EXECUTE ON FUNCTION refuse_ingress TO autopost_ingest")
    answers = [await client.post(content=b"{") for _ in range(3)]
    await client.sql("DROP FUNCTION refuse_ingress")
    await client.sql("ALTER FUNCTION hidden RENAME TO refuse_ingress")

    async def told() -> bool:
        return await client.sql(COUNTS) == '{"payload_rejected": 3}'

    assert [answer.status_code for answer in answers] == [400] * 3
    await eventually(told, within=PLENTY)


async def test_refusals_of_an_endpoint_that_is_deleted_meanwhile_keep_no_other_from_being_told(
    client: RawIngestClient,
) -> None:
    await client.post(content=b"{")  # it is remembered from here on
    await client.sql("DELETE FROM workspace_endpoints WHERE secret_hash = encode(sha256($1), 'hex')", DEMO.encode())
    deleted = [await client.post(content=b"{") for _ in range(3)]

    others = [await client.post(content=b"{", secret=SHOP) for _ in range(3)]

    async def all_told() -> bool:
        told = "SELECT sum((stats_json ->> 'payload_rejected')::int) FROM ingest_runs WHERE workspace_id = $1"
        return await client.sql(told, SHOP_WORKSPACE) == 3

    assert [answer.status_code for answer in (*deleted, *others)] == [400] * 6
    await eventually(all_told, within=PLENTY)


FAILING = """
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '{code}'; END $$;
CREATE TRIGGER fail BEFORE INSERT ON {table} FOR EACH STATEMENT EXECUTE FUNCTION fail();
"""


@pytest.mark.parametrize("table", ["messages", "renderings", "deliveries"])
async def test_a_request_that_failed_after_its_receipt_is_accepted_when_it_comes_again(
    client: RawIngestClient, seeded_database: Database, table: str
) -> None:
    post = {"text": "again", "source_ref": "42"}
    await seeded_database.pool.execute(FAILING.format(code="55P03", table=table))
    failed = await client.post(post)
    left = await client.rows()
    await client.sql(f"DROP TRIGGER fail ON {table}")

    again = await client.post(post)

    assert (failed.status_code, failed.headers["Retry-After"]) == (503, "2")
    assert left == dict.fromkeys(TABLES, 0)
    assert (again.status_code, again.json()["channels"]["enqueued"]) == (202, 40)


@pytest.mark.parametrize(("code", "status"), [("55P03", 503), ("53100", 503), ("25006", 503), ("22012", 500)])
async def test_a_request_that_failed_leaves_a_finished_run_that_says_so(
    client: RawIngestClient, seeded_database: Database, code: str, status: int
) -> None:
    await seeded_database.pool.execute(FAILING.format(code=code, table="messages"))

    answer = await client.post({"text": "a"})

    run = "SELECT stats_json ->> 'code' FROM ingest_runs WHERE finished_at IS NOT NULL"
    assert answer.status_code == status
    assert await eventually(lambda: client.sql(run)) == code
    assert await client.sql(UNFINISHED) == 0


def test_failures_that_no_run_will_tell_of_are_counted() -> None:
    refusals = Refusals(None, None)  # type: ignore[arg-type]
    before = _forgotten()

    for _ in range(FAILURES_KEPT + 3):
        refusals.fail(_endpoint(None), "away")

    assert _forgotten() - before == 3


def _forgotten() -> float:
    found = re.findall(r"^autopost_ingress_failures_forgotten_total (\S+)$", metrics.render().decode(), re.MULTILINE)
    return float(found[0]) if found else 0


def _endpoint(rate: float | None) -> Endpoint:
    fields: dict[str, Any] = {"workspace_id": DEMO_WORKSPACE, "endpoint_id": UUID(int=1)}
    return Endpoint(**fields, workspace_status="active", max_payload_bytes=1, ingress_rps=rate)


class SlowClock:
    """A microsecond passes from one look to the next, whatever the machine does."""

    now = 1000.0

    def monotonic(self) -> float:
        self.now += 0.000_001
        return self.now


def test_the_local_bucket_lets_a_second_of_the_rate_through_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autopost_runtime.http.rate_limit.time", SlowClock())
    limiter = RateLimiter()

    waits = [limiter.acquire(_endpoint(5)) for _ in range(20)]

    assert waits[:5] == [None] * 5
    assert all(wait is not None and timedelta() < wait <= timedelta(seconds=0.2) for wait in waits[5:])


@pytest.mark.parametrize("rate", [None, 0])
def test_without_a_rate_the_local_bucket_lets_everything_through(rate: float | None) -> None:
    limiter = RateLimiter()

    assert {limiter.acquire(_endpoint(rate)) for _ in range(10_000)} == {None}


async def test_what_the_local_bucket_refuses_never_asks_the_shared_gate(client: RawIngestClient) -> None:
    await client.sql(
        "UPDATE workspace_endpoints SET ingress_rps = 0.01 WHERE secret_hash = encode(sha256($1), 'hex')", DEMO.encode()
    )
    first = await client.post({"text": "a"})
    moved = await client.sql("SELECT full_until FROM ingress_gates")

    again = await client.post({"text": "b"})

    assert (first.status_code, again.status_code) == (202, 429)
    assert await client.sql("SELECT full_until FROM ingress_gates") == moved


async def test_a_new_secret_that_was_tried_too_early_works_when_the_miss_is_forgotten(client: RawIngestClient) -> None:
    early = await client.post(secret="new")
    await client.sql(
        "INSERT INTO workspace_endpoints (workspace_id, kind, secret_hash) "
        "VALUES ($1, 'webhook_push', encode(sha256('new'), 'hex'))",
        DEMO_WORKSPACE,
    )

    async def works() -> bool:
        return (await client.post(secret="new")).status_code == 202

    assert early.status_code == 401
    await eventually(works)


async def test_a_secret_disabled_a_moment_ago_posts_nothing_and_is_answered_like_a_wrong_one(
    client: RawIngestClient,
) -> None:
    """The endpoint is still remembered as it was; the database decides."""
    await client.post({"text": "a"})
    before = await client.rows()
    await client.sql("UPDATE workspace_endpoints SET enabled = false")

    remembered, wrong = await client.post({"text": "b"}), await client.post({"text": "b"}, secret="wrong")

    words = ("status", "title", "detail")
    assert [remembered.json()[name] for name in words] == [wrong.json()[name] for name in words]
    assert (remembered.status_code, await client.rows()) == (401, before)
    assert await client.sql("SELECT count(*) FROM ingest_runs") == 1


Condition = Callable[[], Any]


async def test_a_secret_rotates_under_load_without_a_lost_request(client: RawIngestClient) -> None:
    new, statuses, secrets = "the-new-secret-of-the-demo-endpoint", [], {"use": DEMO}
    stop = asyncio.Event()

    async def send(sender: int) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            post = {"text": f"{sender} {number}", "source_ref": f"{sender}-{number}"}
            statuses.append((await client.post(post, secret=secrets["use"])).status_code)

    def sent(more: int) -> Condition:
        goal = len(statuses) + more
        return lambda: len(statuses) >= goal

    senders = [asyncio.create_task(send(sender)) for sender in range(4)]
    await eventually(sent(20))
    await client.sql(
        "INSERT INTO workspace_endpoints (workspace_id, kind, secret_hash, ingress_rps) "
        "VALUES ($1, 'webhook_push', encode(sha256($2), 'hex'), NULL)",
        *(DEMO_WORKSPACE, new.encode()),
    )
    await eventually(sent(20))
    secrets["use"] = new
    await eventually(sent(20))
    await client.sql(
        "UPDATE workspace_endpoints SET enabled = false WHERE secret_hash = encode(sha256($1), 'hex')", DEMO.encode()
    )
    await eventually(sent(20))
    stop.set()
    await asyncio.gather(*senders)

    assert set(statuses) == {202}
    assert (await client.rows())["messages"] == len(statuses)

    async def old_is_over() -> bool:
        return (await client.post({"text": "late"}, secret=DEMO)).status_code == 401

    await eventually(old_is_over)
