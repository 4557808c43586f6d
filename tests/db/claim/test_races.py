"""The queue under real concurrency: nothing is left behind, nobody deadlocks, and the tables agree afterwards."""

import asyncio
import random
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from db.support.builders import NEVER, Tenant, is_waiting, permanent, released, running, sent, transient
from db.support.chaos import TAGS, Chaos, Shared
from db.support.consistency import consistent
from db.support.verified import differences
from harness.eventually import eventually

SECONDS = 3
CALLS = 2_000


async def test_what_started_first_and_commits_last_is_claimed_by_the_next_claim(database, tenant):
    """While it is open, claims come and go, find the channel empty and may not close it for good."""
    channel = await tenant.channel()
    await tenant.drain()
    slow = await database.connect()
    async with slow.transaction():
        await tenant.on(slow).enqueue("slow")
        quick = await tenant.backlog(await tenant.channel(), 3)
        taken = [claim["delivery_id"] for _ in range(5) for claim in await tenant.claim()]

    [claim] = await tenant.claim()

    assert sorted(taken) == sorted(quick)
    assert claim["channel_id"] == channel


async def test_a_channel_that_is_being_fed_is_looked_at_again_without_a_wakeup(database, tenant):
    """The feeder found it due already and wrote nothing; so the claim that empties it must come back by itself."""
    channel = await tenant.channel()
    await tenant.backlog(channel, 1)
    slow = await database.connect()
    async with slow.transaction():
        await tenant.on(slow).enqueue("slow")
        assert len(await tenant.claim()) == 1
        assert await tenant.claim() == []
        meanwhile = await tenant.next_due_at()

    assert meanwhile <= datetime.now(UTC) + timedelta(milliseconds=5)
    await eventually(tenant.claim)


async def test_a_retry_that_commits_while_the_channel_is_closed_is_not_lost(database, tenant):
    channel = await tenant.channel()
    await tenant.backlog(channel, 1)
    claim = await tenant.claim_one()
    slow = await database.connect()
    async with slow.transaction():
        await tenant.on(slow).commit(released(claim))
        assert await tenant.claim() == []

    assert (await tenant.claim_one())["delivery_id"] == claim["delivery_id"]


async def test_a_channel_to_which_a_retry_comes_back_is_looked_at_again_without_a_wakeup(database, tenant):
    channel = await tenant.channel()
    first, _second = await tenant.backlog(channel, 2)
    [claim] = await tenant.claim(1)
    slow = await database.connect()
    async with slow.transaction():
        await tenant.on(slow).commit(released(claim))
        assert len(await tenant.claim()) == 1
        meanwhile = await tenant.next_due_at()

    assert meanwhile != NEVER
    [again] = await eventually(tenant.claim)
    assert again["delivery_id"] == first


async def test_a_place_that_is_freed_while_a_claim_looks_is_not_lost(database, tenant):
    channel = await tenant.channel(max_parallel=2)
    await tenant.backlog(channel, 3)
    [claim] = await tenant.claim(1)
    claimer, committer = await database.connect(), await database.connect()
    async with claimer.transaction():
        assert len(await tenant.on(claimer).claim()) == 1  # the last place: from now on the channel is full
        commit = running(tenant.on(committer).commit(sent(claim)))
        await eventually(lambda: is_waiting(tenant.db, committer.get_server_pid()))
    await commit

    assert len(await tenant.claim()) == 1


async def test_a_commit_that_punishes_a_channel_keeps_nobody_from_feeding_it(database, tenant):
    """It would hold channel_due before the counters, while all others take them the other way round."""
    channel = await tenant.channel()
    await tenant.backlog(channel, 1)
    claim = await tenant.claim_one()
    committer, feeder = await database.connect(), await database.connect()
    await feeder.execute("SET lock_timeout = '1s'")

    async with committer.transaction():
        await tenant.on(committer).commit(permanent(claim, "channel"))
        answer = await tenant.on(feeder).enqueue()

    assert answer["enqueued"] == 1
    assert (await tenant.state(channel))["error_streak"] == 1


async def test_a_streak_that_begins_while_a_commit_waits_makes_it_lock_no_channel_late(database, tenant):
    """Channels come before deliveries. Who holds deliveries and finds a streak by then leaves it: it arrived before."""
    channel = await tenant.channel()
    await tenant.backlog(channel, 1)
    claim = await tenant.claim_one()
    holder, punisher, committer = [await database.connect() for _ in range(3)]
    async with punisher.transaction():
        async with holder.transaction():
            await holder.execute("SELECT 1 FROM deliveries WHERE delivery_id = $1 FOR UPDATE", claim["delivery_id"])
            commit = running(tenant.on(committer).commit(sent(claim), short=False))
            await eventually(lambda: is_waiting(tenant.db, committer.get_server_pid()))
            await tenant.set_channel(channel, "error_streak = 1")
            await punisher.execute("SELECT 1 FROM channels WHERE channel_id = $1 FOR NO KEY UPDATE", channel)
        await eventually(lambda: _done_or_behind(tenant, commit, committer, punisher))
        settled = commit.done()

    [verdict] = await commit
    assert settled, "it waits for a channel while it holds a delivery"
    assert verdict["verdict"] == "committed"
    assert (await tenant.state(channel))["error_streak"] == 1


async def _done_or_behind(tenant: Tenant, task, connection, other) -> bool:
    behind = "SELECT $2 = ANY (pg_blocking_pids($1))"
    pids = connection.get_server_pid(), other.get_server_pid()
    return task.done() or await tenant.db.fetchval(behind, *pids)


async def test_the_low_water_does_not_rise_above_what_is_being_put_in(database, tenant):
    channel = await tenant.channel()
    await tenant.backlog(channel, 3)
    before = (await tenant.due(channel))["low_water"]
    due = "next_due_at = now() - interval '1 hour', swept_at = now() - interval '1 minute'"
    unsweep = f"UPDATE channel_due SET {due} WHERE channel_id = $1"
    slow = await database.connect()
    await tenant.db.execute(unsweep, channel)  # so that the feeder has nothing to write there and holds only its key
    async with slow.transaction():
        [older, *_] = await tenant.on(slow).backlog(channel, 10)
        assert len(await tenant.claim(1)) == 1
        meanwhile = (await tenant.due(channel))["low_water"]
    [claim] = await tenant.claim(1)
    await tenant.db.execute(unsweep, channel)
    await tenant.claim(1)

    assert meanwhile == before
    assert claim["delivery_id"] == older
    assert (await tenant.due(channel))["low_water"] != before  # once nobody puts anything in


class Dispatcher:
    """Claims when it is woken or when next_due_at comes; never by a poll."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant
        self.alarms: list[asyncio.Event] = []
        self.sent: list[UUID] = []
        self.closing = False

    def wake(self) -> None:
        for alarm in self.alarms:
            alarm.set()

    async def work(self, chance: random.Random) -> None:
        alarm = asyncio.Event()
        self.alarms.append(alarm)
        while True:
            alarm.clear()  # before looking: a wakeup that comes while we look is for the next round
            if self.closing and not await self.tenant.count("delivery_queue"):
                return
            claims = await self.tenant.claim(chance.randint(1, 20))
            if not claims:
                await self._rest(alarm)
                continue
            self.wake()
            verdicts = await self.tenant.commit(*(_ending(claim, chance) for claim in claims), jitter=0)
            self.sent += [verdict["delivery_id"] for verdict in verdicts if verdict["status"] == "sent"]
            self.wake()

    async def _rest(self, alarm: asyncio.Event) -> None:
        due = await self.tenant.next_due_at()
        wait = 10.0 if due == NEVER else max((due - datetime.now(UTC)).total_seconds(), 0.001)
        try:
            async with asyncio.timeout(wait):
                await alarm.wait()
        except TimeoutError:
            assert wait < 10, "work was left behind: nothing was due and nobody woke us"


def _ending(claim, chance: random.Random) -> dict:
    if chance.random() < 0.8:
        return sent(claim)
    return chance.choice([released(claim), transient(claim, retry_after_ms=chance.randint(0, 30))])


@pytest.mark.parametrize("seed", [1, 2])
async def test_nothing_is_left_behind_without_a_poll(database, tenant, seed):
    """Channels run dry and are fed again all the time; only a commit, an enqueue or next_due_at wakes who rests."""
    chance = random.Random(seed)
    for place, tag in enumerate("abcdef"):
        rate = None if place % 2 else 300
        await tenant.channel(max_parallel=1 + place % 3, rate_rps=rate, route_filter={"include_any": [tag]})
    dispatcher = Dispatcher(tenant)
    until, fed = asyncio.get_running_loop().time() + SECONDS, 0

    async def feed(mine: random.Random) -> None:
        nonlocal fed
        connection = await database.connect()
        while asyncio.get_running_loop().time() < until or fed <= 100:
            fed += 1
            async with connection.transaction():
                await tenant.on(connection).enqueue(max_attempts=1000, tags=mine.sample("abcdef", 1))
                await connection.execute("SELECT pg_sleep($1)", mine.choice([0, 0.005, 0.02]))
            dispatcher.wake()

    async def feeding() -> None:
        await asyncio.gather(*(feed(random.Random(chance.random())) for _ in range(5)))
        dispatcher.closing = True
        dispatcher.wake()

    workers = [dispatcher.work(random.Random(chance.random())) for _ in range(4)]
    async with asyncio.timeout(90):
        await asyncio.gather(feeding(), *workers)

    statuses = await tenant.db.fetch("SELECT status::text, count(*) AS n FROM deliveries GROUP BY 1")
    assert {row["status"]: row["n"] for row in statuses} == {"sent": len(dispatcher.sent)}
    assert len(set(dispatcher.sent)) == len(dispatcher.sent) > 100
    await eventually(lambda: _idle(tenant))


async def _idle(tenant: Tenant) -> bool:
    return not await tenant.claim() and await tenant.next_due_at() == NEVER


@pytest.mark.parametrize("seed", [1, 2])
async def test_thousands_of_mixed_calls_meet_no_deadlock(database, tenant, seed):
    chance = random.Random(seed)
    await tenant.group(2000)
    terms = [
        {
            "max_parallel": 3,
            "rate_rps": chance.choice([None, 500]),
            "on_ambiguous": chance.choice(["resend", "hold"]),
            "catch_up": chance.choice([{"policy": "all"}, {"policy": "newest", "keep": 2}]),
        }
        for _ in TAGS
    ]
    channels = [
        await tenant.channel(**one, route_filter={"include_any": [tag]}) for one, tag in zip(terms, TAGS, strict=True)
    ]
    shared = Shared(channels)
    actors = [Chaos(tenant.on(await database.connect()), shared, random.Random(chance.random())) for _ in range(8)]

    await asyncio.gather(*(actor.run(CALLS) for actor in actors))

    assert shared.calls.total() >= CALLS
    assert len(shared.calls) == 20
    assert await consistent(database.pool, tenant.workspace)
    assert await differences(database.pool, tenant.workspace) == []
