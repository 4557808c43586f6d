"""`verify` sees in the tables what a bug of the queue has done: each is planted, a little happens, and it is named.

Without the bug the same story leaves nothing to find.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from autopost_cli.schema import schema_files
from db.support.builders import Tenant, permanent, sent, transient
from db.support.circuits import Circuit
from db.support.operators import Operator
from db.support.verified import kinds

Story = Callable[[Tenant], Awaitable[Any]]


async def one_attempt(tenant: Tenant) -> None:
    await tenant.channel()
    await tenant.enqueue()
    await tenant.commit(sent(await tenant.claim_one()))


async def a_lease_runs(tenant: Tenant) -> None:
    await tenant.channel()
    await tenant.enqueue()
    await tenant.claim_one()
    await tenant.recover()


async def a_retry_waits(tenant: Tenant) -> None:
    await tenant.channel()
    await tenant.enqueue()
    await tenant.commit(transient(await tenant.claim_one(), retry_after_ms=30_000))
    await tenant.db.execute("UPDATE channel_due SET next_due_at = now()")
    await tenant.claim()


async def a_post_is_rescheduled(tenant: Tenant) -> None:
    """While a claim has found it already: the queue still says what it said."""
    await tenant.channel()
    await tenant.enqueue()
    await tenant.db.execute("ALTER TABLE deliveries DISABLE TRIGGER deliveries_after_update")
    await tenant.db.execute("UPDATE deliveries SET scheduled_for = now() + interval '30 seconds'")
    await tenant.db.execute("ALTER TABLE deliveries ENABLE TRIGGER deliveries_after_update")
    await tenant.claim()
    await tenant.db.execute("UPDATE deliveries SET scheduled_for = scheduled_for")


async def a_channel_is_paused(tenant: Tenant) -> None:
    channel = await tenant.channel()
    await Operator(tenant).pause(channel)
    await tenant.enqueue()
    await tenant.claim()


async def a_channel_is_switched_off(tenant: Tenant) -> None:
    channel = await tenant.channel()
    await tenant.enqueue()
    await Operator(tenant).disable(channel)
    await tenant.db.execute("UPDATE channel_due SET next_due_at = now()")
    await tenant.claim()


async def a_channel_has_a_rate(tenant: Tenant) -> None:
    await tenant.channel(rate_rps=5)
    await _drain_slowly(tenant, 4)


async def a_group_has_a_rate(tenant: Tenant) -> None:
    await tenant.group(5)
    await tenant.channels(2)
    await _drain_slowly(tenant, 3)


async def _drain_slowly(tenant: Tenant, posts: int) -> None:
    for _ in range(posts):
        await tenant.enqueue()
    async with asyncio.timeout(30):
        while {row["status"] for row in await tenant.deliveries()} != {"sent"}:
            await tenant.commit(*(sent(claim) for claim in await tenant.claim()))


async def a_platform_asks_for_patience(tenant: Tenant) -> None:
    await tenant.group(100)
    await tenant.channels(2)
    await tenant.enqueue()
    claims = await tenant.claim(1)
    await tenant.commit(transient(claims[0], "platform", retry_after_ms=60_000))
    await tenant.claim()


async def a_platform_is_away(tenant: Tenant) -> None:
    """And comes back: the trial and what follows it are no findings."""
    await tenant.channel()
    circuit = Circuit(tenant)
    await circuit.fail(3)
    await tenant.enqueue()
    await tenant.claim()
    await circuit.due()
    for probe in await circuit.takes():
        await circuit.record(probe, answered=True)
    await tenant.enqueue()
    for trial in await circuit.trial():
        await tenant.commit(sent(trial))
    await tenant.claim()


async def two_workers(tenant: Tenant) -> None:
    await tenant.channel()
    await tenant.enqueue()
    lost = await tenant.claim_one()
    await tenant.db.execute("UPDATE deliveries SET sending_lease_until = now() - interval '1 minute'")
    await tenant.db.execute("UPDATE delivery_queue SET lease_until = now() - interval '1 minute'")
    await tenant.recover()
    await tenant.claim(now=(await tenant.only_delivery())["next_retry_at"], run_id=uuid4())
    await tenant.commit(sent(lost), short=False)


async def nobody_answers(tenant: Tenant) -> None:
    await tenant.channel(on_ambiguous="hold")
    await tenant.enqueue()
    await tenant.commit(transient(await tenant.claim_one(), ambiguous=True))
    await tenant.claim()


async def every_attempt_fails(tenant: Tenant) -> None:
    await tenant.channel()
    await tenant.enqueue(max_attempts=1)
    await tenant.commit(transient(await tenant.claim_one(), retry_after_ms=0))


async def a_worker_dies_with_the_last_attempt(tenant: Tenant) -> None:
    await tenant.channel()
    await tenant.enqueue(max_attempts=1)
    await tenant.claim(lease=timedelta())
    await tenant.recover()


async def two_parts(tenant: Tenant) -> None:
    await tenant.channel()
    await tenant.enqueue(calls=2)
    claim = await tenant.claim_one()
    for part, provider_id in enumerate(("1", "2")):
        await tenant.db.fetchval(
            "SELECT record_progress($1, $2, $3, $4, $5)",
            *(tenant.workspace, claim["delivery_id"], claim["claim_token"], part, [provider_id]),
        )
    await tenant.commit(sent(claim, parts=[["1"], ["2"]]))


async def it_is_refused_for_good(tenant: Tenant) -> None:
    await tenant.channel()
    await tenant.enqueue()
    await tenant.commit(permanent(await tenant.claim_one()))


class Bug(NamedTuple):
    function: str
    right: str
    wrong: str
    story: Story
    kind: str


BUGS = {
    "attempts are not counted": Bug(
        "start_sending", "attempt = d.attempt + 1", "attempt = d.attempt", one_attempt, "order"
    ),
    "a running lease is taken back": Bug(
        "recover_sending_leases", "< _now\n", "< _now + interval '10 minutes'\n", a_lease_runs, "order"
    ),
    "a retry is claimed before its time": Bug(
        "wake_sleepers", "s.sort_at <= p_now", "s.sort_at <= p_now + interval '1 hour'", a_retry_waits, "order"
    ),
    "a post is claimed before its time": Bug(
        "choose_deliveries",
        "d.scheduled_for <= p_now + p_tolerance",
        "d.scheduled_for <= p_now + interval '1 hour'",
        a_post_is_rescheduled,
        "early",
    ),
    "a retry is shorter than was asked for": Bug(
        "decide_outcomes",
        "retry_delay(r.attempt, r.wait_ms,",
        "retry_delay(r.attempt, NULL,",
        a_retry_waits,
        "order",
    ),
    "a pause is ignored": Bug(
        "channel_opens_at", "ELSE greatest(p_channel.paused_until, p_at)", "ELSE p_at", a_channel_is_paused, "paused"
    ),
    "a switch-off is ignored": Bug(
        "channel_opens_at",
        "WHEN NOT p_channel.enabled THEN 'infinity'",
        "WHEN false THEN 'infinity'",
        a_channel_is_switched_off,
        "disabled",
    ),
    "slots of a channel are too close": Bug(
        "assign_slots",
        "max(s.slot_at + s.after) AS",
        "max(s.slot_at + s.after / 2) AS",
        a_channel_has_a_rate,
        "slots",
    ),
    "slots of a group are too close": Bug(
        "assign_slots",
        "group_base + count(*) * group_step",
        "group_base + group_step / 2",
        a_group_has_a_rate,
        "slots",
    ),
    "a cooldown of a group is ignored": Bug(
        "cool_groups",
        "greatest(g.next_allowed_at, w.until)",
        "g.next_allowed_at",
        a_platform_asks_for_patience,
        "cooldown",
    ),
    "an outage is ignored": Bug("claimable_at", "ELSE 'infinity'", "ELSE '-infinity'", a_platform_is_away, "circuit"),
    "the claim of another is ended": Bug("lock_claims", "AND d.claim_token = o.claim_token", "", two_workers, "order"),
    "a hold does not hold": Bug(
        "decide_outcomes", "WHEN r.on_hold THEN 'infinity'", "", nobody_answers, "next_retry_at"
    ),
    "attempts have no end": Bug(
        "decide_outcomes", "WHEN n.decision = 'dead' THEN 'dead'", "", every_attempt_fails, "order"
    ),
    "lost leases have no end": Bug(
        "recover_sending_leases",
        "WHEN 'dead' THEN 'dead' ELSE 'retry' END",
        "WHEN 'dead' THEN 'retry' ELSE 'retry' END",
        a_worker_dies_with_the_last_attempt,
        "order",
    ),
    "a part is not remembered": Bug("record_progress_across", "|| to_jsonb(p.part)", "", two_parts, "progress"),
    "an ending is not told": Bug(
        "recover_sending_leases",
        "SELECT 2, 'dead_letter' WHERE m.status = 'dead'",
        "SELECT 2, 'dead_letter' WHERE false",
        a_worker_dies_with_the_last_attempt,
        "event_count",
    ),
    "an error is told as another": Bug(
        "apply_outcomes",
        "WHEN o.status = 'failed_permanent' THEN 'failed_permanent'",
        "WHEN o.status = 'failed_permanent' THEN 'dead_letter'",
        it_is_refused_for_good,
        "status",
    ),
}


@pytest.fixture
async def alone(database) -> Tenant:
    """Without the look at its end: a planted bug leaves tables that disagree."""
    return await Tenant.create(database.pool)


@pytest.mark.parametrize("name", BUGS)
async def test_a_planted_bug_is_seen(database, alone, name):
    bug = BUGS[name]
    text = schema_files.function(bug.function).text
    assert bug.right in text, "the function has changed: plant the bug anew"
    await database.pool.execute(text.replace(bug.right, bug.wrong))

    await bug.story(alone)

    assert bug.kind in await kinds(database.pool, alone.workspace)


STORIES = {bug.story.__name__: bug.story for bug in BUGS.values()}


@pytest.mark.parametrize("name", STORIES)
async def test_without_a_bug_there_is_nothing_to_see(database, alone, name):
    await STORIES[name](alone)

    assert await kinds(database.pool, alone.workspace) == set()
