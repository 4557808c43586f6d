"""How a platform that is away is asked, and how its group gets back to work."""

import asyncio
from datetime import timedelta

import asyncpg
import pytest
from db.support.builders import Tenant, permanent, released, sent, transient
from db.support.circuits import ANSWERED, Circuit, no_answer
from harness.databases import Database


@pytest.fixture
async def circuit(tenant: Tenant) -> Circuit:
    await tenant.channel()
    return Circuit(tenant)


async def test_one_of_many_dispatchers_gets_a_probe(database: Database, tenant: Tenant, circuit: Circuit) -> None:
    await circuit.open()
    assert await circuit.takes() == [], "not yet"
    await circuit.due()

    taken = await asyncio.gather(*(circuit.takes() for _ in range(8)))

    assert [len(probes) for probes in taken].count(1) == 1
    assert sum(map(len, taken)) == 1


async def test_probes_are_ever_rarer_up_to_a_minute(tenant: Tenant, circuit: Circuit) -> None:
    await circuit.open()
    row = await circuit.row()
    waits = [row["probe_at"] - row["opened_at"]]
    for _ in range(8):
        await circuit.due()
        [probe] = await circuit.takes()
        waits.append(probe["within"])
        assert await circuit.record(probe, answered=False) == "open"

    for number, wait in enumerate(waits):
        middle = min(2 * 2**number, 50)
        assert timedelta(seconds=0.8 * middle) <= wait <= timedelta(seconds=1.2 * middle)
    assert max(waits) <= timedelta(seconds=60)
    assert (await circuit.row())["probes"] == 8


async def test_a_probe_whose_dispatcher_dies_is_taken_again_and_its_late_answer_counts_no_more(
    tenant: Tenant, circuit: Circuit
) -> None:
    await circuit.open()
    await circuit.due()
    [lost] = await circuit.takes()
    await circuit.due()
    [taken] = await circuit.takes()

    assert await circuit.record(lost, answered=True) is None
    assert await circuit.record(taken, answered=False) == "open"


async def test_a_platform_is_asked_at_most_five_times_a_second_the_longest_due_first(
    tenant: Tenant,
) -> None:
    groups = [f"g{number}" for number in range(8)]
    for group in groups:
        await tenant.channel(rate_group=group)
    await tenant.channel(platform="max", rate_group="max")
    for number, group in enumerate([*groups, "max"]):
        platform = "max" if group == "max" else "telegram"
        await tenant.db.execute(
            "UPDATE platform_limits SET circuit = 'open', opened_at = now(), probe_at = now() - $4 * interval '1 s' "
            "WHERE (workspace_id, platform, rate_group) = ($1, $2, $3)",
            *(tenant.workspace, platform, group, 100 - number),
        )
    circuit = Circuit(tenant)

    first = await circuit.takes()
    again = await circuit.takes()
    await tenant.db.execute("UPDATE platform_limits SET probed_at = probed_at - interval '1 second'")
    later = await circuit.takes()

    assert {probe["rate_group"] for probe in first} == {*groups[:5], "max"}
    assert again == []
    assert {probe["rate_group"] for probe in later} == set(groups[5:])


async def test_an_answer_lets_exactly_one_delivery_go(tenant: Tenant, circuit: Circuit) -> None:
    await circuit.half()
    for _ in range(10):
        await tenant.enqueue()

    [trial], *others = [await circuit.trial() for _ in range(3)]

    assert others == [[], []]
    assert await tenant.claim() == []
    assert (await circuit.row())["trial"] == trial["delivery_id"]
    row = await tenant.delivery(trial["delivery_id"])
    assert (row["status"], row["claim_token"]) == ("sending", trial["claim_token"])
    assert trial["shared"]


async def test_of_many_that_ask_for_the_trial_one_gets_it(tenant: Tenant, circuit: Circuit) -> None:
    await circuit.half()
    for _ in range(10):
        await tenant.enqueue()

    trials = await asyncio.gather(*(circuit.trial() for _ in range(8)))

    assert sum(map(len, trials)) == 1


async def test_the_trial_is_answered_and_everything_is_claimed_again(tenant: Tenant, circuit: Circuit) -> None:
    await circuit.half()
    await tenant.enqueue()
    [trial] = await circuit.trial()

    await tenant.commit(sent(trial))

    row = await circuit.row()
    assert (row["state"], row["opened_at"], row["probe_at"], row["trial"], row["probes"]) == (
        "closed",
        None,
        None,
        None,
        0,
    )
    assert await circuit.history() == ["group_opened", "group_closed"]
    await circuit.wait_is_over()
    assert len(await tenant.claim()) == 3


@pytest.mark.parametrize("refused", [permanent, transient])
async def test_a_trial_that_is_refused_is_answered(tenant: Tenant, circuit: Circuit, refused: object) -> None:
    assert callable(refused)
    await circuit.half()
    await tenant.enqueue()
    [trial] = await circuit.trial()

    await tenant.commit(refused(trial, "channel", **ANSWERED))

    assert await circuit.state() == "closed"


@pytest.mark.parametrize("wait", [None, 1000], ids=["no wait", "a wait"])
async def test_a_trial_without_an_answer_opens_again_and_the_number_goes_on(
    tenant: Tenant, circuit: Circuit, wait: int | None
) -> None:
    await circuit.half()
    await tenant.enqueue()
    opened_at = (await circuit.row())["opened_at"]
    [trial] = await circuit.trial()

    await tenant.commit(no_answer(trial, code="read_timeout", retry_after_ms=wait))

    row = await circuit.row()
    assert (row["state"], row["trial"], row["probes"], row["opened_at"]) == ("open", None, 1, opened_at)
    assert "read_timeout" in row["outage_error"]
    await circuit.due()
    [probe] = await circuit.takes()
    assert timedelta(seconds=6.4) <= probe["within"] <= timedelta(seconds=9.6)
    assert await circuit.history() == ["group_opened"], "one outage is one event"


@pytest.mark.parametrize("ending", [released, transient, permanent])
async def test_a_trial_that_asked_the_platform_nothing_is_followed_by_another(
    tenant: Tenant, circuit: Circuit, ending: object
) -> None:
    assert callable(ending)
    await circuit.half()
    for _ in range(2):
        await tenant.enqueue()
    [trial] = await circuit.trial()

    await tenant.commit(ending(trial))

    assert await circuit.state() == "half"
    assert [probe["is_trial"] for probe in await circuit.takes()] == [True]
    assert len(await circuit.trial()) == 1


async def test_a_trial_whose_worker_is_silent_opens_again(tenant: Tenant, circuit: Circuit) -> None:
    await circuit.half()
    await tenant.enqueue()
    [trial] = await circuit.trial(timedelta(milliseconds=1))
    await asyncio.sleep(0.01)
    await circuit.takes()

    row = await circuit.row()
    assert (row["state"], row["trial"]) == ("open", None)
    await tenant.commit(sent(trial))
    assert await circuit.state() == "open", "what the silent one says later is no trial's answer"
    assert (await tenant.delivery(trial["delivery_id"]))["status"] == "sent"


async def test_a_trial_with_a_lease_is_left_alone(tenant: Tenant, circuit: Circuit) -> None:
    await circuit.half()
    await tenant.enqueue()
    [trial] = await circuit.trial()

    assert await circuit.takes() == []

    assert (await circuit.row())["trial"] == trial["delivery_id"]


async def test_the_least_tried_goes_not_one_that_was_perhaps_sent_nor_the_last_attempt(tenant: Tenant) -> None:
    await tenant.channel()
    circuit = Circuit(tenant)
    perhaps_sent = await circuit.open()
    await tenant.enqueue(max_attempts=1)
    await tenant.enqueue(max_attempts=3)
    await tenant.enqueue(max_attempts=3)
    last, first, second = [
        row["delivery_id"] for row in await tenant.deliveries() if row["delivery_id"] not in perhaps_sent
    ]
    order = []
    for _ in range(7):
        await circuit.wait_is_over()
        assert await circuit.probe(answered=True) == "half"
        [trial] = await circuit.trial()
        order.append(trial["delivery_id"])
        await tenant.commit(no_answer(trial, ambiguous=False))

    assert order[:4] == [first, second, first, second]
    assert order[4] == last
    assert set(order[5:]) <= set(perhaps_sent)


async def test_one_that_may_be_risked_is_found_behind_any_number_that_may_not(tenant: Tenant) -> None:
    channel = await tenant.channel()
    circuit = Circuit(tenant)
    await circuit.half()
    risky = await tenant.backlog(channel, 40)
    await tenant.db.execute("UPDATE deliveries SET max_attempts = 1 WHERE delivery_id = ANY ($1)", risky)
    await tenant.enqueue()

    [trial] = await circuit.trial()

    assert trial["delivery_id"] not in risky


async def test_a_trial_is_due_and_in_an_open_channel_with_a_place_and_a_slot(tenant: Tenant) -> None:
    full = await tenant.channel(max_parallel=1)
    circuit = Circuit(tenant)
    await tenant.enqueue()
    [flying] = await tenant.claim()
    closed = await tenant.channel(rate_rps=0.01)
    await tenant.enqueue(routing={"channels": [str(closed)]})
    await tenant.commit(sent((await tenant.claim())[0]))
    third = await tenant.channel()
    await tenant.set_channel(full, "enabled = false")
    await tenant.set_channel(closed, "enabled = false")
    await circuit.half()
    await tenant.set_channel(full, "enabled = true")
    await tenant.set_channel(closed, "enabled = true")
    await tenant.set_channel(third, "enabled = false")
    await tenant.enqueue()
    assert await circuit.trial() == []

    await tenant.commit(sent(flying))

    [trial] = await circuit.trial()
    assert trial["channel_id"] == full


async def test_a_trial_costs_a_slot_as_any_call(tenant: Tenant) -> None:
    await tenant.channel(rate_rps=0.5)
    await tenant.group(10)
    circuit = Circuit(tenant)
    await tenant.db.execute("UPDATE platform_limits SET rate_rps = NULL")
    await tenant.db.execute("UPDATE channels SET rate_rps = NULL")
    await circuit.half()
    await tenant.db.execute("UPDATE platform_limits SET rate_rps = 10")
    await tenant.db.execute("UPDATE channels SET rate_rps = 0.5")
    await circuit.wait_is_over()

    [trial] = await circuit.trial()

    channel = await tenant.state(trial["channel_id"])
    assert channel["next_allowed_at"] == trial["slot_at"] + timedelta(seconds=2)
    assert (await circuit.row())["next_allowed_at"] == trial["slot_at"] + timedelta(seconds=0.1)


async def test_the_trial_may_take_slots_for_its_later_parts_and_nothing_else_may(
    tenant: Tenant, circuit: Circuit
) -> None:
    await tenant.enqueue()
    [before] = await tenant.claim()
    await circuit.half()
    await tenant.enqueue()
    [trial] = await circuit.trial()

    async def taken(claim: asyncpg.Record) -> bool:
        query = "SELECT taken FROM take_slot($1, $2, $3)"
        answer: bool = await tenant.db.fetchval(query, tenant.workspace, claim["delivery_id"], claim["claim_token"])
        return answer

    assert await taken(trial)
    assert not await taken(before)


async def test_with_nothing_due_the_circuit_stays_half_and_the_first_that_is_due_tries(
    tenant: Tenant, circuit: Circuit
) -> None:
    await circuit.half()
    assert await circuit.trial() == []
    assert await circuit.takes() == []

    await tenant.enqueue()

    assert [probe["is_trial"] for probe in await circuit.takes()] == [True]
    assert len(await circuit.trial()) == 1


async def test_closing_releases_nothing_that_is_held(tenant: Tenant) -> None:
    channel = await tenant.channel(on_ambiguous="hold")
    circuit = Circuit(tenant)
    held = await circuit.open()
    assert await circuit.probe(answered=True) == "half"
    await tenant.enqueue()
    [trial] = await circuit.trial()
    await tenant.commit(sent(trial))

    assert await circuit.state() == "closed"
    assert {(await tenant.delivery(one))["hold_reason"] for one in held} == {"ambiguous"}
    assert await tenant.claim() == []
    assert channel == trial["channel_id"]


async def test_in_a_workspace_that_is_not_active_nothing_is_probed_or_tried(tenant: Tenant, circuit: Circuit) -> None:
    await circuit.half()
    await tenant.enqueue()
    await tenant.db.execute("UPDATE workspaces SET status = 'paused' WHERE workspace_id = $1", tenant.workspace)

    assert await circuit.takes() == []
    assert await circuit.trial() == []


async def test_the_token_of_the_group_is_the_one_its_channels_use_now(tenant: Tenant, circuit: Circuit) -> None:
    await circuit.open()
    [channel] = await tenant.db.fetch("SELECT channel_id FROM channels WHERE workspace_id = $1", tenant.workspace)
    await tenant.set_channel(channel["channel_id"], "auth_ref = 'new'")
    await circuit.due()

    [probe] = await circuit.takes()

    assert probe["auth_ref"] == "new"
