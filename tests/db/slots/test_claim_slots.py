"""Rate slots on both levels, on a clock that the test moves: no burst, no gap, and nobody twice before all once."""

import random
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from db.support.builders import Tenant, sent, transient

START = datetime.now(UTC) + timedelta(days=1)  # later than anything a test enqueues, however long the run
TOLERANCE = timedelta(milliseconds=50)


async def simulate(tenant: Tenant, seconds: float, *, at=None, limit: int = 100) -> list:
    """Claims whenever next_due_at says so, on the test's own clock; everything is sent at once."""
    now, until, claimed = at or START, (at or START) + timedelta(seconds=seconds), []
    while now < until:
        claims = await tenant.claim(limit, now=now)
        claimed += claims
        await tenant.commit(*(sent(claim) for claim in claims))
        due = await tenant.db.fetchval("SELECT least(next_due_at($1), $2)", tenant.workspace, until)
        now = max(due, now + timedelta(milliseconds=1))
    tenant.now = now
    return claimed


def spans(slots: list, step: timedelta) -> list[str]:
    """Every n + 1 slots that span less than n steps, but for the tolerance."""
    slots = sorted(slots)
    return [
        f"{j - i + 1} slots in {slots[j] - slots[i]}"
        for i in range(len(slots))
        for j in range(i + 1, min(i + 40, len(slots)))
        if slots[j] - slots[i] < (j - i) * step - TOLERANCE
    ]


def per_channel(claims: list) -> dict:
    slots = defaultdict(list)
    for claim in claims:
        slots[claim["channel_id"]].append(claim["slot_at"])
    return slots


async def test_a_channel_keeps_its_distance_over_a_backlog(tenant):
    channel = await tenant.channel(rate_rps=0.9)
    await tenant.backlog(channel, 40)

    claims = await simulate(tenant, 30)

    assert spans([claim["slot_at"] for claim in claims], timedelta(seconds=1 / 0.9)) == []
    assert len(claims) == 28  # 27 steps, and the one at the start


async def test_a_group_keeps_its_distance_and_is_used_up(tenant):
    await tenant.group(27)
    for channel in await tenant.channels(20):
        await tenant.backlog(channel, 8)

    claims = await simulate(tenant, 5)

    assert spans([claim["slot_at"] for claim in claims], timedelta(seconds=1 / 27)) == []
    assert len(claims) >= 27 * 5


async def test_both_levels_hold_at_once(tenant):
    await tenant.group(9)
    for channel in await tenant.channels(12, rate_rps=0.9):
        await tenant.backlog(channel, 10)

    claims = await simulate(tenant, 8)

    assert spans([claim["slot_at"] for claim in claims], timedelta(seconds=1 / 9)) == []
    for slots in per_channel(claims).values():
        assert spans(slots, timedelta(seconds=1 / 0.9)) == []
    assert len(claims) >= 8 * 9


@pytest.mark.parametrize("rate", [27, 0.9])
async def test_idling_earns_no_burst(tenant, rate):
    channel = await tenant.channel(rate_rps=rate)
    await tenant.group(rate)
    await tenant.backlog(channel, 60)
    chance, claims, now = random.Random(1), [], START

    for _ in range(8):
        claims += await simulate(tenant, 0.2, at=now)
        now += timedelta(seconds=chance.choice([0.3, 2, 11, 60]))

    assert spans([claim["slot_at"] for claim in claims], timedelta(seconds=1 / rate)) == []


async def test_an_idle_channel_and_three_posts_go_out_one_by_one(tenant):
    channel = await tenant.channel(rate_rps=1)
    await tenant.backlog(channel, 1)
    await simulate(tenant, 1)
    await tenant.backlog(channel, 3)

    claims = await simulate(tenant, 5, at=START + timedelta(minutes=10))

    gaps = [b["slot_at"] - a["slot_at"] for a, b in pairwise(claims)]
    assert len(gaps) == 2
    assert min(gaps) >= timedelta(seconds=1) - TOLERANCE


async def take_slot(tenant, claim, now=None, missed=None, beside=False):
    """When, and whether it is taken."""
    fence = (tenant.workspace, claim["delivery_id"], claim["claim_token"])
    query = "SELECT * FROM take_slot($1, $2, $3, p_now => $4, p_missed => $5, p_beside => $6)"
    row = await tenant.db.fetchrow(query, *fence, now, missed, beside)
    return row and tuple(row)


async def group_gate(tenant):
    return await tenant.db.fetchval("SELECT next_allowed_at FROM platform_limits")


async def test_every_call_of_a_plan_takes_a_slot_of_its_own_on_both_levels(tenant):
    """In between, another channel of the group gets the slot that would otherwise be wasted."""
    await tenant.group(3)
    first, second = await tenant.channels(2, rate_rps=1)
    await tenant.backlog(first, 1, calls=3)
    await tenant.backlog(second, 1)

    claims = {}
    for third in range(3):
        claims |= {
            claim["channel_id"]: claim for claim in await tenant.claim(now=START + third * timedelta(seconds=0.34))
        }
    slots = [claims[first]["slot_at"]]
    for _ in range(2):
        named, taken = await take_slot(tenant, claims[first], slots[-1] + timedelta(milliseconds=400))
        assert not taken
        slot, taken = await take_slot(tenant, claims[first], named)
        assert taken
        slots.append(slot)

    assert [b - a for a, b in pairwise(slots)] == [timedelta(seconds=1)] * 2
    assert abs(claims[second]["slot_at"] - slots[0]) < timedelta(seconds=1)
    assert (await tenant.state(first))["next_allowed_at"] == slots[-1] + timedelta(seconds=1)
    group = await group_gate(tenant)
    assert group - slots[-1] == pytest.approx(timedelta(seconds=1 / 3), abs=timedelta(microseconds=10))
    tenant.now = group


async def test_a_slot_is_not_in_the_past_and_waits_for_the_group(tenant):
    await tenant.group(1)
    channel = await tenant.channel(rate_rps=None)
    await tenant.backlog(channel, 1, calls=2)
    [claim] = await tenant.claim(now=START)

    slot = await take_slot(tenant, claim, START + timedelta(milliseconds=100))

    assert slot == (claim["slot_at"] + timedelta(seconds=1), True)
    assert await take_slot(tenant, claim, START + timedelta(minutes=1)) == (START + timedelta(minutes=1), True)
    tenant.now = START + timedelta(minutes=1)


async def test_a_slot_that_is_far_away_is_told_and_not_taken(tenant):
    await tenant.group(1)
    await tenant.backlog(await tenant.channel(rate_rps=None), 1, calls=2)
    [claim] = await tenant.claim(now=START)
    cooled = START + timedelta(minutes=1)
    await tenant.db.execute("UPDATE platform_limits SET next_allowed_at = $1", cooled)

    assert await take_slot(tenant, claim, START) == (cooled, False)
    assert await group_gate(tenant) == cooled
    tenant.now = cooled


async def test_a_channel_that_opens_later_takes_no_slot_of_its_group_before(tenant):
    """A slot three seconds ahead, charged to the group now, kept forty channels waiting for three seconds."""
    await tenant.group(10)
    await tenant.backlog(await tenant.channel(rate_rps=0.3), 1, calls=2)
    [claim] = await tenant.claim(now=START)
    gates = await group_gate(tenant), await tenant.state(claim["channel_id"])

    slot, taken = await take_slot(tenant, claim, START + timedelta(seconds=1))

    assert (slot, taken) == (gates[1]["next_allowed_at"], False)
    assert (await group_gate(tenant), await tenant.state(claim["channel_id"])) == gates
    assert await take_slot(tenant, claim, slot) == (slot, True)
    tenant.now = slot


async def test_a_slot_that_was_missed_is_given_back_to_its_call(tenant):
    await tenant.group(10)
    channel = await tenant.channel(rate_rps=0.3)
    await tenant.backlog(channel, 1)
    [claim] = await tenant.claim(now=START)
    later, missed = START + timedelta(seconds=0.2), claim["slot_at"]

    assert await take_slot(tenant, claim, later, missed=missed) == (later, True)
    assert (await tenant.state(channel))["next_allowed_at"] - later == pytest.approx(
        timedelta(seconds=1 / 0.3), abs=timedelta(microseconds=10)
    )
    tenant.now = later


async def test_a_slot_that_was_missed_is_not_given_back_when_another_was_taken_after_it(tenant):
    await tenant.group(10)
    channel = await tenant.channel(rate_rps=1, max_parallel=2)
    await tenant.backlog(channel, 2)
    [claim] = await tenant.claim(now=START)
    [after] = await tenant.claim(now=START + timedelta(seconds=1))

    slot, taken = await take_slot(tenant, claim, START + timedelta(seconds=1.2), missed=claim["slot_at"])

    assert (slot, taken) == (after["slot_at"] + timedelta(seconds=1), False)
    tenant.now = slot


async def test_a_claim_that_passed_on_gets_no_slot(tenant):
    channel = await tenant.channel(rate_rps=1)
    await tenant.backlog(channel, 1, calls=2)
    [claim] = await tenant.claim(now=START)
    gate = (await tenant.state(channel))["next_allowed_at"]
    await tenant.commit(transient(claim, retry_after_ms=0), jitter=0)

    assert await take_slot(tenant, claim, START) is None
    assert (await tenant.state(channel))["next_allowed_at"] == gate


async def test_a_gate_that_gave_nothing_is_not_moved(tenant):
    busy, idle = await tenant.channel(rate_rps=1), await tenant.channel(rate_rps=1, rate_group="other")
    await tenant.group(5, "other")
    await tenant.backlog(busy, 1)

    await tenant.claim()

    assert (await tenant.state(idle))["next_allowed_at"] is None
    assert await tenant.db.fetchval("SELECT next_allowed_at FROM platform_limits WHERE rate_group = 'other'") is None


@pytest.mark.parametrize("rate", [None, 0])
async def test_no_rate_means_no_limit_and_writes_no_gate(tenant, rate):
    channel = await tenant.channel(rate_rps=rate)
    await tenant.group(rate)
    await tenant.backlog(channel, 50)

    assert len(await tenant.claim()) == 50
    assert (await tenant.state(channel))["next_allowed_at"] is None


async def test_a_cooldown_is_kept_where_there_is_no_rate(tenant):
    channel = await tenant.channel()
    await tenant.backlog(channel, 1)
    await tenant.db.execute("UPDATE platform_limits SET next_allowed_at = $1", START)

    early = await tenant.claim(now=START - timedelta(milliseconds=1))
    late = await tenant.claim(now=START)

    assert (len(early), len(late)) == (0, 1)
    tenant.now = START


async def test_a_group_serves_its_channels_in_turn(tenant):
    await tenant.group(27)
    channels = await tenant.channels(20)
    for channel in channels:
        await tenant.backlog(channel, 12)

    claims = await simulate(tenant, 6)

    served = Counter(claim["channel_id"] for claim in claims)
    assert set(served) == set(channels)
    assert max(served.values()) - min(served.values()) <= 1


async def test_channels_with_a_backlog_take_turns_when_a_claim_looks_at_a_few_of_them(tenant):
    await tenant.group(None)
    channels = await tenant.channels(12, max_parallel=1000)
    for channel in channels:
        await tenant.backlog(channel, 150)

    claims = await simulate(tenant, 0.012)

    served = Counter(claim["channel_id"] for claim in claims)
    assert len(claims) == 12 * 100
    assert max(served.values()) - min(served[channel] for channel in channels) <= 32  # a turn


async def test_a_channel_with_one_post_is_not_lost_among_long_queues(tenant):
    await tenant.group(10)
    for channel in await tenant.channels(10):
        await tenant.backlog(channel, 30)
    await simulate(tenant, 1)
    small = await tenant.channel()
    await tenant.backlog(small, 1)

    claims = await simulate(tenant, 1.3, at=tenant.now)

    assert small in {claim["channel_id"] for claim in claims}


async def test_a_call_beside_the_chat_is_charged_to_the_group_alone(tenant):
    await tenant.group(10)
    channel = await tenant.channel(rate_rps=1)
    await tenant.backlog(channel, 1)
    [claim] = await tenant.claim(now=START)
    gate = (await tenant.state(channel))["next_allowed_at"]

    slots = [await take_slot(tenant, claim, START, beside=True) for _ in range(2)]

    assert [slot - claim["slot_at"] for slot, _ in slots] == [timedelta(seconds=0.1), timedelta(seconds=0.2)]
    assert all(taken for _, taken in slots)
    assert (await tenant.state(channel))["next_allowed_at"] == gate
    tenant.now = START + timedelta(minutes=1)


async def end_upload(tenant, channel, now):
    await tenant.db.execute("SELECT end_upload($1, $2, $3)", tenant.workspace, channel, now)


async def test_after_an_upload_the_next_call_keeps_its_distance_from_the_end(tenant):
    await tenant.group(10)
    channel = await tenant.channel(rate_rps=0.9)
    await tenant.backlog(channel, 2)
    [claim] = await tenant.claim(now=START)
    end = START + timedelta(seconds=5)

    await end_upload(tenant, channel, end)
    await tenant.commit(sent(claim))

    [following] = await simulate(tenant, 3, at=end)
    assert following["slot_at"] - end >= timedelta(seconds=1 / 0.9)


async def test_the_end_of_an_upload_opens_no_gate_earlier(tenant):
    await tenant.group(10)
    channel = await tenant.channel(rate_rps=0.9)
    later = START + timedelta(minutes=1)
    await tenant.set_channel(channel, "next_allowed_at = $3", later)
    await tenant.db.execute("UPDATE platform_limits SET next_allowed_at = $1", later)

    await end_upload(tenant, channel, START)

    assert (await tenant.state(channel))["next_allowed_at"] == later
    assert await group_gate(tenant) == later + timedelta(seconds=0.1)
    tenant.now = later + timedelta(minutes=1)


async def test_uploads_that_end_together_count_as_calls_of_their_group_at_that_time(tenant):
    """Their slots were long before; what is claimed in the same second makes room for them."""
    await tenant.group(10)
    uploading = await tenant.channels(5, rate_rps=0.9)
    await tenant.backlog(await tenant.channel(), 20)

    for channel in uploading:
        await end_upload(tenant, channel, START)

    claims = await simulate(tenant, 0.99, at=START)
    assert len(claims) <= 10 - len(uploading)


async def test_without_rates_the_end_of_an_upload_is_nothing_to_note(tenant):
    await tenant.group(None)
    channel = await tenant.channel(rate_rps=None)

    await end_upload(tenant, channel, START)

    assert (await tenant.state(channel))["next_allowed_at"] is None
    assert await group_gate(tenant) is None
