"""Claim: what is handed out is already sending, oldest first, and what must wait holds nobody back."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from unittest.mock import ANY
from uuid import uuid4

import pytest
from db.support.builders import NEVER, permanent, sent, transient


async def test_a_claimed_delivery_is_sending_before_anybody_sees_it(tenant):
    channel = await tenant.channel(settings={"silent": True}, target_id="-100")
    [delivery] = await tenant.backlog(channel, 1)
    run_id = uuid4()

    [claim] = await tenant.claim(run_id=run_id, lease=timedelta(seconds=60))

    row = await tenant.delivery(delivery)
    [event] = await tenant.events("send_attempt")
    assert (row["status"], row["attempt"], row["claim_token"]) == ("sending", 1, claim["claim_token"])
    assert row["sending_lease_until"] - row["sending_started_at"] == timedelta(seconds=60)
    assert (claim["attempt"], claim["target_id"], claim["settings"]) == (1, "-100", {"silent": True})
    assert claim["sending_lease_until"] == row["sending_lease_until"]
    assert (event["attempt"], event["ended"]) == (1, "ok")
    meta = json.loads(event["meta"])
    assert (meta["run_id"], meta["idempotency_key"]) == (str(run_id), str(delivery))


async def test_every_claim_has_a_token_of_its_own(tenant):
    channel = await tenant.channel()
    await tenant.backlog(channel, 4)

    first, second = await tenant.claim(2), await tenant.claim(2)

    assert len({claim["claim_token"] for claim in first}) == 1
    assert first[0]["claim_token"] != second[0]["claim_token"]


async def test_a_channel_hands_out_its_oldest_first(tenant):
    channel = await tenant.channel()
    oldest_first = await tenant.backlog(channel, 5)

    claims = [*await tenant.claim(2), *await tenant.claim(2), *await tenant.claim(2)]

    assert [claim["delivery_id"] for claim in claims] == oldest_first


async def test_a_retry_that_came_due_takes_its_place_by_age(tenant):
    channel = await tenant.channel()
    oldest, *others = await tenant.backlog(channel, 3)
    [claim] = await tenant.claim(1)
    await tenant.commit(transient(claim, retry_after_ms=0), jitter=0)

    claims = await tenant.claim(3)

    assert [claim["delivery_id"] for claim in claims] == [oldest, *others]
    assert [claim["attempt"] for claim in claims] == [2, 1, 1]


async def test_a_claim_hands_out_no_more_than_it_was_asked_for(tenant):
    for channel in await tenant.channels(7):
        await tenant.backlog(channel, 3)

    counts = [len(await tenant.claim(limit)) for limit in (1, 4, 10, 100)]

    assert counts == [1, 4, 10, 6]


async def test_of_channels_with_a_post_each_a_claim_takes_as_many_as_it_may(tenant):
    await tenant.channels(120, max_parallel=100)
    await tenant.enqueue("one post for all")

    assert len(await tenant.claim(100)) == 100


async def test_of_channels_with_a_backlog_a_few_give_much_and_then_the_others_do(tenant):
    channels = await tenant.channels(60, max_parallel=100)
    for channel in channels:
        await tenant.backlog(channel, 40)

    claims = [await tenant.claim(100) for _ in range(12)]

    served = [{claim["channel_id"] for claim in batch} for batch in claims]
    assert len(served[0]) == len(channels)
    assert max(map(len, served[4:])) < 15
    assert [len(batch) for batch in claims] == [100] * 12
    assert set.union(*served) == set(channels)


async def test_what_must_wait_holds_nobody_back(tenant):
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%a").lower()
    await tenant.group(0.01, "slow")
    free = await tenant.channel()
    waiting = {
        "paused": await tenant.channel(paused_until=datetime.now(UTC) + timedelta(hours=1)),
        "disabled": await tenant.channel(enabled=False),
        "closed": await tenant.channel(window_mode="windowed", posting_window={tomorrow: [["00:00", "24:00"]]}),
        "rate limited": await tenant.channel(next_allowed_at=datetime.now(UTC) + timedelta(hours=1)),
        "full": await tenant.channel(max_parallel=1),
    }
    for channel in waiting.values():
        await tenant.backlog(channel, 3)
    await tenant.claim(1)  # fills the one with a single place
    wanted = await tenant.backlog(free, 10)

    claims = [*await tenant.claim(10), *await tenant.claim(10)]

    assert [claim["delivery_id"] for claim in claims] == wanted


async def test_a_slow_group_with_many_channels_does_not_crowd_out_another(tenant):
    await tenant.group(0.01, "slow")
    for channel in await tenant.channels(30, rate_group="slow"):
        await tenant.backlog(channel, 1)
    for channel in await tenant.channels(5, rate_group="quick"):
        await tenant.backlog(channel, 1)

    claims = await tenant.claim(10)

    assert sorted(claim["rate_group"] for claim in claims) == ["quick"] * 5 + ["slow"]


async def test_blocked_channels_in_front_do_not_hide_those_behind(tenant):
    for channel in await tenant.channels(60, max_parallel=1):
        await tenant.backlog(channel, 2)
    assert len(await tenant.claim(60)) == 60
    behind = await tenant.channel()
    wanted = await tenant.backlog(behind, 1)

    claims = [claim for _ in range(5) for claim in await tenant.claim(1)]

    assert [claim["delivery_id"] for claim in claims] == wanted


async def test_a_workspace_that_is_not_active_hands_out_nothing(tenant):
    channel = await tenant.channel()
    await tenant.backlog(channel, 1)

    for status in ("paused", "disabled"):
        await tenant.db.execute("UPDATE workspaces SET status = $1", status)
        assert await tenant.claim() == []
        assert await tenant.next_due_at() == NEVER

    await tenant.db.execute("UPDATE workspaces SET status = 'active'")
    assert len(await tenant.claim()) == 1


async def test_max_parallel_is_never_exceeded(tenant):
    channel = await tenant.channel(max_parallel=3)
    await tenant.backlog(channel, 8)

    first = await tenant.claim()
    second = await tenant.claim()
    await tenant.commit(sent(first[0]), transient(first[1]))
    third = await tenant.claim()

    assert [len(first), len(second), len(third)] == [3, 0, 2]


async def test_a_full_channel_is_due_when_a_place_is_freed_and_not_before(tenant):
    channel = await tenant.channel(max_parallel=1)
    await tenant.backlog(channel, 2)
    claim = await tenant.claim_one()
    await tenant.claim()

    waiting = await tenant.due(channel)
    await tenant.commit(sent(claim))
    freed = await tenant.due(channel)

    assert (waiting["next_due_at"], waiting["waits_for_place"]) == (NEVER, True)
    assert freed["next_due_at"] <= datetime.now(UTC)
    assert len(await tenant.claim()) == 1


async def test_eight_concurrent_claimers_share_the_work_and_keep_max_parallel(tenant):
    channels = await tenant.channels(4, max_parallel=2)
    for channel in channels:
        await tenant.backlog(channel, 15)
    most: dict = dict.fromkeys(channels, 0)
    taken: list = []

    async def work() -> None:
        while await tenant.count("delivery_queue"):
            claims = await tenant.claim(3)
            taken.extend(claim["delivery_id"] for claim in claims)
            rows = await tenant.db.fetch(
                "SELECT channel_id, count(*) AS n FROM deliveries WHERE status = 'sending' GROUP BY 1"
            )
            for row in rows:
                most[row["channel_id"]] = max(most[row["channel_id"]], row["n"])
            await tenant.commit(*(sent(claim) for claim in claims))

    await asyncio.gather(*(work() for _ in range(8)))

    assert len(taken) == len(set(taken)) == 60
    assert set(most.values()) <= {1, 2}


async def test_of_many_concurrent_claims_exactly_one_wins(tenant):
    channel = await tenant.channel()
    [delivery] = await tenant.backlog(channel, 1)

    claims = await asyncio.gather(*(tenant.claim() for _ in range(8)))

    assert [claim["delivery_id"] for batch in claims for claim in batch] == [delivery]
    assert (await tenant.delivery(delivery))["attempt"] == 1


async def test_a_row_that_somebody_holds_is_left_for_the_next_claim(database, tenant):
    channel = await tenant.channel()
    first, second = await tenant.backlog(channel, 2)
    holder = await database.connect()
    async with holder.transaction():
        await holder.execute("SELECT 1 FROM deliveries WHERE delivery_id = $1 FOR UPDATE", first)
        meanwhile = await tenant.claim()
        due = await tenant.next_due_at()

    assert [claim["delivery_id"] for claim in meanwhile] == [second]
    assert [claim["next_due_at"] for claim in meanwhile] == [due] != [NEVER]
    assert [claim["delivery_id"] for claim in await tenant.claim()] == [first]


async def test_a_held_delivery_that_an_operator_makes_due_is_claimed(tenant):
    channel = await tenant.channel(on_ambiguous="hold")
    [delivery] = await tenant.backlog(channel, 1)
    await tenant.commit(transient(await tenant.claim_one(), ambiguous=True))
    assert (await tenant.delivery(delivery))["hold_reason"] == "ambiguous"

    await tenant.set_delivery(delivery, "next_retry_at = now()")

    assert [claim["delivery_id"] for claim in await tenant.claim()] == [delivery]
    assert (await tenant.delivery(delivery))["hold_reason"] is None


async def test_the_credential_that_was_rotated_is_the_one_handed_out(tenant):
    channel = await tenant.channel(auth_ref="old")
    await tenant.backlog(channel, 1)
    await tenant.db.execute(
        "INSERT INTO channel_auth (workspace_id, channel_id, auth_ref) VALUES ($1, $2, 'new')",
        *(tenant.workspace, channel),
    )

    assert (await tenant.claim_one())["auth_ref"] == "new"


async def test_a_channel_in_trouble_leaves_its_siblings_alone(tenant):
    bad, good = await tenant.channels(2)
    await tenant.backlog(bad, 3)
    await tenant.backlog(good, 3)
    claims = await tenant.claim(2)
    await tenant.commit(*(permanent(c, "channel") if c["channel_id"] == bad else sent(c) for c in claims))

    rest = await tenant.claim()

    assert {claim["channel_id"] for claim in rest} == {good}
    assert len(rest) == 2


@pytest.mark.parametrize(
    ("policy", "ambiguous", "asked"),
    [("verify", True, True), ("verify", False, False), ("resend", True, False)],
)
async def test_the_platform_is_to_be_asked_only_after_a_doubt_and_where_the_channel_wants_it(
    tenant, policy, ambiguous, asked
):
    await tenant.backlog(await tenant.channel(on_ambiguous=policy), 1)
    first = await tenant.claim_one()
    await tenant.commit(transient(first, retry_after_ms=0, ambiguous=ambiguous), jitter=0)

    again = await tenant.claim_one()

    assert (first["verify"], again["verify"]) == (False, asked)


async def test_an_expired_lease_is_a_doubt_too(tenant):
    await tenant.backlog(await tenant.channel(on_ambiguous="verify"), 1)
    claim = await tenant.claim_one()
    await tenant.recover(now=claim["sending_lease_until"] + timedelta(seconds=1), jitter=0)
    await tenant.set_delivery(claim["delivery_id"], "next_retry_at = now()")

    assert (await tenant.claim_one())["verify"]


async def test_a_doubt_that_nobody_can_clear_is_held_until_a_human_has_decided(tenant, operator):
    await tenant.backlog(await tenant.channel(on_ambiguous="verify"), 1)
    claim = await tenant.claim_one()
    await tenant.commit(transient(claim, ambiguous=True, hold=True))
    assert (await tenant.only_delivery())["hold_reason"] == "ambiguous"
    assert (await tenant.history(claim["delivery_id"]))[-1] == "held"

    await operator.resolve(claim["delivery_id"], "resend")

    assert not (await tenant.claim_one())["verify"]


async def test_what_claims_share_comes_once_for_all(tenant):
    first, second, _ = await tenant.channels(3, settings={"silent": True})
    await tenant.enqueue("one")
    await tenant.enqueue("two")

    rows = await tenant.db.fetch("SELECT * FROM claim_deliveries($1, $2, 5)", tenant.workspace, uuid4())

    assert [row["shared"] is None for row in rows] == [False, True, True, True, True]
    shared = json.loads(rows[0]["shared"])
    assert shared["plans"].keys() == shared["channels"].keys() == {str(tenant.workspace)}
    [plans], [channels] = shared["plans"].values(), shared["channels"].values()
    assert plans.keys() == {str(row["rendering_id"]) for row in rows}
    assert sorted(plan["parts"] for plan in plans.values()) == [["one"], ["two"]]
    assert channels.keys() == {str(row["channel_id"]) for row in rows}
    assert channels[str(first)] == channels[str(second)] | {"target_id": ANY}
