"""Leases: what a silent worker held comes back once, and nobody acts on a claim that is no longer his."""

import json
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import asyncpg
import pytest
from db.support.builders import NEVER, Tenant, is_waiting, running, sent, transient
from harness.eventually import eventually

PAST = datetime.now(UTC) + timedelta(hours=1)


@pytest.fixture
async def claim(tenant: Tenant) -> asyncpg.Record:
    await tenant.backlog(await tenant.channel(max_parallel=1), 1)
    return await tenant.claim_one()


async def progress(tenant: Tenant, claim, part: int, ids: list[str]) -> bool:
    recorded: bool = await tenant.db.fetchval(
        "SELECT record_progress($1, $2, $3, $4, $5)",
        *(tenant.workspace, claim["delivery_id"], claim["claim_token"], part, ids),
    )
    return recorded


async def renew(tenant: Tenant, *claims, lease: timedelta = timedelta(minutes=9)) -> list:
    rows = await tenant.db.fetch(
        "SELECT * FROM renew_leases($1, $2, $3, $4)",
        tenant.workspace,
        [claim["delivery_id"] for claim in claims],
        [claim["claim_token"] for claim in claims],
        lease,
    )
    return [row[0] for row in rows]


async def test_a_lease_that_runs_is_left_alone(tenant, claim):
    assert await tenant.recover() == 0
    assert await tenant.recover(now=claim["sending_lease_until"]) == 0
    assert (await tenant.only_delivery())["status"] == "sending"


async def test_a_lease_that_ran_out_is_an_ambiguous_failure(tenant, claim):
    assert await tenant.recover(now=PAST, jitter=0.5) == 1

    row = await tenant.only_delivery()
    event = (await tenant.events())[-1]
    assert (row["status"], row["attempt"], row["claim_token"]) == ("retry", 1, None)
    assert row["next_retry_at"] - PAST == timedelta(seconds=2)
    assert json.loads(row["last_error"])["ambiguous"] is True
    assert (event["what"], event["attempt"]) == ("sending_lease_expired", 1)
    assert await tenant.recover(now=PAST) == 0


async def test_the_last_attempt_that_ran_out_is_the_end(tenant, claim):
    await tenant.set_delivery(claim["delivery_id"], "max_attempts = 1")

    await tenant.recover(now=PAST)

    assert (await tenant.only_delivery())["status"] == "dead"
    assert (await tenant.history(claim["delivery_id"]))[-2:] == ["sending_lease_expired", "dead_letter"]


async def test_a_lease_that_ran_out_is_held_where_the_channel_says_so(tenant, claim):
    await tenant.set_channel(claim["channel_id"], "on_ambiguous = 'hold'")

    await tenant.recover(now=PAST)

    row = await tenant.only_delivery()
    assert (row["status"], row["next_retry_at"], row["hold_reason"]) == ("retry", NEVER, "lease_expired")
    assert (await tenant.history(claim["delivery_id"]))[-2:] == ["sending_lease_expired", "held"]


async def test_a_recovered_delivery_frees_its_place(tenant, claim):
    await tenant.backlog(claim["channel_id"], 1)
    assert await tenant.claim() == []

    await tenant.recover(now=PAST)

    assert len(await tenant.claim()) == 1


async def test_recovery_takes_no_more_than_it_was_asked_for(tenant):
    await tenant.backlog(await tenant.channel(), 5)
    await tenant.claim()

    counts = [
        await tenant.db.fetchval("SELECT recover_sending_leases($1, $2, 2)", tenant.workspace, PAST) for _ in range(4)
    ]

    assert counts == [2, 2, 1, 0]


@pytest.mark.parametrize(("ending", "status"), [(sent, "sent"), (transient, "retry")], ids=["sent", "failed"])
async def test_a_commit_that_comes_first_wins_over_recovery(database, tenant, claim, ending, status):
    committer = await database.connect()
    async with committer.transaction():
        await tenant.on(committer).commit(ending(claim))
        assert await tenant.recover(now=PAST) == 0

    assert (await tenant.only_delivery())["status"] == status
    assert await tenant.recover(now=PAST) == 0


async def test_a_commit_that_has_begun_wins_over_recovery(database, tenant):
    """It holds one delivery and waits for the next; nothing of it is written yet."""
    await tenant.backlog(await tenant.channel(), 2)
    first, second = sorted(await tenant.claim(), key=lambda claim: claim["delivery_id"])
    holder, committer = await database.connect(), await database.connect()
    async with holder.transaction():
        await holder.execute("SELECT 1 FROM deliveries WHERE delivery_id = $1 FOR UPDATE", second["delivery_id"])
        commit = running(tenant.on(committer).commit(transient(second), transient(first)))
        await eventually(lambda: is_waiting(tenant.db, committer.get_server_pid()))
        assert await tenant.recover(now=PAST) == 0

    assert [verdict["verdict"] for verdict in await commit] == ["committed", "committed"]
    assert await tenant.events("sending_lease_expired") == []


@pytest.mark.parametrize("ending", [sent, transient], ids=["sent", "failed"])
async def test_a_commit_that_comes_second_is_stale(database, tenant, claim, ending):
    recoverer, committer = await database.connect(), await database.connect()
    async with recoverer.transaction():
        assert await tenant.on(recoverer).recover(now=PAST) == 1
        late = running(tenant.on(committer).commit(ending(claim)))
        await eventually(lambda: is_waiting(tenant.db, committer.get_server_pid()))

    assert [verdict["verdict"] for verdict in await late] == ["stale"]
    assert (await tenant.only_delivery())["status"] == "retry"
    assert (await tenant.history(claim["delivery_id"]))[-2:] == ["sending_lease_expired", "stale_commit"]


async def test_a_worker_that_lost_its_claim_to_another_can_do_nothing(tenant, claim):
    await tenant.recover(now=PAST, jitter=0)
    await tenant.set_delivery(claim["delivery_id"], "next_retry_at = now()")
    current = await tenant.claim_one()

    assert await renew(tenant, claim) == []
    assert await progress(tenant, claim, 0, ["1"]) is False
    assert [verdict["verdict"] for verdict in await tenant.commit(sent(claim))] == ["stale"]
    row = await tenant.only_delivery()
    assert (row["status"], row["attempt"], row["claim_token"]) == ("sending", 2, current["claim_token"])


async def test_a_renewed_lease_runs_longer(tenant, claim):
    assert await renew(tenant, claim) == [claim["delivery_id"]]

    row = await tenant.only_delivery()
    assert row["sending_lease_until"] > claim["sending_lease_until"]
    assert await tenant.recover(now=claim["sending_lease_until"] + timedelta(seconds=1)) == 0


async def test_of_several_leases_those_that_are_ours_are_renewed(tenant):
    await tenant.backlog(await tenant.channel(), 3)
    mine, done, other = await tenant.claim()
    await tenant.commit(sent(done))
    stolen = {**dict(other), "claim_token": uuid4()}

    assert await renew(tenant, stolen, done, mine) == [mine["delivery_id"]]


async def test_progress_is_kept_for_the_next_attempt(tenant, claim):
    assert await progress(tenant, claim, 0, ["17", "18"])
    assert await progress(tenant, claim, 1, ["19"])
    await tenant.commit(transient(claim, retry_after_ms=0), jitter=0)

    again = await tenant.claim_one()

    found = json.loads(again["render_meta"])
    assert found["series_progress"] == {"sent_items": [0, 1], "provider_message_ids": [["17", "18"], ["19"]]}


async def test_progress_that_is_told_twice_is_ours_and_counts_once(tenant, claim):
    """The answer to the first may have been lost."""
    told = [await progress(tenant, claim, 0, ["17"]) for _ in range(2)]

    found = json.loads((await tenant.only_delivery())["render_meta"])
    assert told == [True, True]
    assert found["series_progress"] == {"sent_items": [0], "provider_message_ids": [["17"]]}


async def test_a_finished_delivery_makes_no_progress(tenant, claim):
    await tenant.commit(sent(claim))

    assert await progress(tenant, claim, 0, ["17"]) is False


async def recover_claimed(tenant: Tenant, now: datetime) -> int:
    recovered: int = await tenant.db.fetchval("SELECT recover_claimed_leases($1, $2)", tenant.workspace, now)
    return recovered


async def test_what_was_claimed_by_hand_and_forgotten_goes_back(tenant):
    [delivery] = await tenant.backlog(await tenant.channel(), 1)
    await tenant.set_delivery(delivery, "status = 'claimed', claimed_at = now()")
    assert await tenant.claim() == []

    assert await recover_claimed(tenant, datetime.now(UTC)) == 0
    assert await recover_claimed(tenant, PAST) == 1

    row = await tenant.delivery(delivery)
    assert (row["status"], row["attempt"], row["claimed_at"]) == ("queued", 0, None)
    assert await tenant.history(delivery) == ["claimed_lease_expired"]
    assert len(await tenant.claim()) == 1


async def test_what_was_claimed_ahead_of_its_time_is_not_stale(tenant):
    [delivery] = await tenant.backlog(await tenant.channel(), 1)
    await tenant.set_delivery(delivery, "not_before = $3", PAST + timedelta(hours=1))
    await tenant.set_delivery(delivery, "status = 'claimed', claimed_at = now()")

    assert await recover_claimed(tenant, PAST) == 0


async def test_a_send_started_by_hand_without_a_lease_is_stale_at_once(tenant):
    [delivery] = await tenant.backlog(await tenant.channel(), 1)
    await tenant.set_delivery(delivery, "status = 'sending', attempt = attempt + 1")

    assert await tenant.recover() == 1
