"""Staged posts: taken in like any other, and leased to one worker at a time."""

import asyncio
import json
from typing import Any

import pytest
from db.support.builders import Tenant, is_waiting, running
from db.support.senders import make_sender
from db.support.staging import LEASE, REQUEST, Staging, fence
from harness.eventually import eventually


async def test_a_staged_post_leaves_receipt_and_run_and_nothing_in_the_queue(tenant, staging):
    answer = await staging.stage("hello", source_ref="42", traceparent="00-aa-bb-01")

    row, run = await staging.row(), await staging.run()
    assert (answer["verdict"], answer["post_id"]) == ("staged", str(row["post_id"]))
    assert (row["status"], json.loads(row["request"]), row["traceparent"]) == ("staged", REQUEST, "00-aa-bb-01")
    assert (str(row["run_id"]), run["run_id"], run["finished_at"]) == (answer["run_id"], row["run_id"], None)
    assert row["receipt_id"] == await tenant.db.fetchval("SELECT receipt_id FROM ingress_receipts")
    assert await tenant.count("messages") == await tenant.count("deliveries") == await tenant.count("events") == 0


async def test_what_was_staged_before_is_a_duplicate(tenant, staging):
    await staging.stage("hello", source_ref="42")

    again = await staging.stage("other", source_ref="42")

    assert (again["verdict"], again["of"]) == ("duplicate", "source_ref")
    assert await tenant.count("staged_posts") == 1


@pytest.mark.parametrize("fields", [{"source_ref": "42"}, {}], ids=["by source_ref", "by payload"])
async def test_of_thirty_identical_requests_one_is_staged(tenant, staging, fields):
    answers = await asyncio.gather(*(staging.stage("hello", **fields) for _ in range(30)))

    verdicts = [answer["verdict"] for answer in answers]
    assert (verdicts.count("staged"), verdicts.count("duplicate")) == (1, 29)
    assert await tenant.count("staged_posts") == await tenant.count("ingress_receipts") == 1


async def test_a_staged_post_passes_the_gate_like_any_other(tenant):
    await tenant.channel()
    staging = Staging(tenant, await make_sender(tenant, rate=1))

    verdicts = [(await staging.stage())["verdict"] for _ in range(2)]

    assert verdicts == ["staged", "rate_limited"]
    assert await tenant.count("staged_posts") == 1


async def test_a_staged_post_that_failed_on_the_way_leaves_nothing(database, tenant, staging):
    connection = await database.connect()
    failing = connection.transaction()
    await failing.start()
    await Staging(tenant.on(connection), staging.sender.on(connection)).stage("hello", source_ref="42")

    await failing.rollback()

    for table in ("staged_posts", "ingress_receipts", "ingest_runs"):
        assert await tenant.count(table) == 0
    assert (await staging.stage("hello", source_ref="42"))["verdict"] == "staged"


async def test_concurrent_workers_lease_each_post_once(tenant, staging):
    for _ in range(20):
        await staging.stage()

    leased = await asyncio.gather(*(staging.lease(limit=3, per_workspace=100) for _ in range(10)))

    posts = [post["post_id"] for batch in leased for post in batch]
    assert len(posts) == len(set(posts)) == 20
    assert len({post["lease_token"] for batch in leased for post in batch}) == 20


async def test_a_workspace_never_has_more_out_than_its_budget_whoever_asks(tenant, staging):
    for _ in range(20):
        await staging.stage()

    leased = await asyncio.gather(*(staging.lease(limit=5, per_workspace=4) for _ in range(10)))

    assert sum(map(len, leased)) == 4


async def test_a_budget_that_is_being_spent_is_not_spent_twice(database, tenant, staging):
    for _ in range(8):
        await staging.stage()
    first, second = await database.connect(), await database.connect()
    async with first.transaction():
        spent = await staging.lease(per_workspace=4, db=first)
        asking = running(staging.lease(per_workspace=4, db=second))
        await eventually(lambda: is_waiting(tenant.db, second.get_server_pid()))

    assert (len(spent), await asking) == (4, [])


async def test_a_long_line_of_one_tenant_keeps_nobody_waiting(database, tenant, staging):
    other = await Tenant.create(database.pool)
    await other.channel()
    small = Staging(other, await make_sender(other))
    for _ in range(30):
        await staging.stage()
    await small.stage()

    leased = await staging.lease(limit=4, per_workspace=4)

    assert [post["workspace_id"] for post in leased].count(other.workspace) == 1
    assert len(leased) == 4


async def test_a_workspace_with_posts_out_comes_after_one_that_has_none(database, tenant, staging):
    other = await Tenant.create(database.pool)
    await other.channel()
    small = Staging(other, await make_sender(other))
    for _ in range(10):
        await staging.stage()
    await staging.lease(limit=2)
    await small.stage()

    [next_one] = await staging.lease(limit=1)

    assert next_one["workspace_id"] == other.workspace


@pytest.mark.parametrize("status", ["paused", "disabled"])
async def test_a_workspace_that_is_not_active_rests_and_loses_nothing(tenant, staging, status):
    await staging.stage()
    await tenant.db.execute("UPDATE workspaces SET status = $1", status)

    resting = await staging.lease()
    await tenant.db.execute("UPDATE workspaces SET status = 'active'")

    assert resting == []
    assert len(await staging.lease()) == 1


async def test_what_is_leased_is_leased_again_only_when_the_lease_is_over(staging):
    await staging.stage()
    first = await staging.leased()

    meanwhile = await staging.lease()
    await staging.let_leases_end()
    second = await staging.leased()

    assert meanwhile == []
    assert (first["post_id"], first["attempt"], second["attempt"]) == (second["post_id"], 1, 2)
    assert first["lease_token"] != second["lease_token"]


async def test_a_renewed_lease_lasts(tenant, staging):
    await staging.stage()
    post = await staging.leased()
    await staging.let_leases_end()

    renewed = await tenant.db.fetchval("SELECT renew_staged_post($1, $2, $3, $4)", *fence(post), LEASE)

    assert renewed is True
    assert await staging.lease() == []


async def test_a_lease_that_passed_on_is_not_renewed_nor_given_back(tenant, staging):
    await staging.stage()
    old = await staging.leased()
    await staging.let_leases_end()
    new = await staging.leased()

    renewed = await tenant.db.fetchval("SELECT renew_staged_post($1, $2, $3, $4)", *fence(old), LEASE)
    await tenant.db.execute("SELECT release_staged_post($1, $2, $3)", *fence(old))

    row = await staging.row()
    assert renewed is False
    assert (row["status"], row["lease_token"], row["attempt"]) == ("fetching", new["lease_token"], 2)


async def test_a_lease_given_back_is_due_at_once_and_counts_no_attempt(tenant, staging):
    await staging.stage()
    post = await staging.leased()

    await tenant.db.execute("SELECT release_staged_post($1, $2, $3)", *fence(post))

    assert (await staging.row())["attempt"] == 0
    assert (await staging.leased())["attempt"] == 1


async def test_leasing_costs_the_same_however_long_one_line_is(tenant, staging):
    """What is read follows what is handed out: 20,000 waiting posts of a tenant are not looked at."""
    await staging.stage()
    await tenant.db.execute(
        "INSERT INTO staged_posts (workspace_id, endpoint_id, run_id, request) "
        "SELECT workspace_id, endpoint_id, run_id, '{}' FROM staged_posts, generate_series(1, 20000)"
    )
    await tenant.db.execute("ANALYZE staged_posts")

    async with tenant.db.acquire() as connection:
        before = await _read(connection)
        leased = await staging.lease(limit=4, per_workspace=4, db=connection)
        after = await _read(connection)

    assert len(leased) == 4
    assert after - before < 1000


async def _read(connection: Any) -> int:
    await connection.execute("SELECT pg_stat_force_next_flush()")
    rows: int = await connection.fetchval(
        "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'staged_posts'"
    )
    return rows
