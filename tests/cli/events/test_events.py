"""`autopost events tail`: each event of the stream once, in order, for people and for programs."""

import asyncio
import os
import shutil
import signal
import sys
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import msgspec
import nats
import pytest
from autopost_contracts.events import Action, AuditEvent
from autopost_contracts.ids import DeliveryId, EventId, WorkspaceId
from autopost_contracts.subjects import Topology
from autopost_runtime.nats.streams import ensure_streams
from harness.eventually import eventually

NOW = datetime.now(UTC)
HERE, THERE = uuid4(), uuid4()
PLENTY = 60


def event(workspace: UUID = HERE, action: Action = Action.SENT, **fields: Any) -> AuditEvent:
    given = {"seq": 1, "ts": NOW, "result": "ok", "delivery_id": DeliveryId(uuid4())} | fields
    return AuditEvent(id=EventId(uuid4()), workspace_id=WorkspaceId(workspace), action=action, **given)


class Place:
    """A NATS server with the streams of one namespace, and the command that reads them."""

    def __init__(self, url: str, namespace: str) -> None:
        self.url = url
        self.topology = Topology(namespace)

    async def tell(self, *events: AuditEvent) -> None:
        """Without the ids by which a stream keeps one copy: as long after the first one as it likes."""
        async with await nats.connect(self.url) as client:
            for one in events:
                subject = self.topology.audit(one.workspace_id, one.action)
                await client.jetstream().publish(subject, msgspec.json.encode(one))

    @asynccontextmanager
    async def tail(self, *words: str) -> AsyncIterator[Process]:
        process = await create_subprocess_exec(
            *(sys.executable, "-m", "autopost_cli", "events", "tail", *words),
            env=os.environ | {"AUTOPOST_NATS_URL": self.url, "AUTOPOST_NATS_NAMESPACE": self.topology.namespace},
            stdout=PIPE,
            stderr=PIPE,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def read(self, *words: str) -> list[str]:
        async with self.tail("--no-follow", *words) as process:
            out, err = await process.communicate()
        assert (process.returncode, err) == (0, b"")
        return out.decode().splitlines()

    async def ids(self, *words: str) -> list[UUID]:
        return [msgspec.json.decode(line, type=AuditEvent).id for line in await self.read("--json", *words)]

    async def is_listening(self) -> None:
        """Once the command has its place in the stream, what is told afterwards reaches it."""
        name = self.topology.audit_stream.name
        async with await nats.connect(self.url) as client:
            await eventually(lambda: client.jetstream().consumers_info(name), within=timedelta(seconds=PLENTY))


@pytest.fixture
async def place(nats_url: str, nats_namespace: str) -> Place:
    made = Place(nats_url, nats_namespace)
    await ensure_streams(nats_url, made.topology)
    return made


async def test_everything_there_is_is_shown_once_and_in_order(place):
    told = [event(), event(THERE), event(action=Action.ENQUEUE)]
    await place.tell(*told, told[0])

    assert await place.ids() == [one.id for one in told]


async def test_it_shows_only_what_was_asked_for(place):
    mine, theirs, other = event(), event(THERE), event(action=Action.DEAD_LETTER)
    await place.tell(mine, theirs, other)

    assert await place.ids("--workspace", str(HERE)) == [mine.id, other.id]
    assert await place.ids("--action", "sent") == [mine.id, theirs.id]
    assert await place.ids("--workspace", str(HERE), "--action", "dead_letter") == [other.id]
    assert await place.ids("--action", "held") == []


async def test_a_workspace_is_known_by_its_name_too(place, seeded_database):
    demo = await seeded_database.pool.fetchval("SELECT workspace_id FROM workspaces WHERE name = 'demo'")
    wanted = event(demo)
    await place.tell(event(), wanted)

    assert await place.ids("--workspace", "demo", "--database-url", seeded_database.url) == [wanted.id]


async def test_since_counts_from_when_it_happened_not_from_when_it_was_told(place):
    old, young = event(ts=NOW - timedelta(hours=3)), event(ts=NOW - timedelta(minutes=10))
    await place.tell(old, young)

    assert await place.ids("--since", "1h") == [young.id]
    assert await place.ids("--since", (NOW - timedelta(hours=4)).isoformat()) == [old.id, young.id]


async def test_a_line_for_people_tells_what_happened_and_cannot_break_the_terminal(place):
    error = {"code": "blocked", "message": "no\n\x1b[31mrights"}
    delivery = DeliveryId(uuid4())
    await place.tell(event(action=Action.RETRY_SCHEDULED, result="error", attempt=2, error=error, delivery_id=delivery))

    [line] = await place.read()

    moment = NOW.strftime("%Y-%m-%d %H:%M:%S")
    assert line.startswith(moment)
    assert f"delivery={delivery} attempt=2 code=blocked message=no  [31mrights" in line
    assert "retry_scheduled" in line


async def test_it_follows_from_now_on_until_it_is_interrupted(place):
    await place.tell(event())
    news = event(ts=datetime.now(UTC))

    async with place.tail("--json") as process:
        await place.is_listening()
        await place.tell(news)
        line = await asyncio.wait_for(process.stdout.readline(), PLENTY)
        process.send_signal(signal.SIGINT)
        rest, err = await process.communicate()

    assert msgspec.json.decode(line, type=AuditEvent).id == news.id
    assert (process.returncode, rest, err) == (0, b"", b"")


@pytest.mark.parametrize("wiped", [False, True], ids=["restarted", "wiped"])
async def test_it_goes_on_after_nats_was_away(own_nats, nats_namespace, wiped):
    place = Place(own_nats.url, nats_namespace)
    await ensure_streams(place.url, place.topology)
    first, second = event(), event()

    async with place.tail("--json", "--since", "1h") as process:
        await place.tell(first)
        seen = [await asyncio.wait_for(process.stdout.readline(), PLENTY)]
        await own_nats.stop()
        if wiped:
            shutil.rmtree(own_nats.data)
        await own_nats.start()
        await ensure_streams(place.url, place.topology)
        await place.tell(first, second)
        seen.append(await asyncio.wait_for(process.stdout.readline(), PLENTY))

    assert [msgspec.json.decode(line, type=AuditEvent).id for line in seen] == [first.id, second.id]


async def test_what_is_told_again_is_no_news_to_whoever_follows_from_now_on(own_nats, nats_namespace):
    """A stream that was wiped gets everything again, also what happened before anybody watched."""
    place = Place(own_nats.url, nats_namespace)
    await ensure_streams(place.url, place.topology)
    old, first, second = event(ts=NOW - timedelta(hours=1)), *(event(ts=datetime.now(UTC)) for _ in range(2))
    await place.tell(old)

    async with place.tail("--json") as process:
        await place.is_listening()
        await place.tell(first)
        seen = [await asyncio.wait_for(process.stdout.readline(), PLENTY)]
        await own_nats.stop()
        shutil.rmtree(own_nats.data)
        await own_nats.start()
        await ensure_streams(place.url, place.topology)
        await place.tell(old, first, second)
        seen.append(await asyncio.wait_for(process.stdout.readline(), PLENTY))

    assert [msgspec.json.decode(line, type=AuditEvent).id for line in seen] == [first.id, second.id]


async def test_without_a_server_it_says_so_and_shows_no_password():
    place = Place("nats://somebody:hunter2@127.0.0.1:1", "autopost")

    async with place.tail() as process:
        out, err = await process.communicate()

    assert process.returncode == 1
    assert b"NATS at 127.0.0.1:1 did not answer" in err
    assert b"hunter2" not in out + err


async def test_without_the_stream_it_says_what_is_missing(nats_url, nats_namespace):
    place = Place(nats_url, nats_namespace)

    async with place.tail() as process:
        _, err = await process.communicate()

    assert process.returncode == 1
    assert f"has no stream {place.topology.audit_stream.name}" in err.decode()


@pytest.mark.parametrize("words", [["--since", "yesterday"], ["--action", "flown"], ["--workspace", "mine"]])
async def test_an_option_that_makes_no_sense_is_named(place, words):
    async with place.tail(*words) as process:
        _, err = await process.communicate()

    assert process.returncode == 2
    assert words[0] in err.decode()
