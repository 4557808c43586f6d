"""When a claim is next worth it: exact enough that nobody has to ask in between, and silent when nothing waits."""

from datetime import UTC, datetime, timedelta

import pytest
from db.support.builders import NEVER, Tenant, sent, transient

LATER = datetime.now(UTC) + timedelta(hours=1)


async def test_after_a_drain_nothing_is_due_and_nothing_is_written(tenant):
    channels = await tenant.channels(3, rate_rps=1, max_parallel=1)
    for channel in channels:
        await tenant.backlog(channel, 1)
    assert await tenant.drain() == 3
    await tenant.claim(now=datetime.now(UTC) + timedelta(seconds=5))
    before = [await tenant.due(channel) for channel in channels]

    await tenant.claim(now=datetime.now(UTC) + timedelta(seconds=10))

    assert await tenant.next_due_at() == NEVER
    assert [await tenant.due(channel) for channel in channels] == before


async def test_a_new_channel_is_looked_at_once(tenant):
    channel = await tenant.channel()
    await tenant.claim()
    before = await tenant.due(channel)

    await tenant.claim()

    assert before["next_due_at"] == NEVER
    assert await tenant.due(channel) == before


async def test_the_gate_of_the_channel(tenant):
    channel = await tenant.channel(rate_rps=0.1)
    await tenant.backlog(channel, 2)

    claim = await tenant.claim_one()

    assert claim["next_due_at"] == await tenant.next_due_at() == (await tenant.state(channel))["next_allowed_at"]
    assert claim["next_due_at"] - claim["slot_at"] == timedelta(seconds=10)


async def test_the_gate_of_the_group(tenant):
    await tenant.group(0.1)
    for channel in await tenant.channels(2):
        await tenant.backlog(channel, 1)

    claim = await tenant.claim_one()

    assert claim["next_due_at"] - claim["slot_at"] == timedelta(seconds=10)
    assert await tenant.next_due_at() == claim["next_due_at"]


async def test_a_retry(tenant):
    channel = await tenant.channel()
    await tenant.backlog(channel, 1)

    [verdict] = await tenant.commit(transient(await tenant.claim_one()))

    await tenant.claim()
    assert await tenant.next_due_at() == verdict["next_retry_at"]


async def test_the_end_of_a_pause(tenant):
    channel = await tenant.channel(paused_until=LATER)
    await tenant.backlog(channel, 1)

    await tenant.claim()

    assert await tenant.next_due_at() == LATER
    assert len(await tenant.claim(now=LATER)) == 1
    tenant.now = LATER


async def test_the_opening_of_a_window(tenant):
    day = datetime.now(UTC).date() + timedelta(days=2)
    window = {day.strftime("%a").lower(): [["09:30", "10:00"]]}
    channel = await tenant.channel(window_mode="windowed", posting_window=window, timezone="UTC")
    await tenant.backlog(channel, 1)

    await tenant.claim()

    opens = datetime(day.year, day.month, day.day, 9, 30, tzinfo=UTC)
    assert await tenant.next_due_at() == opens
    assert len(await tenant.claim(now=opens)) == 1
    tenant.now = opens


async def test_a_row_outside_its_window_is_not_written_again_and_again(tenant):
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%a").lower()
    channel = await tenant.channel(window_mode="windowed", posting_window={tomorrow: [["00:00", "24:00"]]})
    await tenant.backlog(channel, 3)
    await tenant.claim()
    query = "SELECT xmin::text FROM delivery_queue UNION ALL SELECT xmin::text FROM deliveries"
    before = [row[0] for row in await tenant.db.fetch(query)], await tenant.due(channel)

    await tenant.claim()

    assert ([row[0] for row in await tenant.db.fetch(query)], await tenant.due(channel)) == before


HEARD = {
    "resumed": ("paused_until = 'infinity'", "paused_until = NULL"),
    "enabled": ("enabled = false", "enabled = true"),
    "given another window": (
        "window_mode = 'windowed', posting_window = '{}'",
        "window_mode = 'immediate'",
    ),
    "given more places": ("max_parallel = 1", "max_parallel = 5"),
    "moved to another group": ("rate_group = 'cooling'", "rate_group = 'bot'"),
    "given a shorter pause": (
        "paused_until = now() + interval '9 hours'",
        "paused_until = now() - interval '1 second'",
    ),
}


@pytest.mark.parametrize(("closing", "opening"), HEARD.values(), ids=HEARD)
async def test_a_channel_that_an_operator_opens_is_heard_on_the_next_claim(tenant, closing, opening):
    channel = await tenant.channel()
    await tenant.channel(rate_group="cooling")
    await tenant.db.execute("UPDATE platform_limits SET next_allowed_at = 'infinity' WHERE rate_group = 'cooling'")
    await tenant.set_channel(channel, closing)
    await tenant.backlog(channel, 3)
    held = [*await tenant.claim(), *await tenant.claim()]

    await tenant.set_channel(channel, opening)

    assert await tenant.next_due_at() <= datetime.now(UTC)
    assert len(held) + len(await tenant.claim()) == 3


async def test_a_sleeper_that_an_operator_took_wakes_nobody(tenant):
    """It is not waiting any more, so no time of its own makes a claim worth it."""
    channel = await tenant.channel()
    [delivery] = await tenant.backlog(channel, 1)
    await tenant.commit(transient(await tenant.claim_one(), retry_after_ms=20), jitter=0)
    due = (await tenant.delivery(delivery))["next_retry_at"]
    await tenant.set_delivery(delivery, "status = 'claimed', claimed_at = now()")

    await tenant.claim(now=due + timedelta(seconds=1))

    assert await tenant.next_due_at() == NEVER


async def test_due_workspaces_come_in_turn(tenant):
    tenants = [tenant, await Tenant.create(tenant.db), await Tenant.create(tenant.db)]
    for each in tenants:
        await each.backlog(await each.channel(rate_rps=100), 3)
    for each in (tenants[1], tenants[0]):
        await each.claim(1)

    rows = await tenant.db.fetch("SELECT workspace_id FROM due_workspaces()")

    assert [row["workspace_id"] for row in rows] == [tenants[n].workspace for n in (2, 1, 0)]


async def test_a_finished_workspace_is_not_due(tenant):
    channel = await tenant.channel()
    await tenant.backlog(channel, 1)
    await tenant.commit(sent(await tenant.claim_one()))
    await tenant.claim()

    assert list(await tenant.db.fetch("SELECT * FROM due_workspaces()")) == []


async def test_however_many_wait_for_their_time_what_is_due_comes_first(tenant):
    """They are never claimed, so by their last claim alone they would always be first."""
    for hours in (2, 1):
        waiting = await Tenant.create(tenant.db)
        await waiting.backlog(await waiting.channel(paused_until=datetime.now(UTC) + timedelta(hours=hours)), 1)
        await waiting.claim()
        await tenant.db.execute("DELETE FROM workspace_due")
    channel = await tenant.channel(rate_rps=100)
    await tenant.backlog(channel, 3)
    await tenant.claim(1)
    await tenant.db.execute("UPDATE channel_due SET next_due_at = now() WHERE channel_id = $1", channel)

    rows = await tenant.db.fetch("SELECT * FROM due_workspaces()")

    assert len(rows) == 3
    assert rows[0]["workspace_id"] == tenant.workspace
    assert rows[1]["next_due_at"] < rows[2]["next_due_at"]
    [first] = await tenant.db.fetch("SELECT * FROM due_workspaces(1)")
    assert first["workspace_id"] == tenant.workspace


async def test_the_poll_knows_when_as_each_workspace_does(tenant):
    tenants = [tenant, await Tenant.create(tenant.db)]
    for rate, each in enumerate(tenants, 1):
        await each.group(0.1 * rate)
        await each.group(None, name="other")
        for group in ("bot", "other"):
            await each.backlog(await each.channel(rate_rps=0.01 * rate, rate_group=group), 2)
        await each.claim()

    rows = await tenant.db.fetch("SELECT * FROM due_workspaces()")

    assert {row["workspace_id"]: row["next_due_at"] for row in rows} == {
        each.workspace: await each.next_due_at() for each in tenants
    }
