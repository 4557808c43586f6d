"""`autopost verify`: exit 0 only when rows, events, queue and stream all agree; what does not is named."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import msgspec
import nats
import pytest
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.subjects import Topology
from autopost_runtime.nats.streams import ensure_streams
from db.support.builders import Tenant, permanent, sent, transient
from db.support.operators import Operator
from db.support.verified import tamper
from harness.autopost_command import Autopost, Ran
from harness.databases import Database
from monitor.support.running_relay import Audit, running_relay


class Place:
    """A workspace with a history, and an audit stream that a real relay has filled."""

    def __init__(self, database: Database, nats_url: str, namespace: str) -> None:
        self.pool = database.pool
        self.url = nats_url
        self.topology = Topology(namespace)
        self.audit = Audit(nats_url, namespace)
        self.database = database
        self.autopost = Autopost(database.url, AUTOPOST_NATS_URL=nats_url, AUTOPOST_NATS_NAMESPACE=namespace)

    async def happen(self, posts: int = 2) -> Tenant:
        """Sent, retried, failed and waiting deliveries."""
        self.tenant = await Tenant.create(self.pool)
        await self.tenant.channels(3)
        for _ in range(posts):
            await self.tenant.enqueue(max_attempts=2)
            first, *others = await self.tenant.claim()
            await self.tenant.commit(transient(first, retry_after_ms=0), *(sent(claim) for claim in others))
            await self.tenant.commit(*(permanent(claim) for claim in await self.tenant.claim()))
        await self.tenant.enqueue()
        return self.tenant

    async def relay(self) -> None:
        await ensure_streams(self.url, self.topology)
        async with running_relay(self.database.url, self.url, self.topology.namespace):
            await self.audit.has_all_of(self.pool)

    async def verify(self, *words: str) -> Ran:
        return await self.autopost("verify", "--json", *words)

    @asynccontextmanager
    async def jetstream(self) -> AsyncIterator[Any]:
        async with await nats.connect(self.url) as client:
            yield client.jetstream()


@pytest.fixture
async def place(database: Database, nats_url: str, nats_namespace: str) -> Place:
    made = Place(database, nats_url, nats_namespace)
    await made.happen()
    await made.relay()
    return made


def kinds(ran: Ran) -> list[str]:
    return [one["kind"] for one in ran.json["differences"]]


async def test_a_consistent_database_has_no_differences(place: Place) -> None:
    events = await place.tenant.count("events")

    ran = await place.verify()

    assert (ran.code, ran.json["holds"], ran.json["differences"]) == (0, True, [])
    assert ran.json["checked"] == {
        "messages": events,
        "deliveries": 9,
        "queue rows": 5,
        "channels": 3,
        "events": events,
    }


async def test_a_doctored_row_is_named_with_both_sides(place: Place) -> None:
    delivery = (await place.tenant.deliveries())[0]["delivery_id"]
    await tamper(place.pool, "UPDATE deliveries SET attempt = 9 WHERE delivery_id = $1", delivery)

    ran = await place.verify()
    text = await place.autopost("verify")

    [difference] = ran.json["differences"]
    assert (ran.code, ran.json["holds"], ran.json["found"]) == (1, False, 1)
    assert (difference["kind"], difference["delivery_id"], difference["row"]) == ("attempt", str(delivery), "9")
    assert text.code == 1
    assert str(delivery) in text.out


async def test_a_deleted_event_is_missed_by_its_row_and_unknown_in_the_stream(place: Place) -> None:
    last = await place.pool.fetchval("SELECT id FROM events WHERE action = 'sent' ORDER BY seq DESC LIMIT 1")
    await tamper(place.pool, "DELETE FROM events WHERE id = $1", last)

    ran = await place.verify()

    assert ran.code == 1
    assert {"event_count", "status", "unknown_in_stream"} <= set(kinds(ran))
    assert str(last) in {one.get("event_id") for one in ran.json["differences"]}


async def test_an_event_of_no_workspace_is_relayed_and_held_against_the_stream(place: Place) -> None:
    signed = ("--operator", "ann", "--reason", "for the wall")
    await place.autopost("auth", "status-token", "create", "--label", "wall", "--all-workspaces", *signed)
    await place.relay()

    whole = await place.verify()
    last = (await place.audit.messages())[-1]
    async with place.jetstream() as jetstream:
        await jetstream.delete_msg(place.topology.audit_stream.name, last.metadata.sequence.stream)
    cut = await place.verify()

    assert last.subject == place.topology.audit(WorkspaceId(UUID(int=0)), "auth_rotated")
    assert (whole.code, whole.json["checked"]["messages"]) == (0, whole.json["checked"]["events"])
    assert (cut.code, kinds(cut)) == (1, ["missing_in_stream"])


async def test_a_gap_in_the_stream_is_found_and_named(place: Place) -> None:
    [gone] = [message for message in await place.audit.messages() if message.metadata.sequence.stream == 4]
    async with place.jetstream() as jetstream:
        await jetstream.delete_msg(place.topology.audit_stream.name, 4)

    ran = await place.verify()

    assert (ran.code, kinds(ran)) == (1, ["missing_in_stream"])
    assert ran.json["differences"][0]["event_id"] == gone.headers["Nats-Msg-Id"]


@pytest.mark.parametrize("change", ["id", "seq", "ts", "workspace_id", "garbage"])
async def test_what_no_event_is_must_not_be_in_the_stream(place: Place, change: str) -> None:
    message = (await place.audit.messages())[0]
    told = msgspec.json.decode(message.data)
    other = {"id": str(uuid4()), "seq": 10**9, "ts": "2026-11-16T10:00:00.5Z", "workspace_id": str(uuid4())}
    body = b"garbage" if change == "garbage" else msgspec.json.encode(told | {change: other[change]})
    async with place.jetstream() as jetstream:
        await jetstream.publish(message.subject, body)

    ran = await place.verify()

    assert (ran.code, kinds(ran)) == (1, ["unknown_in_stream"])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("action", "'held'"),
        ("attempt", "attempt + 1"),
        ("result", "'error'"),
        ("error", """'{"code": "blocked"}'"""),
        ("meta", """meta || '{"operator": "nobody"}'"""),
        ("payload_ref", "'elsewhere'"),
        ("channel_id", "NULL"),
    ],
)
async def test_an_event_that_was_changed_after_it_was_relayed_is_found(place: Place, field: str, value: str) -> None:
    """Of a channel: nothing in the database says otherwise."""
    await Operator(place.tenant).pause(await place.pool.fetchval("SELECT channel_id FROM channels LIMIT 1"))
    await place.relay()
    event = await place.pool.fetchval("SELECT id FROM events WHERE action = 'channel_paused'")
    assert (await place.verify()).code == 0
    await tamper(place.pool, f"UPDATE events SET {field} = {value} WHERE id = $1", event)

    ran = await place.verify()

    [difference] = ran.json["differences"]
    assert (ran.code, difference["kind"], difference["event_id"]) == (1, "altered", str(event))
    assert difference["row"] == field


async def test_what_the_relay_left_out_as_too_large_is_not_missed(place: Place) -> None:
    much = msgspec.json.encode({"much": "x" * 600_000}).decode()
    await place.pool.execute(
        "INSERT INTO events (workspace_id, action, meta) VALUES ($1, 'checkpoint', $2)", place.tenant.workspace, much
    )
    await place.relay()

    assert (await place.verify()).code == 0


async def test_a_delivery_whose_events_stand_in_another_order_in_the_stream_is_found(place: Place) -> None:
    """Told again in the wrong order, from a stream that was emptied."""
    messages = await place.audit.messages()
    last = [one for one in messages if msgspec.json.decode(one.data)["action"] == "sent"][-1]
    async with place.jetstream() as jetstream:
        await jetstream.purge_stream(place.topology.audit_stream.name)
        for message in [last, *(one for one in messages if one is not last)]:
            await jetstream.publish(message.subject, message.data)

    ran = await place.verify()

    assert (ran.code, kinds(ran)) == (1, ["order_in_stream"])
    assert ran.json["differences"][0]["event_id"] == last.headers["Nats-Msg-Id"]


async def test_what_the_stream_has_twice_is_no_difference(place: Place) -> None:
    message = (await place.audit.messages())[0]
    async with place.jetstream() as jetstream:
        await jetstream.publish(message.subject, message.data)

    assert (await place.verify()).code == 0


async def test_what_the_relay_has_not_passed_yet_is_no_difference(place: Place) -> None:
    await place.tenant.enqueue()
    ran = await place.verify()
    assert (ran.code, ran.json["found"]) == (0, 0)

    await place.relay()
    async with place.jetstream() as jetstream:
        await jetstream.purge_stream(place.topology.audit_stream.name)
    ran = await place.verify()

    assert ran.code == 1
    assert ran.json["found"] == await place.tenant.count("events")


async def test_while_no_relay_has_run_the_stream_owes_nothing(
    database: Database, nats_url: str, nats_namespace: str
) -> None:
    place = Place(database, nats_url, nats_namespace)
    await place.happen()
    await ensure_streams(nats_url, place.topology)

    ran = await place.verify()

    assert (ran.code, ran.json["notes"]) == (0, ["The relay has not run yet, so the stream may be empty."])


async def test_the_list_is_bounded_and_the_count_is_not(place: Place) -> None:
    await tamper(place.pool, "UPDATE deliveries SET attempt = 9")

    ran = await place.verify("--most", "2")

    assert (ran.json["found"], len(ran.json["differences"])) == (9, 2)


async def test_one_workspace_can_be_looked_at_alone(place: Place) -> None:
    theirs, mine = place.tenant, await place.happen()
    await place.pool.execute("UPDATE workspaces SET name = 'Mine Own' WHERE workspace_id = $1", mine.workspace)
    await tamper(place.pool, "UPDATE deliveries SET attempt = 9 WHERE workspace_id = $1", theirs.workspace)
    await place.relay()

    own, all_ = await place.verify("--workspace", "mine-own"), await place.verify()

    assert (own.code, own.json["checked"]["deliveries"]) == (0, 9)
    assert own.json["checked"]["messages"] == await mine.count("events")
    assert (all_.code, {one["workspace"] for one in all_.json["differences"]}) == (1, {"test"})


async def test_without_the_stream_only_the_database_is_asked(database: Database) -> None:
    place = Place(database, "nats://127.0.0.1:1", "nowhere")
    await place.happen()

    left_out, off = await place.verify("--no-stream"), await place.verify("--nats-url", "off")

    assert (left_out.code, off.code) == (0, 0)
    assert "cannot be detected" in left_out.json["notes"][0]
    assert "messages" not in left_out.json["checked"]


async def test_what_cannot_be_asked_is_said_in_words(database: Database, nats_url: str) -> None:
    place = Place(database, "nats://ann:canary@127.0.0.1:1", "nowhere")
    unset = await Autopost(database.url)("verify")
    away = await place.verify()
    empty = await Autopost(database.url, AUTOPOST_NATS_URL=nats_url)("verify", "--nats-namespace", "nowhere")
    unknown = await place.verify("--no-stream", "--workspace", "nobody")

    assert [ran.code for ran in (unset, away, empty, unknown)] == [2, 1, 1, 2]
    assert all("--no-stream" in ran.err for ran in (unset, away, empty))
    assert "workspace 'nobody' not found" in unknown.err
    assert "canary" not in away.err + away.out


async def test_an_orphan_is_named(place: Place) -> None:
    delivery: UUID = (await place.tenant.deliveries())[0]["delivery_id"]
    await tamper(place.pool, "DELETE FROM deliveries WHERE delivery_id = $1", delivery)

    ran = await place.verify("--no-stream")

    assert ran.code == 1
    assert {(one["kind"], one["delivery_id"]) for one in ran.json["differences"]} >= {("orphan", str(delivery))}
