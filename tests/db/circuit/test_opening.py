"""When the platform of a rate group counts as away, and what that stops."""

from typing import Any

import pytest
from db.support.builders import NEVER, Tenant, permanent, sent, transient
from db.support.circuits import ANSWERED, Circuit, no_answer


@pytest.fixture
async def circuit(tenant: Tenant) -> Circuit:
    await tenant.channel()
    return Circuit(tenant)


async def test_three_distinct_deliveries_without_an_answer_open_the_circuit(tenant: Tenant, circuit: Circuit) -> None:
    await circuit.fail(2)
    assert await circuit.state() == "closed"

    await circuit.fail(1)

    row = await circuit.row()
    assert (row["state"], row["failed_deliveries"]) == ("open", [])
    assert row["opened_at"] < row["probe_at"]
    assert await circuit.history() == ["group_opened"]


async def test_while_it_is_open_nothing_is_claimed_and_no_claim_is_worthwhile(tenant: Tenant, circuit: Circuit) -> None:
    await circuit.open()
    await circuit.wait_is_over()
    await tenant.enqueue()

    assert await tenant.claim() == []
    assert await tenant.next_due_at() == NEVER
    due = await tenant.db.fetch("SELECT * FROM due_workspaces() WHERE workspace_id = $1", tenant.workspace)
    assert due == []


ANSWERS = {
    "sent": sent,
    "refused for the post": lambda claim: permanent(claim, "delivery", **ANSWERED),
    "refused for the channel": lambda claim: permanent(claim, "channel", **ANSWERED),
    "429": lambda claim: transient(claim, "platform", retry_after_ms=60_000, **ANSWERED),
    "429 without a wait": lambda claim: transient(claim, "platform", **ANSWERED),
}


@pytest.mark.parametrize("answer", ANSWERS)
async def test_any_definite_answer_clears_the_failures_before_it(tenant: Tenant, circuit: Circuit, answer: str) -> None:
    await circuit.fail(2)
    other = await tenant.channel()
    await tenant.enqueue(routing={"channels": [str(other)]})
    [claim] = await tenant.claim()

    await tenant.commit(ANSWERS[answer](claim))

    assert (await circuit.row())["failed_deliveries"] == []
    await tenant.db.execute("UPDATE platform_limits SET next_allowed_at = NULL")
    await tenant.enqueue(routing={"channels": [str(other)]})
    await tenant.db.execute("UPDATE channels SET paused_until = NULL, next_allowed_at = NULL")
    [claim] = await tenant.claim()
    await tenant.commit(no_answer(claim))
    assert await circuit.state() == "closed"


SILENCES: dict[str, Any] = {
    "a wait that the platform named": lambda claim: no_answer(claim, retry_after_ms=1000),
    "an upload host": lambda claim: transient(claim, "delivery", code="http_502"),
    "the channel": lambda claim: transient(claim, "channel"),
    "media that is lost": lambda claim: permanent(claim, "delivery"),
}


@pytest.mark.parametrize("silence", SILENCES)
async def test_what_says_nothing_about_the_platform_neither_counts_nor_clears(
    tenant: Tenant, circuit: Circuit, silence: str
) -> None:
    failed = await circuit.fail(2)
    for _ in range(5):
        await tenant.enqueue()

    await tenant.commit(*map(SILENCES[silence], await tenant.claim(5)))

    row = await circuit.row()
    assert (row["state"], set(row["failed_deliveries"])) == ("closed", set(failed))


@pytest.mark.parametrize(
    ("order", "state"), [("fffa", "open"), ("ffaf", "closed"), ("afff", "open"), ("ffaff", "closed")]
)
async def test_in_a_batch_the_order_in_which_they_ended_counts(
    tenant: Tenant, circuit: Circuit, order: str, state: str
) -> None:
    for _ in order:
        await tenant.enqueue()
    claims = await tenant.claim(len(order))

    await tenant.commit(*((sent if how == "a" else no_answer)(claim) for how, claim in zip(order, claims, strict=True)))

    assert await circuit.state() == state


async def test_a_stale_outcome_says_nothing(tenant: Tenant, circuit: Circuit) -> None:
    await circuit.fail(2)
    await tenant.enqueue()
    [claim] = await tenant.claim()
    await tenant.commit(transient(claim))

    assert (await tenant.commit(no_answer(claim)))[0]["verdict"] == "stale"

    assert await circuit.state() == "closed"


async def test_another_group_another_platform_and_another_workspace_go_on(tenant: Tenant, circuit: Circuit) -> None:
    stranger = await Tenant.create(tenant.db)
    await stranger.channel()
    await circuit.open()
    beside = [await tenant.channel(rate_group="other"), await tenant.channel(platform="max")]

    await tenant.enqueue()
    await stranger.enqueue()

    assert {claim["channel_id"] for claim in await tenant.claim()} == set(beside)
    assert len(await stranger.claim()) == 1
    assert await Circuit(tenant, "other").state() == await Circuit(stranger).state() == "closed"


async def test_what_is_in_hand_of_an_open_group_gets_no_slot(tenant: Tenant, circuit: Circuit) -> None:
    await tenant.enqueue()
    [claim] = await tenant.claim()
    await circuit.open()

    slot = await tenant.db.fetchrow(
        "SELECT taken, slot_at > clock_timestamp() + interval '5 seconds' AS is_far FROM take_slot($1, $2, $3)",
        *(tenant.workspace, claim["delivery_id"], claim["claim_token"]),
    )

    assert dict(slot) == {"taken": False, "is_far": True}


async def test_what_ends_after_the_opening_changes_nothing(tenant: Tenant, circuit: Circuit) -> None:
    for _ in range(2):
        await tenant.enqueue()
    late, later = await tenant.claim(2)
    await circuit.open()
    before = await circuit.row()

    await tenant.commit(sent(late))
    await tenant.commit(no_answer(later))

    assert await circuit.row() == before


async def test_sends_are_committed_the_fast_way_unless_a_circuit_is_in_doubt(tenant: Tenant, circuit: Circuit) -> None:
    async def left() -> list[int]:
        await tenant.enqueue(routing={"channels": [str(other)]})
        [claim] = await tenant.claim()
        numbers = await tenant.commit_sent(sent(claim))
        if numbers:
            await tenant.commit(sent(claim), short=False)
        return numbers

    other = await tenant.channel(rate_group="other")
    assert await left() == []
    await tenant.set_channel(other, "enabled = false")
    await circuit.fail(1)
    await tenant.set_channel(other, "enabled = true")
    assert await left() == [1]
    await tenant.set_channel(other, "enabled = false")
    await circuit.fail(2)
    assert await circuit.state() == "open"
    await tenant.set_channel(other, "enabled = true")
    assert await left() == []


async def test_a_delivery_that_fails_twice_makes_the_platform_be_asked(tenant: Tenant, circuit: Circuit) -> None:
    await circuit.fail(1)
    await circuit.wait_is_over()
    assert (await circuit.row())["probe_at"] is None

    await tenant.commit(no_answer(await tenant.claim_one()))

    [probe] = await circuit.takes()
    assert (await circuit.state(), probe["is_trial"]) == ("closed", False)
    assert await circuit.record(probe, answered=False) == "open"
    assert await circuit.history() == ["group_opened"]
    assert (await circuit.row())["outage_error"] == '{"code": "connect"}'


async def test_two_deliveries_that_fail_by_turns_make_the_platform_be_asked(tenant: Tenant, circuit: Circuit) -> None:
    await circuit.fail(2)
    await circuit.wait_is_over()

    first, _ = await tenant.claim(2)
    await tenant.commit(no_answer(first))

    assert len(await circuit.takes()) == 1


async def test_when_the_platform_says_who_it_is_the_failure_is_the_deliverys_own_and_it_ends_dead(
    tenant: Tenant, circuit: Circuit
) -> None:
    await tenant.enqueue(max_attempts=5)
    for attempt in range(1, 6):
        await tenant.commit(no_answer(await tenant.claim_one(), code="http_500"))
        await circuit.wait_is_over()
        if attempt % 2 == 0:
            assert await circuit.probe(answered=True) == "closed"
            assert (await circuit.row())["failed_deliveries"] == []

    row = await tenant.only_delivery()
    assert (row["status"], row["attempt"]) == ("dead", 5)
    assert await circuit.history() == []


async def test_an_answer_that_comes_meanwhile_settles_what_was_to_be_asked(tenant: Tenant, circuit: Circuit) -> None:
    await circuit.fail(1)
    await circuit.wait_is_over()
    await tenant.commit(no_answer(await tenant.claim_one()))
    [probe] = await circuit.takes()
    await tenant.enqueue()
    await tenant.commit(sent(await tenant.claim_one()))

    assert await circuit.record(probe, answered=False) is None

    assert await circuit.state() == "closed"
    assert await circuit.takes() == []


async def test_a_group_that_stalls_waits_without_being_open(tenant: Tenant, circuit: Circuit) -> None:
    await tenant.enqueue()
    stall = "SELECT stall_groups(ARRAY[$1::uuid], ARRAY[$2], ARRAY[$3], $4::text::interval)"

    await tenant.db.execute(stall, *circuit.key, "30 seconds")

    assert await tenant.claim() == []
    assert await tenant.next_due_at() == (await circuit.row())["stalled_until"]
    assert (await circuit.state(), await circuit.history()) == ("closed", [])
    await tenant.db.execute(stall, *circuit.key, "0 seconds")
    assert len(await tenant.claim()) == 1
