"""Raw payloads in the events: where they lie, and who has read them."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from db.ingress.test_refuse_ingress import SECOND
from db.support.builders import Tenant, permanent
from db.support.senders import Sender, make_sender
from harness.databases import Database

NOTE = "SELECT note_payload_access($1, $2, $3, $4, $5)"


async def failed(tenant: Tenant, ref: str | None) -> UUID:
    """The event of a delivery that failed."""
    await tenant.channel()
    await tenant.enqueue()
    [claim] = await tenant.claim()
    await tenant.commit(permanent(claim, code="x", payload_ref=ref))
    [event] = await tenant.events("failed_permanent")
    found: UUID = event["id"]
    return found


def ref_in(tenant: Tenant, day: str = "") -> str:
    return f"{tenant.workspace}/payloads/{day or today()}/{uuid4()}"


def today() -> str:
    return f"{datetime.now(UTC):%Y/%m/%d}"


async def note(tenant: Tenant, ref: object, lifetime: timedelta | None = timedelta(minutes=5)) -> dict[str, Any]:
    return dict(json.loads(await tenant.db.fetchval(NOTE, tenant.workspace, str(ref), "ann", "because", lifetime)))


async def refuse(sender: Sender, **detail: str) -> None:
    await sender.tenant.db.execute(
        "SELECT refuse_ingress($1, $2, 'push', 'ingress_payload_rejected', 'payload_rejected', $3::text::jsonb, 't')",
        *(sender.tenant.workspace, sender.endpoint, json.dumps({"code": "malformed"} | detail)),
    )


@pytest.mark.parametrize("by", ["ref", "event"])
async def test_a_payload_is_found_by_its_ref_and_by_its_event_and_the_access_is_noted(tenant: Tenant, by: str) -> None:
    ref = ref_in(tenant)
    event = await failed(tenant, ref)

    answer = await note(tenant, ref if by == "ref" else event)

    [accessed] = await tenant.events("payload_accessed")
    meta = json.loads(accessed["meta"])
    assert (answer["verdict"], answer["payload_ref"], answer["event_id"]) == ("noted", ref, str(event))
    assert (accessed["payload_ref"], accessed["delivery_id"]) == (ref, None)
    assert (meta["operator"], meta["reason"], meta["event_id"]) == ("ann", "because", str(event))
    assert meta["expires_at"] == answer["expires_at"]


async def test_a_session_of_one_workspace_reads_no_others_payloads(database: Database, tenant: Tenant) -> None:
    other = await Tenant.create(database.pool)
    theirs, ours = ref_in(other), ref_in(tenant)
    await failed(other, theirs)
    await failed(tenant, ours)
    session = await database.connect()
    await session.execute("SET ROLE autopost_payloads")
    await session.execute(f"SET autopost.workspace_id = '{tenant.workspace}'")

    assert (await note(other.on(session), theirs))["verdict"] == "not_found"
    assert (await note(tenant.on(session), ours))["verdict"] == "noted"
    assert await other.events("payload_accessed") == []
    await session.execute("RESET autopost.workspace_id")
    assert (await note(other.on(session), theirs))["verdict"] == "not_found"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda tenant: uuid4(),
        lambda tenant: ref_in(tenant),
        lambda tenant: ref_in(tenant, "2026/02/31"),
        lambda tenant: ref_in(tenant, "2026/99/99"),
        lambda tenant: f"{tenant.workspace}/media/x",
        lambda tenant: "nonsense",
        lambda tenant: "",
    ],
)
async def test_what_no_event_has_is_not_found_and_nothing_is_noted(tenant: Tenant, wrong: Any) -> None:
    await failed(tenant, ref_in(tenant))

    assert await note(tenant, wrong(tenant)) == {"verdict": "not_found"}
    assert await tenant.events("payload_accessed") == []


@pytest.mark.parametrize("stored", [None, "{other}/payloads/2026/11/16/x", "{own}/media/x"])
async def test_an_event_gives_out_nothing_but_a_payload_of_its_own_workspace(
    tenant: Tenant, stored: str | None
) -> None:
    event = await failed(tenant, stored and stored.format(own=tenant.workspace, other=uuid4()))

    assert await note(tenant, event) == {"verdict": "no_payload"}
    assert await tenant.events("payload_accessed") == []


async def test_a_payload_of_another_workspace_is_not_found(tenant: Tenant) -> None:
    other = await Tenant.create(tenant.db)
    ref = ref_in(other)
    event = await failed(other, ref)

    assert [await note(tenant, one) for one in (ref, event)] == [{"verdict": "not_found"}] * 2


@pytest.mark.parametrize("lifetime", [timedelta(), timedelta(minutes=61)])
async def test_a_link_is_short_lived(tenant: Tenant, lifetime: timedelta) -> None:
    ref = ref_in(tenant)
    await failed(tenant, ref)

    with pytest.raises(asyncpg.PostgresError, match="within an hour"):
        await note(tenant, ref, lifetime)


async def test_an_access_needs_a_reason_and_an_operator(tenant: Tenant) -> None:
    for signed in (("", "because"), ("ann", " ")):
        with pytest.raises(asyncpg.PostgresError, match="operator and reason must not be empty"):
            await tenant.db.fetchval(NOTE, tenant.workspace, ref_in(tenant), *signed, None)


@pytest.mark.parametrize(
    "role", [f"autopost_{name}" for name in ("reader", "operator", "dispatcher", "ingest", "monitor", "bot")]
)
async def test_nobody_gets_at_a_payload_without_the_role_for_it(database: Any, tenant: Tenant, role: str) -> None:
    connection = await database.connect()
    await connection.execute(f"SET ROLE {role}")
    await connection.execute(f"SET autopost.workspace_id = '{tenant.workspace}'")

    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.fetchval(NOTE, tenant.workspace, ref_in(tenant), "ann", "because", None)


async def test_of_refusals_that_are_told_as_one_the_first_payload_is_named(tenant: Tenant) -> None:
    sender = await make_sender(tenant)
    await refuse(sender, payload_ref="first")
    await refuse(sender)
    await refuse(sender, payload_ref="second")
    await refuse(sender, payload_ref="third")

    await tenant.db.execute(SECOND)
    await tenant.db.fetchval("SELECT flush_refusals()")
    await tenant.db.execute(SECOND)
    await refuse(sender)

    events = await tenant.events()
    assert [event["payload_ref"] for event in events] == ["first", "second", None]
    assert [json.loads(event["error"]) for event in events] == [{"code": "malformed"}] * 3
