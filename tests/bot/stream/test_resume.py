"""Resume: nothing missed, nothing twice, ids increase; on any replica, whatever NATS does."""

import asyncio
import inspect
import json
import random
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from autopost_bot.gateway import Change
from autopost_bot.stream.hub import Hub
from autopost_contracts.ids import WorkspaceId, chat_token
from autopost_contracts.subjects import Topology
from bot.conftest import StartReplica
from bot.support.listener import listening
from bot.support.replicas import BEARER, CHAT, WORKSPACE, Replica
from harness.databases import Database
from harness.eventually import eventually
from msgspec import Raw

WORKSPACE_ID = WorkspaceId(UUID(WORKSPACE))


async def start_unheard(database: Database, action: str, **fields: Any) -> None:
    """As if the replica had been killed between its commit and its wakeup."""
    given = {"chat_id": CHAT, "action_id": action, "action_type": "summarize", **fields}
    await database.pool.execute("SELECT start_action($1, $2)", WORKSPACE, json.dumps(given))


async def test_a_change_between_the_list_and_the_stream_is_not_missed(bot: Replica) -> None:
    cursor = (await bot.list()).headers["X-Chat-Cursor"]
    await bot.start()

    async with listening(bot.events(), headers=BEARER, after=cursor) as client:
        await client.heard(1)

    assert client.actions == [("a", "processing")]


async def test_lists_and_streams_miss_nothing_whatever_is_committed_between(start_replica: StartReplica) -> None:
    """Each reader takes the list and then the stream, while others write; at the end it knows every action's state."""
    replicas = [await start_replica(), await start_replica()]
    rng = random.Random(22)

    async def write(name: str) -> None:
        for n in range(12):
            await rng.choice(replicas).start(f"{name}{n}")
            await rng.choice(replicas).update(f"{name}{n}", rng.choice(["done", "error"]))

    async def read() -> dict[str, str]:
        bot = rng.choice(replicas)
        listed = await bot.list()
        state = {action["actionId"]: action["status"] for action in listed.json()}
        cursor = int(listed.headers["X-Chat-Cursor"])
        async with listening(rng.choice(replicas).events(), headers=BEARER, after=cursor) as client:
            await eventually(lambda: client.last_id == "72")
        assert client.ids == sorted(set(client.ids))
        assert not client.ids or client.ids[0] > cursor
        return state | dict(client.actions)

    *_, states = await asyncio.gather(
        *(write(name) for name in "xyz"), asyncio.gather(*(late(read, n) for n in range(12)))
    )

    for state in states:
        assert "processing" not in state.values()


async def late(read: Any, turns: int) -> dict[str, str]:
    for _ in range(turns * 40):
        await asyncio.sleep(0)
    return await read()  # type: ignore[no-any-return]


async def test_another_replica_replays_exactly_what_was_missed(start_replica: StartReplica) -> None:
    one, two = await start_replica(), await start_replica()
    async with listening(one.events(), headers=BEARER) as client:
        await one.start("a")
        await client.heard(1)
    for action in "bcd":
        await one.start(action)

    async with listening(two.events(), headers={**BEARER, "Last-Event-ID": str(client.last_id)}) as again:
        await two.update("a")
        await again.heard(4)

    assert again.ids == [2, 3, 4, 5]
    assert again.actions == [*((action, "processing") for action in "bcd"), ("a", "done")]


async def test_a_change_on_one_replica_is_heard_on_the_other(start_replica: StartReplica) -> None:
    never = timedelta(hours=1)
    one, two = [await start_replica(poll=never, poll_when_away=never) for _ in range(2)]
    await eventually(lambda: one.bus.connected and two.bus.connected)
    async with listening(two.events(), headers=BEARER) as client:
        await one.start()
        await client.heard(1)

    assert client.actions == [("a", "processing")]


@pytest.mark.parametrize("cursor", ["99", "9" * 18, "9" * 40, "garbage"])
async def test_an_id_that_the_chat_never_had_leads_to_a_resync(bot: Replica, cursor: str) -> None:
    await bot.start()
    async with listening(bot.events(), headers={**BEARER, "Last-Event-ID": cursor}) as client:
        await client.heard(1)
        await bot.update()
        await client.heard(2)

    assert client.events[0] == (1, {"type": "resync"})
    assert client.events[1][0] == 2


async def test_more_than_five_hundred_missed_changes_lead_to_a_resync(bot: Replica, seeded_database: Database) -> None:
    for n in range(501):
        await start_unheard(seeded_database, f"a{n}")

    async with (
        listening(bot.events(), headers=BEARER, after=0) as far,
        listening(bot.events(), headers=BEARER, after=1) as near,
    ):
        await far.heard(1)
        await near.heard(500)

    assert far.events == [(501, {"type": "resync"})]
    assert near.ids == list(range(2, 502))


async def test_what_retention_has_deleted_leads_to_a_resync(bot: Replica, seeded_database: Database) -> None:
    await bot.start()
    await bot.update()
    await seeded_database.pool.execute("SELECT retain_bot_actions(interval '0', 10)")

    async with listening(bot.events(), headers=BEARER, after=1) as client:
        await client.heard(1)

    assert client.events == [(2, {"type": "resync"})]


async def test_a_change_whose_wakeup_was_never_sent_is_found_by_the_poll(
    start_replica: StartReplica, seeded_database: Database
) -> None:
    bot = await start_replica(poll=timedelta(milliseconds=200), poll_when_away=timedelta(milliseconds=50))
    async with listening(bot.events(), headers=BEARER) as client:
        await start_unheard(seeded_database, "a")
        await client.heard(1)

    assert client.ids == [1]


async def test_when_nats_is_back_numbers_are_polled_at_once(bot: Replica, seeded_database: Database) -> None:
    class Link:
        connected, connects = True, 1

    hub = Hub(bot.hub._gateway, Link())
    polling = asyncio.create_task(hub.run(timedelta(hours=1), timedelta(milliseconds=10)))
    client, _ = await hub.join(WORKSPACE_ID, CHAT, None, lambda: None)
    await start_unheard(seeded_database, "a")
    Link.connects = 2

    assert b'"actionId": "a"' in (await client.next(10) or b"")
    polling.cancel()


def test_numbers_are_polled_every_thirty_seconds_and_every_two_without_nats() -> None:
    times = {name: parameter.default for name, parameter in inspect.signature(Hub.run).parameters.items()}

    assert (times["every"], times["every_when_away"]) == (timedelta(seconds=30), timedelta(seconds=2))


async def test_without_nats_the_other_replica_hears_by_its_frequent_poll(start_replica: StartReplica) -> None:
    one, two = [await start_replica(nats_url=None) for _ in range(2)]
    async with listening(two.events(), headers=BEARER) as client:
        await one.start()
        await client.heard(1)

    assert client.actions == [("a", "processing")]


async def test_repeated_reversed_and_made_up_wakeups_change_no_order(bot: Replica, nats_namespace: str) -> None:
    subject = Topology(nats_namespace).chat(WORKSPACE_ID, chat_token(WORKSPACE_ID, CHAT))
    rng = random.Random(61)
    async with listening(bot.events(), headers=BEARER) as one, listening(bot.events(), headers=BEARER) as two:
        for n in range(40):
            await bot.start(f"a{n}")
            for number in rng.sample(range(60), 5):
                bot.hub.on_wakeup(subject, b"%d" % number)
            bot.hub.on_wakeup(subject, b"")
        await one.heard(40)
        await two.heard(40)

    assert one.ids == two.ids == list(range(1, 41))


async def test_a_wakeup_during_a_read_that_finds_nothing_is_not_lost() -> None:
    """The read began before the commit, after a wakeup that was late; both name the same number."""

    class Committing:
        committed = False

        async def chat_heads(self, *_: object) -> list[int]:
            return [0]

        async def chat_changes(self, *_: object) -> list[Change]:
            if self.committed:
                return [Change(1, "bot_action", Raw(b"{}"), None)]
            self.committed = True
            hub.wake(WORKSPACE_ID, chat_token(WORKSPACE_ID, CHAT), 1)
            return []

    class Link:
        connected, connects = True, 1

    hub = Hub(Committing(), Link())  # type: ignore[arg-type]
    client, _ = await hub.join(WORKSPACE_ID, CHAT, None, lambda: None)
    hub.wake(WORKSPACE_ID, chat_token(WORKSPACE_ID, CHAT))

    assert b"id: 1\n" in (await client.next(10) or b"")


async def test_many_clients_of_a_chat_share_one_read(bot: Replica, seeded_database: Database) -> None:
    reads: list[int] = []
    read = bot.hub._gateway.chat_changes

    async def counted(*given: Any) -> Any:
        reads.append(1)
        return await read(*given)

    bot.hub._gateway.chat_changes = counted  # type: ignore[method-assign]
    async with listening(bot.events(), headers=BEARER) as one, listening(bot.events(), headers=BEARER) as two:
        await bot.start()
        await one.heard(1)
        await two.heard(1)

    assert len(reads) == 1


async def test_a_change_that_is_rolled_back_is_never_heard(bot: Replica, seeded_database: Database) -> None:
    await seeded_database.pool.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;"
        "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON bot_actions DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW WHEN (new.action_id = 'a') EXECUTE FUNCTION refuse()"
    )
    async with listening(bot.events(), headers=BEARER) as client:
        refused = await bot.start("a")
        await bot.start("b")
        await client.heard(1)

    assert refused.status_code == 500
    assert client.events[0][0] == 1
    assert client.actions == [("b", "processing")]
