"""What a failure does beyond its delivery: streaks, pauses, and waits that a provider asked for."""

from datetime import UTC, datetime, timedelta

import pytest
from db.support.builders import permanent, sent, transient


async def claims_of(tenant, count: int, **columns) -> list:
    await tenant.backlog(await tenant.channel(**columns), count)
    claims = await tenant.claim()
    assert len(claims) == count
    return claims


async def group_gate(tenant):
    return await tenant.db.fetchval("SELECT next_allowed_at FROM platform_limits")


def actions(events) -> list[str]:
    return [event["what"] for event in events]


async def test_a_channel_that_fails_is_paused_and_at_the_third_time_disabled_once(tenant):
    claims = await claims_of(tenant, 4)
    seen = []

    for claim in claims:
        await tenant.commit(permanent(claim, "channel", code="403"))
        state = await tenant.state(claim["channel_id"])
        seen.append((state["error_streak"], state["paused_until"] > datetime.now(UTC), state["enabled"]))

    assert seen == [(1, True, True), (2, True, True), (3, True, False), (4, True, False)]
    assert actions(await tenant.events("channel_disabled")) == ["channel_disabled"]
    assert len(await tenant.events("channel_paused")) == 4


async def test_the_failure_is_told_before_its_consequences(tenant):
    claims = await claims_of(tenant, 1)

    await tenant.commit(permanent(claims[0], "channel"), streak=1)

    told = actions(await tenant.events())[-3:]
    assert told == ["failed_permanent", "channel_paused", "channel_disabled"]


async def test_the_length_of_the_pause_and_the_streak_are_the_callers(tenant):
    [claim] = await claims_of(tenant, 1)

    await tenant.commit(permanent(claim, "channel"), pause=timedelta(hours=6), streak=1)

    state = await tenant.state(claim["channel_id"])
    assert state["paused_until"] - state["updated_at"] == timedelta(hours=6)
    assert state["enabled"] is False


async def test_a_pause_is_never_made_shorter(tenant):
    [claim] = await claims_of(tenant, 1)
    until = datetime.now(UTC) + timedelta(days=30)
    await tenant.set_channel(claim["channel_id"], "paused_until = $3", until)

    await tenant.commit(permanent(claim, "channel"))

    assert (await tenant.state(claim["channel_id"]))["paused_until"] == until


async def test_a_post_that_arrives_ends_the_streak(tenant):
    first, second, third = await claims_of(tenant, 3)
    await tenant.commit(permanent(first, "channel"))
    await tenant.commit(permanent(second, "channel"))

    await tenant.commit(sent(third))

    assert (await tenant.state(first["channel_id"]))["error_streak"] == 0


async def test_without_a_streak_a_post_that_arrives_writes_no_channel(tenant):
    [claim] = await claims_of(tenant, 1)
    query = "SELECT xmin::text FROM channels"
    before = await tenant.db.fetchval(query)

    await tenant.commit(sent(claim))

    assert await tenant.db.fetchval(query) == before


UNTOUCHED = {
    "a permanent failure of the delivery": (permanent, {"scope": "delivery"}),
    "a permanent failure of the platform": (permanent, {"scope": "platform"}),
    "a transient failure of the delivery": (transient, {"scope": "delivery"}),
    "a transient failure of the channel": (transient, {"scope": "channel"}),
    "a transient failure of the channel with a wait": (transient, {"scope": "channel", "retry_after_ms": 1000}),
    "a transient failure of the platform": (transient, {"scope": "platform"}),
}


async def test_only_permanent_failures_of_the_channel_count(tenant):
    for name, (ending, fields) in UNTOUCHED.items():
        [claim] = await claims_of(tenant, 1)
        await tenant.set_channel(claim["channel_id"], "error_streak = 2")

        await tenant.commit(ending(claim, **fields))

        state = await tenant.state(claim["channel_id"])
        assert (state["error_streak"], state["paused_until"], state["enabled"]) == (2, None, True), name
        await tenant.db.execute("UPDATE platform_limits SET next_allowed_at = NULL")


async def test_a_wait_asked_of_the_bot_holds_the_whole_group(tenant):
    [claim] = await claims_of(tenant, 1)
    await tenant.backlog(await tenant.channel(), 1)

    await tenant.commit(transient(claim, "platform", code="429", retry_after_ms=7000), jitter=0)

    row = await tenant.delivery(claim["delivery_id"])
    assert await group_gate(tenant) == row["updated_at"] + timedelta(seconds=7) == row["next_retry_at"]
    assert await tenant.claim() == []
    assert await tenant.next_due_at() == await group_gate(tenant)


async def test_a_wait_asked_of_the_channel_holds_only_the_channel(tenant):
    first, _second = await claims_of(tenant, 2)
    await tenant.backlog(first["channel_id"], 1)
    sibling = await tenant.channel()
    await tenant.backlog(sibling, 1)

    await tenant.commit(transient(first, "channel", code="429", retry_after_ms=7000), jitter=0)

    gate = (await tenant.state(first["channel_id"]))["next_allowed_at"]
    assert gate == (await tenant.delivery(first["delivery_id"]))["next_retry_at"]
    assert [claim["channel_id"] for claim in await tenant.claim()] == [sibling]
    assert await group_gate(tenant) is None
    assert await tenant.next_due_at() == gate


@pytest.mark.parametrize("code", ["502", "timeout"])
async def test_an_error_without_a_wait_delays_only_its_own_delivery(tenant, code):
    [claim] = await claims_of(tenant, 1)
    await tenant.backlog(claim["channel_id"], 1)

    await tenant.commit(transient(claim, "platform", code=code))

    assert await group_gate(tenant) is None
    assert len(await tenant.claim()) == 1


async def test_a_permanent_failure_of_the_platform_cools_the_group_for_a_minute(tenant):
    [claim] = await claims_of(tenant, 1)

    await tenant.commit(permanent(claim, "platform"))

    row = await tenant.delivery(claim["delivery_id"])
    assert await group_gate(tenant) == row["updated_at"] + timedelta(seconds=60)


async def test_a_wait_never_brings_a_gate_forward(tenant):
    [claim] = await claims_of(tenant, 1)
    later = datetime.now(UTC) + timedelta(hours=1)
    await tenant.db.execute("UPDATE platform_limits SET next_allowed_at = $1", later)

    await tenant.commit(transient(claim, "platform", retry_after_ms=1000))

    assert await group_gate(tenant) == later


MIXED = {
    "three failures at once": (["fail", "fail", "fail"], 0, (3, False)),
    "a success breaks the streak, a failure starts another": (["sent", "fail"], 2, (1, True)),
    "in whatever order they were reported": (["fail", "sent"], 2, (1, True)),
    "a failure of one delivery beside one of the channel": (["delivery", "fail"], 0, (1, True)),
    "a success beside a failure of one delivery": (["sent", "delivery"], 2, (0, True)),
    "a success beside a wait": (["sent", "wait"], 2, (0, True)),
    "a success beside a transient failure": (["sent", "transient"], 1, (0, True)),
}
ENDINGS = {
    "sent": sent,
    "delivery": permanent,
    "fail": lambda claim: permanent(claim, "channel"),
    "wait": lambda claim: transient(claim, "channel", retry_after_ms=1000),
    "transient": lambda claim: transient(claim, "channel"),
}


async def test_several_endings_of_one_channel_in_one_batch(tenant):
    found = {}

    for name, (endings, streak, _) in MIXED.items():
        claims = await claims_of(tenant, len(endings))
        channel = claims[0]["channel_id"]
        await tenant.set_channel(channel, "error_streak = $3", streak)
        await tenant.commit(*(ENDINGS[end](claim) for end, claim in zip(endings, claims, strict=True)))
        state = await tenant.state(channel)
        found[name] = (state["error_streak"], state["enabled"])

    assert found == {name: expected for name, (_, _, expected) in MIXED.items()}


async def test_several_channels_in_one_batch_are_judged_apart(tenant):
    bad, good = await tenant.channels(2)
    await tenant.backlog(bad, 1)
    await tenant.backlog(good, 1)
    claims = await tenant.claim()

    await tenant.commit(*(permanent(c, "channel") if c["channel_id"] == bad else sent(c) for c in claims))

    assert (await tenant.state(bad))["error_streak"] == 1
    assert (await tenant.state(good))["paused_until"] is None


async def test_a_credential_that_three_channels_are_refused_for_cools_the_group_instead(tenant):
    """An account-wide ban must not disable all channels: the first two are punished, then it is the token."""
    channels = await tenant.channels(4)
    for channel in channels:
        await tenant.backlog(channel, 1)
    claims = await tenant.claim()
    before = await group_gate(tenant)

    for claim in claims:
        await tenant.commit(permanent(claim, "channel", code="unauthorized"), streak=1)

    states = [await tenant.state(claim["channel_id"]) for claim in claims]
    assert [state["enabled"] for state in states] == [False, False, True, True]
    assert [state["error_streak"] for state in states] == [1, 1, 0, 0]
    assert await group_gate(tenant) > (before or datetime.now(UTC)) + timedelta(seconds=50)
    cooled = await tenant.db.fetch(
        "SELECT meta -> 'group_cooled' AS cooled FROM events WHERE action = 'failed_permanent' ORDER BY seq"
    )
    assert [row["cooled"] for row in cooled] == [None, None, "true", "true"]


async def test_three_channels_that_fail_in_one_batch_are_a_storm_at_once(tenant):
    channels = await tenant.channels(3)
    for channel in channels:
        await tenant.backlog(channel, 1)
    claims = await tenant.claim()

    await tenant.commit(*(permanent(claim, "channel", code="unauthorized") for claim in claims))

    assert [(await tenant.state(channel))["paused_until"] for channel in channels] == [None] * 3
    assert await group_gate(tenant) > datetime.now(UTC) + timedelta(seconds=50)


@pytest.mark.parametrize("difference", ["another code", "an older failure", "another group"])
async def test_what_is_not_the_same_credential_now_is_no_storm(tenant, difference):
    channels = await tenant.channels(3)
    if difference == "another group":
        await tenant.set_channel(channels[0], "rate_group = 'other'")
    for channel in channels:
        await tenant.backlog(channel, 1)
    claims = {claim["channel_id"]: claim for claim in await tenant.claim()}
    first = "chat_not_found" if difference == "another code" else "unauthorized"
    await tenant.commit(permanent(claims[channels[0]], "channel", code=first))
    if difference == "an older failure":
        await tenant.db.execute("ALTER TABLE events DISABLE TRIGGER events_are_append_only")
        await tenant.db.execute("UPDATE events SET ts = ts - interval '61 seconds' WHERE action = 'failed_permanent'")

    for channel in channels[1:]:
        await tenant.commit(permanent(claims[channel], "channel", code="unauthorized"))

    assert [(await tenant.state(channel))["error_streak"] for channel in channels] == [1, 1, 1]


async def test_a_chat_that_has_moved_is_followed_at_once_and_costs_nothing(tenant):
    claims = await claims_of(tenant, 2, max_parallel=2)
    moved = {"code": "chat_migrated", "migrated_to": "-100200"}

    for claim in claims:
        await tenant.commit(transient(claim, "delivery", **moved))

    state = await tenant.state(claims[0]["channel_id"])
    assert (state["target_id"], state["error_streak"], state["paused_until"]) == ("-100200", 0, None)
    assert len(await tenant.events("channel_migrated")) == 1
    again = await tenant.claim()
    assert {claim["target_id"] for claim in again} == {"-100200"}
    assert {claim["attempt"] for claim in again} == {2}


async def test_a_chat_that_has_moved_to_where_another_channel_is_stays_as_it_was(tenant):
    [claim] = await claims_of(tenant, 1)
    await tenant.set_channel(await tenant.channel(), "target_id = '-100200'")

    verdicts = await tenant.commit(transient(claim, "delivery", code="chat_migrated", migrated_to="-100200"))

    assert [verdict["verdict"] for verdict in verdicts] == ["committed"]
    assert (await tenant.state(claim["channel_id"]))["target_id"] != "-100200"
    assert await tenant.events("channel_migrated") == []


@pytest.mark.parametrize("scope", ["channel", "platform"])
async def test_a_transient_failure_that_names_no_wait_closes_no_gate(tenant, scope):
    [claim] = await claims_of(tenant, 1)
    before = await tenant.state(claim["channel_id"])

    await tenant.commit(transient(claim, scope))

    after = await tenant.state(claim["channel_id"])
    assert (after["next_allowed_at"], await group_gate(tenant)) == (before["next_allowed_at"], None)
