"""Looking at the queue, and proving its counters: both cost what is live, not what was sent."""

import asyncio
import random
from datetime import UTC, datetime, timedelta

from db.support.builders import Tenant, permanent, released, sent, transient
from db.support.operators import Operator, dead, held


async def test_counts_are_by_status_with_what_was_held_and_skipped(tenant, operator):
    channel = await tenant.channel()
    one, _ = await dead(tenant, channel, 2)
    await operator.skip(one)
    await held(tenant)
    await tenant.backlog(channel, 4)
    flying, arrived, wrong, _ = await tenant.claim()
    await tenant.commit(sent(arrived), permanent(wrong))
    await tenant.set_delivery(flying["delivery_id"], "status = 'retry', next_retry_at = now() + interval '1 hour'")
    await tenant.backlog(channel, 2)

    seen = await operator.snapshot(history=True)

    assert seen["counts"] == {
        "queued": 2,
        "claimed": 0,
        "sending": 1,
        "retry": 2,
        "dead": 2,
        "failed_permanent": 1,
        "sent": 1,
        "deduped": 0,
    }
    assert (seen["held"], seen["skipped"]) == (1, 1)
    assert "sent" not in (await operator.snapshot())["counts"]


async def test_the_errors_of_the_window_are_named_the_most_frequent_first(tenant, operator):
    await tenant.backlog(await tenant.channel(), 3)
    one, two, three = await tenant.claim()
    await tenant.commit(transient(one, code="slow"), transient(two, code="slow"), permanent(three, code="wrong"))

    seen = await operator.snapshot()

    assert [(error["code"], error["action"], error["count"]) for error in seen["top_errors"]] == [
        ("slow", "retry_scheduled", 2),
        ("wrong", "failed_permanent", 1),
    ]
    assert seen["activity"] == {"send_attempt": 3, "retry_scheduled": 2, "failed_permanent": 1}
    assert (await operator.snapshot(window=timedelta(0)))["top_errors"] == []


async def test_every_channel_says_how_it_stands_why_and_until_when(tenant, operator):
    names = ["away", "cooling", "disabled", "full", "open", "paused", "window"]
    channels = {name: await tenant.channel(title=name, max_parallel=1) for name in names}
    await tenant.set_channel(channels["away"], "rate_group = 'away'")
    await tenant.db.execute(
        "UPDATE platform_limits SET circuit = 'open', opened_at = now(), probe_at = now(), "
        """outage_error = '{"code": "http_502"}' WHERE rate_group = 'away'"""
    )
    await tenant.set_channel(channels["window"], """window_mode = 'windowed', posting_window = '{"mon": []}'""")
    waiting = {name: (await tenant.backlog(channel, 1))[0] for name, channel in channels.items()}
    await tenant.set_delivery(waiting["paused"], "not_before = now() - interval '2 days'")
    await operator.disable(channels["disabled"])
    await operator.pause(channels["paused"])
    await tenant.set_channel(channels["cooling"], "next_allowed_at = now() + interval '1 minute'")
    await tenant.commit(*(released(c) for c in await tenant.claim() if c["channel_id"] == channels["open"]))
    [oldest] = await tenant.backlog(channels["open"], 1)
    await tenant.set_delivery(oldest, "not_before = now() - interval '1 day'")

    seen = await operator.snapshot()

    states = [(row["title"], row["state"], row["reason"], row["waiting"], row["sending"]) for row in seen["channels"]]
    assert states == [
        ("away", "outage", "http_502", 1, 0),
        ("cooling", "cooling", None, 1, 0),
        ("disabled", "disabled", "because", 1, 0),
        ("full", "full", None, 0, 1),
        ("open", "open", None, 2, 0),
        ("paused", "paused", "because", 1, 0),
        ("window", "window_closed", None, 1, 0),
    ]
    until = {row["title"]: row["until"] for row in seen["channels"]}
    assert datetime.fromisoformat(until["paused"]) == (await tenant.state(channels["paused"]))["paused_until"]
    assert datetime.fromisoformat(until["cooling"]) > datetime.now(UTC)
    assert until["window"] == "infinity"
    assert {until[name] for name in ("away", "disabled", "full", "open")} == {None}
    assert seen["oldest_due"]["channel_id"] == str(channels["open"])


async def test_of_all_workspaces_only_the_channels_that_hold_something_back_are_listed(database, tenant, operator):
    other = await Tenant.create(database.pool)
    closed, _ = await tenant.channel(), await other.channel()
    await operator.disable(closed)

    answer = await database.pool.fetchval("SELECT snapshot() #> '{workspaces}'")

    assert str(other.workspace) in answer
    assert str(closed) in answer
    assert answer.count('"channel_id"') == 1


async def test_a_snapshot_reads_nothing_of_what_was_sent(tenant, operator):
    """The plan of a prepared function body cannot be asked for; the pages it touches can."""
    channel = await tenant.channel()
    await tenant.backlog(channel, 5)
    await operator.snapshot()
    before = await touched(tenant)

    await tenant.db.execute(SENT, tenant.workspace, channel, 4000)
    after = await touched(tenant)

    assert after < before + 50


SENT = """
WITH content AS (
    INSERT INTO messages (workspace_id, content_hash, payload)
    SELECT $1, 'sent ' || n, '{}' FROM generate_series(1, $3::int) AS n
    RETURNING message_id, content_hash
), born AS (
    INSERT INTO deliveries (workspace_id, message_id, channel_id, hash_version, content_hash, status)
    SELECT $1, message_id, $2, 1, content_hash, 'deduped' FROM content
    RETURNING 1
)
SELECT count(*) FROM born
"""


async def touched(tenant: Tenant) -> int:
    """Pages, from the cache or not, of one snapshot."""
    rows = await tenant.db.fetch(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT TEXT) SELECT snapshot('{tenant.workspace}')")
    [line] = [row[0] for row in rows if "Buffers:" in row[0] and "Planning" not in row[0]][:1]
    return sum(int(word.split("=")[1]) for word in line.split() if word.startswith(("hit=", "read=")))


async def test_a_recount_finds_nothing_when_all_is_right_and_writes_nothing(tenant, operator):
    busy, closed, idle = await tenant.channels(3, max_parallel=1)
    await tenant.backlog(busy, 2)
    await tenant.claim()
    await tenant.claim()
    await tenant.backlog(closed, 1)
    await operator.pause(closed)
    before = [await tenant.due(channel) for channel in (busy, closed, idle)]

    assert await operator.recount() == []
    assert [await tenant.due(channel) for channel in (busy, closed, idle)] == before


async def test_a_place_that_was_lost_is_given_back(tenant, operator):
    channel = await tenant.channel(max_parallel=1)
    await tenant.backlog(channel, 1)
    await tenant.db.execute("UPDATE channel_counters SET total = total + 3 WHERE side = 'started'")
    assert await tenant.claim() == []

    found = await operator.recount()

    assert (channel, "in_flight", "3", "0") in found
    assert len(await tenant.claim()) == 1
    assert await operator.recount() == []


async def test_a_place_that_was_never_there_is_taken_back(tenant, operator):
    channel = await tenant.channel(max_parallel=1)
    await tenant.backlog(channel, 2)
    await tenant.claim()
    await tenant.db.execute("UPDATE channel_counters SET total = 0")

    assert await operator.recount() == [(channel, "in_flight", "0", "1")]
    assert await tenant.claim() == []


async def test_work_that_was_hidden_is_found(tenant, operator):
    channel, other = await tenant.channels(2)
    await tenant.backlog(channel, 1)
    await tenant.backlog(other, 1)
    await tenant.db.execute("UPDATE channel_due SET next_due_at = 'infinity' WHERE channel_id = $1", channel)
    await tenant.db.execute("DELETE FROM channel_due WHERE channel_id = $1", other)

    found = await operator.recount()

    assert sorted(row[:2] for row in found) == sorted([(channel, "due"), (other, "due"), (other, "group")])
    assert len(await tenant.claim()) == 2


async def test_a_channel_in_the_wrong_group_is_put_right(tenant, operator):
    channel = await tenant.channel()
    await tenant.backlog(channel, 1)
    await tenant.db.execute("UPDATE channel_due SET rate_group = 'elsewhere', waits_for_place = true")

    found = await operator.recount()

    assert {row[1] for row in found} == {"group", "due"}
    assert len(await tenant.claim()) == 1


async def test_a_recount_among_claims_and_commits_finds_no_fault(database, tenant, operator):
    """Both sides change in one transaction, so no moment shows a difference."""
    for rate in (None, 200, None):
        await tenant.channel(max_parallel=2, rate_rps=rate)
    until = asyncio.get_running_loop().time() + 2
    found = []

    async def work(connection, seed: int) -> None:
        mine, chance = tenant.on(connection), random.Random(seed)
        while asyncio.get_running_loop().time() < until:
            await mine.enqueue(max_attempts=1000)
            claims = await mine.claim(chance.randint(1, 9))
            endings = (sent, released, lambda claim: transient(claim, retry_after_ms=5))
            await mine.commit(*(chance.choice(endings)(claim) for claim in claims))

    async def look(connection) -> None:
        mine = Operator(tenant.on(connection))
        while asyncio.get_running_loop().time() < until:
            found.extend(await mine.recount())

    looker, *workers = [await database.connect() for _ in range(5)]
    await asyncio.gather(look(looker), *(work(worker, seed) for seed, worker in enumerate(workers)))

    assert found == []


async def test_two_recounts_correct_a_fault_once(database, tenant):
    channel = await tenant.channel(max_parallel=1)
    await tenant.backlog(channel, 1)
    await tenant.db.execute("UPDATE channel_counters SET total = total + 3 WHERE side = 'started'")
    operators = [Operator(tenant.on(await database.connect())) for _ in range(4)]

    found = await asyncio.gather(*(operator.recount() for operator in operators))

    assert sum(len(rows) for rows in found) == 1
