"""What a platform answered when a send did not end well lies in the store, and its event says where."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from autopost_contracts.outcomes import Failed, Scope
from autopost_contracts.plan import Plan, TextPart
from autopost_dispatcher.commit.finished import FinishedDelivery
from autopost_dispatcher.dispatch import Dispatch
from autopost_dispatcher.send.raw_answers import RawAnswers
from autopost_runtime.storage.objects import open_objects
from autopost_runtime.storage.payloads import HURRIED, PATIENCE, Payloads
from autopost_runtime.telemetry import metrics
from dispatcher.support.running_dispatcher import NOWHERE, TOKENS, RunningDispatchers, configured, running_dispatcher
from dispatcher.support.sample_claims import job
from harness.buckets import Bucket
from harness.databases import Database
from harness.eventually import eventually
from msgspec.structs import replace

IMPATIENT = {"provider_timeout": timedelta(seconds=3), "sending_lease": timedelta(seconds=40)}
PLENTY = timedelta(minutes=1)
PHONE, MAIL = "+7 900 123-45-67", "ann@example.com"
TELLING = f"Bad Request: {PHONE} and {MAIL} for {TOKENS['telegram']} or {TOKENS['max']}"
FAULTS: dict[str, tuple[dict[str, Any], str | None]] = {
    "refused": ({"status": 400, "description": TELLING}, "Bad Request"),
    "rate limited": ({"status": 429, "retry_after": 60, "description": "too many requests"}, "too many requests"),
    "server error": ({"html": 500}, "<html>"),
    "garbage": ({"garbage": True}, ""),
    "hanging": ({"hang": True}, None),
}


async def failures(stage: RunningDispatchers) -> list[dict[str, Any]]:
    rows = await stage.tenant.db.fetch(
        "SELECT action::text, attempt, error::text, payload_ref, delivery_id FROM events WHERE result = 'error' "
        "AND delivery_id IS NOT NULL ORDER BY seq"
    )
    return [dict(row) for row in rows]


async def stored(bucket: Bucket) -> dict[str, dict[str, Any]]:
    async with open_objects(configured(NOWHERE, "http://nowhere", bucket)) as objects:
        return {one.key: json.loads(await objects.get(one.key)) async for one in objects.listed("")}


@pytest.fixture
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a store that answers, however slowly."""
    monkeypatch.setattr("autopost_dispatcher.send.raw_answers.PATIENCE", PLENTY)
    monkeypatch.setattr("autopost_dispatcher.send.raw_answers.HURRIED", PLENTY)


async def fail_once(database: Database, stage: RunningDispatchers, bucket: Bucket | None) -> dict[str, Any]:
    """The event of the first failure."""
    await stage.enqueue(Plan(version=2, platform="telegram", parts=(TextPart(text="post"),)))
    async with running_dispatcher(configured(database.url, stage.simulator, bucket)):
        await eventually(lambda: failures(stage), within=PLENTY)
    return (await failures(stage))[0]


@pytest.mark.usefixtures("_patient")
@pytest.mark.parametrize("platform", ["telegram", "max"])
@pytest.mark.parametrize("fault", FAULTS)
async def test_every_failure_has_a_reference_to_its_raw_answer(
    database: Database, stage: RunningDispatchers, platform: str, fault: str
) -> None:
    effect, words = FAULTS[fault]
    if (platform, fault) == ("max", "refused"):  # its 400 without a name of its own is one that passes
        effect = effect | {"status": 403}
    [chat] = await stage.channels(platform, 1)
    await stage.control("faults", {"platform": platform, "chat": int(chat), "times": 1, "effect": effect})
    await stage.enqueue(Plan(version=2, platform=platform, parts=(TextPart(text="post"),)))

    limits = IMPATIENT if fault == "hanging" else {}
    async with running_dispatcher(configured(database.url, stage.simulator, stage.bucket, **limits)):
        [event] = await eventually(lambda: failures(stage), within=PLENTY)

    [(key, found)] = (await stored(stage.bucket)).items()
    error = json.loads(event["error"])
    assert event["payload_ref"] == key
    assert key.startswith(f"{stage.tenant.workspace}/payloads/")
    assert (found["service"], found["kind"]) == ("dispatcher", "provider_answer")
    assert (found["about"]["delivery_id"], found["about"]["code"]) == (str(event["delivery_id"]), error["code"])
    assert found["body"] is None if words is None else words in found["body"]
    assert found["status"] == (None if words is None else effect.get("status") or effect.get("html") or 200)
    assert TOKENS[platform].rpartition(":")[2] not in json.dumps(found)


@pytest.mark.usefixtures("_patient")
async def test_personal_data_is_in_the_payload_only(database: Database, stage: RunningDispatchers) -> None:
    [chat] = await stage.channels("telegram", 1)
    await stage.control("faults", {"chat": int(chat), "effect": FAULTS["refused"][0]})

    event = await fail_once(database, stage, stage.bucket)

    [found] = (await stored(stage.bucket)).values()
    rows = await stage.tenant.db.fetch("SELECT last_error::text FROM deliveries")
    assert all(person in found["body"] for person in (PHONE, MAIL))
    for told in (event["error"], rows[0]["last_error"]):
        assert "Bad Request: *** and *** for ***" in told
        assert not any(person in told for person in (PHONE, MAIL))


async def test_a_success_stores_no_raw_answer(database: Database, stage: RunningDispatchers) -> None:
    await stage.channels("telegram", 1)
    await stage.enqueue(Plan(version=2, platform="telegram", parts=(TextPart(text="post"),)))

    async with running_dispatcher(configured(database.url, stage.simulator, stage.bucket)):
        assert await stage.settled() == {"sent": 1}

    assert await stored(stage.bucket) == {}


async def test_a_failure_without_a_platform_answer_stores_nothing(
    database: Database, stage: RunningDispatchers
) -> None:
    await stage.channels("telegram", 1)
    await stage.tenant.db.execute("UPDATE channels SET auth_ref = 'nobody'")

    event = await fail_once(database, stage, stage.bucket)

    assert (event["action"], event["payload_ref"]) == ("failed_permanent", None)
    assert await stored(stage.bucket) == {}


async def test_without_a_store_the_delivery_ends_as_it_would(database: Database, stage: RunningDispatchers) -> None:
    [chat] = await stage.channels("telegram", 1)
    await stage.control("faults", {"chat": int(chat), "effect": {"status": 400, "description": "chat not found"}})

    event = await fail_once(database, stage, None)

    assert (event["action"], event["payload_ref"]) == ("failed_permanent", None)


@pytest.mark.parametrize("hangs", [True, False], ids=["hanging", "gone"])
async def test_a_store_that_is_away_changes_no_outcome_and_delays_it_only_so_long(
    database: Database, stage: RunningDispatchers, hangs: bool
) -> None:
    [chat] = await stage.channels("telegram", 1)
    await stage.control("faults", {"chat": int(chat), "effect": {"status": 400, "description": "chat not found"}})
    metrics.forget()

    async with silent_port(hangs) as port:
        bucket = Bucket(endpoint=f"http://127.0.0.1:{port}", access_key="a", secret_key="b", bucket="none")
        event = await fail_once(database, stage, bucket)

    took = await stage.tenant.db.fetchval(
        "SELECT max(ts) FILTER (WHERE result = 'error') - min(ts) FILTER (WHERE action = 'send_attempt') FROM events"
    )
    assert (event["action"], json.loads(event["error"])["code"]) == ("failed_permanent", "chat_not_found")
    assert event["payload_ref"] is None
    assert took < PATIENCE + timedelta(seconds=15)  # the store's own client would wait for thirty seconds
    assert b'autopost_payloads_total{kind="provider_answer",stored="False"} 1.0' in metrics.render()


@pytest.mark.usefixtures("_patient")
async def test_a_stop_while_an_answer_is_stored_still_commits_the_outcome() -> None:
    """Not as a doubt: what the platform said is known. And at once, however patient one is with the store."""
    refused = replace(Failed.permanent(Scope.DELIVERY, "message_too_long"), raw={"status": 400, "body": "x"})
    ledger, store = Ledger(), Hanging()
    dispatch = Dispatch(
        Refused(refused), RawAnswers(Payloads(store, "dispatcher")), ledger, concurrency=5, claim_limit=0
    )  # type: ignore[arg-type]

    dispatch.take([job()])
    await store.asked.wait()
    started = time.monotonic()
    await dispatch.drain(timedelta(milliseconds=10))

    assert [ended.outcome for ended in ledger.ended] == [refused]
    assert time.monotonic() - started < PLENTY.total_seconds() / 2


async def test_what_was_kept_does_not_wait_for_the_database_as_well() -> None:
    """Thousands of answers may, while it is away."""
    answered = {"status": 400, "snippet": "x", "body": "x", "headers": {"server": "x"}, "size": 1}
    refused = replace(Failed.permanent(Scope.DELIVERY, "message_too_long"), raw=answered)
    ledger = Ledger()
    dispatch = Dispatch(
        Refused(refused), RawAnswers(Payloads(None, "dispatcher")), ledger, concurrency=5, claim_limit=0
    )  # type: ignore[arg-type]

    dispatch.take([job()])
    [ended] = await eventually(lambda: ledger.ended)

    assert ended.outcome == replace(refused, raw={"status": 400, "snippet": "x"})


@pytest.mark.parametrize(("retry_after_ms", "within"), [(None, PATIENCE), (1000, HURRIED)])
async def test_a_retry_after_is_committed_without_a_long_wait_for_the_store(
    retry_after_ms: int | None, within: timedelta
) -> None:
    asked: list[timedelta] = []

    class Asked(Payloads):
        async def keep(self, *_: Any, within: timedelta, **__: Any) -> None:
            asked.append(within)

    limited = Failed.transient(Scope.PLATFORM, "rate_limited", retry_after_ms=retry_after_ms, raw={"status": 429})
    await RawAnswers(Asked(None, "dispatcher")).keep(job().claim, limited)

    assert asked == [within]


class Refused:
    def __init__(self, outcome: Failed) -> None:
        self._outcome = outcome

    async def deliver(self, _: object) -> Failed:
        return self._outcome


class Ledger:
    waiting = 0

    def __init__(self) -> None:
        self.ended: list[FinishedDelivery] = []

    def put(self, ended: FinishedDelivery) -> None:
        self.ended.append(ended)

    def try_again(self) -> None:
        pass

    async def flush(self) -> None:
        pass


class Hanging:
    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def put(self, *_: object, **__: object) -> None:
        self.asked.set()
        await asyncio.Event().wait()


@asynccontextmanager
async def silent_port(hangs: bool) -> AsyncIterator[int]:
    """Where somebody listens and never answers, or nobody listens."""

    async def ignore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(ignore, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    if not hangs:
        server.close()
    try:
        yield port
    finally:
        server.close()
