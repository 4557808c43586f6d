"""How often and how soon a delivery is tried again: one policy for every replica and every statement."""

from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from db.support.builders import Tenant, permanent, transient
from db.support.verified import differences
from harness.databases import Database

ADOPT = "SELECT adopt_policy($1, $2, $3, $4, $5, $6)"
SECOND = timedelta(seconds=1)
DEFAULTS = (5, 2 * SECOND, 600 * SECOND, 60 * SECOND, 2 * SECOND, 60 * SECOND)


@pytest.fixture
async def tenant(database: Database) -> Tenant:
    return await Tenant.create(database.pool)


async def adopt(tenant: Tenant, *policy: Any) -> str | None:
    before: str | None = await tenant.db.fetchval(ADOPT, *policy, *DEFAULTS[len(policy) :])
    return before


async def attempts_until_dead(tenant: Tenant) -> int:
    while True:
        claim = await tenant.claim_one()
        await tenant.commit(transient(claim), jitter=0.5)
        row = await tenant.only_delivery()
        if row["status"] == "dead":
            return int(row["attempt"])
        await tenant.set_delivery(row["delivery_id"], "next_retry_at = now()")


async def test_nobody_has_said_anything_and_the_defaults_hold(tenant: Tenant) -> None:
    assert tuple(await tenant.db.fetchrow("SELECT * FROM current_policy()")) == DEFAULTS
    assert await adopt(tenant, *DEFAULTS) is None
    assert await tenant.db.fetchval("SELECT count(*) FROM delivery_policy") == 0


@pytest.mark.parametrize("policy", [3, 1, 5])
async def test_a_delivery_is_dead_after_as_many_attempts_as_the_policy_says(tenant: Tenant, policy: int) -> None:
    await adopt(tenant, policy, *DEFAULTS[1:])
    await tenant.channel()
    await tenant.enqueue()

    assert await attempts_until_dead(tenant) == policy


@pytest.mark.parametrize("seen", [False, True])
async def test_a_channel_has_a_number_of_its_own_and_verify_agrees(tenant: Tenant, seen: bool) -> None:
    """Also for content that was seen before, which goes another way into the queue."""
    await adopt(tenant, 4, *DEFAULTS[1:])
    if seen:
        first = await tenant.channel()
        await tenant.enqueue("hello")
        await tenant.set_channel(first, "enabled = false")
    own = await tenant.channel(max_attempts=2)
    plain = await tenant.channel()
    post = await tenant.post("hello")

    await tenant.put(post)

    found = {row["channel_id"]: row["max_attempts"] for row in await tenant.deliveries()}
    assert (found[own], found[plain]) == (2, 4)
    assert await differences(tenant.db, tenant.workspace) == []


async def test_what_a_post_says_of_itself_goes_before_its_channel(tenant: Tenant) -> None:
    await tenant.channel(max_attempts=2)

    await tenant.enqueue(max_attempts=7)

    assert (await tenant.only_delivery())["max_attempts"] == 7
    assert await differences(tenant.db, tenant.workspace) == []


async def test_what_is_queued_keeps_its_number_when_the_policy_changes(tenant: Tenant) -> None:
    await tenant.channel()
    await tenant.enqueue()

    await adopt(tenant, 9, *DEFAULTS[1:])

    assert (await tenant.only_delivery())["max_attempts"] == 5
    assert await differences(tenant.db, tenant.workspace) == []


async def test_waits_grow_from_the_base_to_the_cap(tenant: Tenant) -> None:
    await adopt(tenant, 5, 10 * SECOND, 25 * SECOND, 60 * SECOND)

    waits = [await tenant.db.fetchval("SELECT retry_delay($1, p_jitter => 0.5)", attempt) for attempt in (1, 2, 3, 4)]

    assert waits == [10 * SECOND, 20 * SECOND, 25 * SECOND, 25 * SECOND]


async def test_a_commit_and_a_recovery_wait_by_the_same_policy(tenant: Tenant) -> None:
    await adopt(tenant, 5, 100 * SECOND, 200 * SECOND, 60 * SECOND)
    await tenant.channel()
    await tenant.enqueue()
    await tenant.commit(transient(await tenant.claim_one()), jitter=0.5)
    row = await tenant.only_delivery()
    committed = row["next_retry_at"] - row["updated_at"]
    await tenant.set_delivery(row["delivery_id"], "next_retry_at = now()")
    await tenant.claim_one()
    now = await tenant.db.fetchval("SELECT now() + interval '1 hour'")

    await tenant.recover(now=now, jitter=0.5)

    recovered = (await tenant.only_delivery())["next_retry_at"] - now
    assert (round(committed.total_seconds()), recovered) == (100, 200 * SECOND)


async def test_a_group_rests_for_its_cooldown_after_a_failure_of_the_platform(tenant: Tenant) -> None:
    await adopt(tenant, 5, SECOND, SECOND, 300 * SECOND)
    await tenant.channel()
    await tenant.group(None)
    await tenant.enqueue()

    await tenant.commit(permanent(await tenant.claim_one(), "platform"))

    rests = await tenant.db.fetchval("SELECT next_allowed_at - now() FROM platform_limits")
    assert 290 * SECOND < rests <= 300 * SECOND


async def test_a_changed_policy_tells_what_was_before_and_the_same_again_tells_nothing(tenant: Tenant) -> None:
    changed = (3, SECOND, 9 * SECOND, 9 * SECOND)

    assert '"max_attempts": 5' in str(await adopt(tenant, *changed))
    assert await adopt(tenant, *changed) is None
    assert '"max_attempts": 3' in str(await adopt(tenant, *DEFAULTS))
    assert await tenant.db.fetchval("SELECT count(*) FROM delivery_policy") == 1


@pytest.mark.parametrize(
    "policy", [(0, SECOND, SECOND, SECOND), (5, 0 * SECOND, SECOND, SECOND), (101, SECOND, SECOND, SECOND)]
)
async def test_a_policy_that_makes_no_sense_is_refused(tenant: Tenant, policy: tuple[Any, ...]) -> None:
    with pytest.raises(asyncpg.CheckViolationError):
        await adopt(tenant, *policy)
    with pytest.raises(asyncpg.CheckViolationError):
        await tenant.channel(max_attempts=0)


async def test_a_row_that_is_deleted_by_hand_stops_nobody(tenant: Tenant) -> None:
    await adopt(tenant, 3, *DEFAULTS[1:])
    await tenant.db.execute("DELETE FROM delivery_policy")
    await tenant.channel()
    await tenant.enqueue()

    assert await attempts_until_dead(tenant) == 5
