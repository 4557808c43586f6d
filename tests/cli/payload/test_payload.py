"""`autopost payload get`: a link that works for a while and for anybody, and an event that says who asked and why."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from autopost_runtime.config.load import Secret, ServiceConfig
from autopost_runtime.storage.objects import Objects, open_objects
from autopost_runtime.storage.payloads import Payload, Payloads
from db.support.builders import Tenant, permanent
from harness.autopost_command import Autopost
from harness.buckets import Bucket
from harness.databases import Database
from harness.eventually import eventually
from harness.http_client import http_client

SIGNED = ("--operator", "ann", "--reason", "ticket 7")
PLENTY = timedelta(seconds=30)
BODY = "chat not found, says +7 900 123-45-67"


@pytest.fixture
async def tenant(database: Database) -> Tenant:
    return await Tenant.create(database.pool)


@pytest.fixture
async def objects(s3: Bucket) -> AsyncIterator[Objects]:
    config = ServiceConfig(
        database_url="postgresql://nowhere/none",
        s3_endpoint=s3.endpoint,
        s3_bucket=s3.bucket,
        s3_access_key=Secret(s3.access_key),
        s3_secret_key=Secret(s3.secret_key),
    )
    async with open_objects(config) as objects:
        yield objects


@pytest.fixture
def autopost(database: Database, tenant: Tenant, s3: Bucket) -> Autopost:
    return Autopost(
        database.url,
        AUTOPOST_S3_ENDPOINT=s3.endpoint,
        AUTOPOST_S3_BUCKET=s3.bucket,
        AUTOPOST_S3_ACCESS_KEY=s3.access_key,
        AUTOPOST_S3_SECRET_KEY=s3.secret_key,
    )


@pytest.fixture
async def ref(tenant: Tenant, objects: Objects) -> str:
    """Of a delivery that failed."""
    payload = Payload(kind="provider_answer", about={}, status=400, body=BODY, size=len(BODY))
    kept = await Payloads(objects, "dispatcher").keep(tenant.workspace, payload, within=PLENTY)
    assert kept is not None
    await failed(tenant, kept)
    return kept


async def failed(tenant: Tenant, ref: str | None) -> UUID:
    await tenant.channel()
    await tenant.enqueue()
    await tenant.commit(*(permanent(claim, code="x", payload_ref=ref) for claim in await tenant.claim()))
    event: UUID = (await tenant.events("failed_permanent"))[-1]["id"]
    return event


async def accesses(tenant: Tenant) -> list[tuple[str, str, str]]:
    """Payload, operator and reason of each."""
    found = [(event["payload_ref"], json.loads(event["meta"])) for event in await tenant.events("payload_accessed")]
    return [(ref, meta["operator"], meta["reason"]) for ref, meta in found]


async def test_the_link_opens_without_credentials_and_the_event_says_who_and_why(
    autopost: Autopost, tenant: Tenant, ref: str
) -> None:
    ran = await autopost("payload", "get", ref, *SIGNED)

    async with http_client() as http:
        answer = await http.get(ran.out.strip())
    assert (ran.code, answer.status_code, answer.json()["body"]) == (0, 200, BODY)
    assert "The link works until" in ran.err
    assert await accesses(tenant) == [(ref, "ann", "ticket 7")]


@pytest.mark.parametrize("more", [(), ("--print",), ("--json",)])
async def test_nothing_is_shown_when_the_access_cannot_be_written_down(
    autopost: Autopost, tenant: Tenant, ref: str, more: tuple[str, ...]
) -> None:
    await tenant.db.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'the disk is full'; END $$"
    )
    await tenant.db.execute(
        "CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON events DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION refuse()"
    )

    ran = await autopost("payload", "get", ref, *SIGNED, *more)

    assert (ran.code, ran.out) == (1, "")
    assert "the disk is full" in ran.err


async def test_the_link_stops_working_after_its_time(autopost: Autopost, ref: str) -> None:
    ran = await autopost("payload", "get", ref, *SIGNED, "--expires", "6s", "--json")

    async with http_client() as http:
        fresh = await http.get(ran.json["url"])

        async def is_over() -> bool:
            return "AccessDenied" in (await http.get(ran.json["url"])).text

        await eventually(is_over, within=timedelta(seconds=30))
        unsigned = await http.get(ran.json["url"].partition("?")[0])
    assert (fresh.status_code, fresh.json()["body"]) == (200, BODY)
    assert BODY not in unsigned.text


async def test_an_event_leads_to_its_payload_which_can_be_printed(autopost: Autopost, tenant: Tenant, ref: str) -> None:
    [event] = await tenant.events("failed_permanent")

    printed = await autopost("payload", "get", event["id"], *SIGNED, "--print")
    as_json = await autopost("payload", "get", event["id"], *SIGNED, "--print", "--json")

    assert (printed.code, printed.json["body"]) == (0, BODY)
    assert (as_json.json["payload_ref"], as_json.json["payload"]["status"]) == (ref, 400)
    assert "url" not in as_json.json
    assert len(await accesses(tenant)) == 2


async def test_a_dry_run_shows_nothing_and_notes_nothing(autopost: Autopost, tenant: Tenant, ref: str) -> None:
    words = ("payload", "get", ref, *SIGNED, "--dry-run")

    runs = [await autopost(*words, *more) for more in ((), ("--json",), ("--print",), ("--print", "--json"))]

    assert [ran.code for ran in runs] == [0] * 4
    assert not any("X-Amz-Signature" in ran.out or BODY in ran.out for ran in runs)
    assert await accesses(tenant) == []


@pytest.mark.parametrize("reason", [(), ("--reason", " ")], ids=["none", "empty"])
async def test_without_a_reason_nothing_is_given(
    autopost: Autopost, tenant: Tenant, ref: str, reason: tuple[str, ...]
) -> None:
    ran = await autopost("payload", "get", ref, "--operator", "ann", *reason)

    assert (ran.code, ran.out) == (2, "")
    assert "--reason" in ran.err
    assert await accesses(tenant) == []


async def test_what_is_not_there_is_refused_in_words(
    autopost: Autopost, tenant: Tenant, objects: Objects, ref: str
) -> None:
    await objects.delete(ref)
    nothing_stored = await failed(tenant, None)
    asked = {ref: "payload was deleted", str(nothing_stored): "no payload was stored", str(uuid4()): "no failure"}
    asked |= {f"{uuid4()}/payloads/2026/11/16/x": "no failure", f"{tenant.workspace}/media/x": "no failure"}

    for meant, words in asked.items():
        for more in ((), ("--print",)):
            ran = await autopost("payload", "get", meant, *SIGNED, *more)

            assert (ran.code, ran.out) == (1, ""), meant
            assert words in ran.err
    assert await accesses(tenant) == []


async def test_a_link_cannot_be_made_to_last(autopost: Autopost, tenant: Tenant, ref: str) -> None:
    ran = await autopost("payload", "get", ref, *SIGNED, "--expires", "2h")

    assert (ran.code, ran.out) == (2, "")
    assert "--expires" in ran.err
    assert await accesses(tenant) == []


@pytest.mark.parametrize(
    ("env", "code", "words"),
    [
        ({"AUTOPOST_S3_ENDPOINT": None}, 2, "AUTOPOST_S3_ENDPOINT"),
        ({"AUTOPOST_S3_ENDPOINT": "nowhere"}, 2, "AUTOPOST_S3_ENDPOINT"),
        ({"AUTOPOST_S3_ENDPOINT": "http://127.0.0.1:1"}, 1, "check AUTOPOST_S3_ENDPOINT"),
        ({"AUTOPOST_S3_SECRET_KEY": "wrong"}, 1, "cannot read from the object store"),
    ],
    ids=["not said", "no address", "away", "wrong key"],
)
async def test_without_the_store_nothing_is_noted(
    autopost: Autopost, tenant: Tenant, ref: str, env: dict[str, str | None], code: int, words: str
) -> None:
    autopost.env |= env

    ran = await autopost("payload", "get", ref, *SIGNED)

    assert (ran.code, ran.out) == (code, "")
    assert words in ran.err
    assert await accesses(tenant) == []


async def test_a_reader_is_refused(autopost: Autopost, database: Database, tenant: Tenant, ref: str) -> None:
    reader = f"reader_{uuid4().hex[:8]}"
    await database.pool.execute(f"CREATE ROLE {reader} LOGIN IN ROLE autopost_reader")
    autopost.env["AUTOPOST_DATABASE_URL"] = database.url.replace("postgres@", f"{reader}@", 1)

    try:
        ran = await autopost("payload", "get", ref, *SIGNED)
    finally:
        await database.pool.execute(f"DROP ROLE {reader}")

    assert (ran.code, ran.out) == (1, "")
    assert "permission denied" in ran.err
    assert await accesses(tenant) == []


async def test_verify_is_content_with_what_was_read(autopost: Autopost, ref: str) -> None:
    await autopost("payload", "get", ref, *SIGNED)

    ran = await autopost("verify", "--no-stream", "--json")

    assert ran.code == 0, ran.out
