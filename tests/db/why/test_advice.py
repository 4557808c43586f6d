"""Whoever does what db/errors.md and docs/why.md advise leaves rows that are what their events say."""

import asyncpg
import pytest
from db.support.builders import Tenant, permanent, sent, transient
from db.support.by_hand import REQUEUE_DEAD, REQUEUE_FAILED
from db.support.operators import dead
from db.support.verified import differences, kinds
from db.verify.test_verify import orphans

GIVE_UP = """
WITH moved AS (
    UPDATE deliveries SET status = 'dead', updated_at = now() WHERE workspace_id = $1 AND delivery_id = $2 RETURNING *
)
INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, meta)
SELECT workspace_id, delivery_id, message_id, channel_id, 'dead_letter', attempt, '{"operator": "me", "reason": "old"}'
FROM moved
"""


@pytest.fixture
async def green(database, tenant: Tenant):
    """Looks when the test is over."""
    yield
    assert await differences(database.pool, tenant.workspace) == []
    assert await orphans(database.pool, tenant) == []


async def test_more_attempts_are_given_by_a_requeue(tenant, operator, green):
    """AP003."""
    await tenant.channel()
    await tenant.enqueue(max_attempts=1)
    await tenant.commit(transient(await tenant.claim_one(), retry_after_ms=0))
    delivery = (await tenant.only_delivery())["delivery_id"]

    assert await operator.requeue_one(delivery, attempts=3) == "requeued"

    assert (await tenant.delivery(delivery))["max_attempts"] == 4
    for _ in range(2):
        await tenant.commit(transient(await tenant.claim_one(), retry_after_ms=0))
    await tenant.commit(sent(await tenant.claim_one()))
    assert (await tenant.delivery(delivery))["attempt"] == 4


@pytest.mark.parametrize("attempts", [0, 1])
async def test_what_is_alive_is_given_up_with_a_signed_event(tenant, green, attempts):
    """AP005."""
    await tenant.channel()
    await tenant.enqueue()
    for _ in range(attempts):
        await tenant.commit(transient(await tenant.claim_one()))
    delivery = (await tenant.only_delivery())["delivery_id"]

    await tenant.db.execute(GIVE_UP, tenant.workspace, delivery)

    assert (await tenant.delivery(delivery))["status"] == "dead"


async def test_what_was_given_up_by_hand_can_be_brought_back(tenant, operator, green):
    await tenant.channel()
    await tenant.enqueue()
    delivery = (await tenant.only_delivery())["delivery_id"]
    await tenant.db.execute(GIVE_UP, tenant.workspace, delivery)

    assert await operator.requeue_one(delivery) == "requeued"
    await tenant.commit(sent(await tenant.claim_one()))


@pytest.mark.parametrize(
    ("ending", "statement"),
    [(transient, REQUEUE_DEAD), (permanent, REQUEUE_FAILED)],
    ids=["3 dead", "4 failed_permanent"],
)
async def test_a_pasted_requeue_renews_the_attempts(tenant, green, ending, statement):
    """AP006. The attempt stays what it is, and five more are allowed."""
    await tenant.channel()
    await tenant.enqueue(max_attempts=1)
    await tenant.commit(ending(await tenant.claim_one()))
    delivery = (await tenant.only_delivery())["delivery_id"]

    await tenant.db.execute(statement, tenant.workspace, [delivery])

    row = await tenant.delivery(delivery)
    assert (row["status"], row["attempt"], row["max_attempts"]) == ("retry", 1, 6)
    for _ in range(4):
        await tenant.commit(transient(await tenant.claim_one(), retry_after_ms=0))
    assert (await tenant.delivery(delivery))["status"] == "retry"
    await tenant.commit(transient(await tenant.claim_one(), retry_after_ms=0))
    assert (await tenant.delivery(delivery))["status"] == "dead"


async def test_a_pasted_requeue_may_name_another_number_of_attempts(tenant, green):
    await tenant.channel()
    await tenant.enqueue(max_attempts=1)
    await tenant.commit(transient(await tenant.claim_one()))
    delivery = (await tenant.only_delivery())["delivery_id"]
    statement = REQUEUE_DEAD.replace("set status = 'retry',", "set status = 'retry', max_attempts = 3,").replace(
        "'from_status', 'dead'", "'from_status', 'dead', 'max_attempts', 3"
    )

    await tenant.db.execute(statement, tenant.workspace, [delivery])

    assert (await tenant.delivery(delivery))["max_attempts"] == 3


async def test_a_pasted_requeue_of_what_has_no_plan_is_refused_in_words(tenant, green):
    await tenant.channel()
    post = await tenant.post()
    post["renderings"] = [{"profile_hash": one["profile_hash"], "problems": ["too long"]} for one in post["renderings"]]
    await tenant.put(post)
    delivery = (await tenant.only_delivery())["delivery_id"]

    with pytest.raises(asyncpg.PostgresError) as refusal:
        await tenant.db.execute(REQUEUE_FAILED, tenant.workspace, [delivery])

    assert refusal.value.sqlstate == "AP013"
    assert str(delivery) in str(refusal.value)
    assert "has no plan" in str(refusal.value)
    assert "post the content again" in str(refusal.value.hint)
    assert (await tenant.delivery(delivery))["status"] == "failed_permanent"


async def test_what_why_tells_to_type_is_told_in_the_log(database, tenant, operator, green):
    """docs/why.md: enable, resume, resolve, release, and a workspace that is active again."""
    first, second, held = [await tenant.channel(on_ambiguous=one) for one in ("resend", "resend", "hold")]
    await tenant.enqueue()
    await operator.disable(first)
    await operator.pause(second)
    await tenant.db.execute("UPDATE workspaces SET status = 'paused' WHERE workspace_id = $1", tenant.workspace)
    assert await tenant.claim() == []

    await tenant.db.execute("UPDATE workspaces SET status = 'active' WHERE workspace_id = $1", tenant.workspace)
    claim = await tenant.claim_one()
    assert claim["channel_id"] == held
    await tenant.commit(transient(claim, ambiguous=True))
    await operator.resolve(claim["delivery_id"], "resend")
    await operator.enable(first)
    await operator.resume(second)

    claims = await tenant.claim()
    assert {claim["channel_id"] for claim in claims} == {first, second, held}
    await operator.release(force=True)
    assert await kinds(database.pool, tenant.workspace) == set()


@pytest.mark.parametrize("assignment", ["paused_until = NULL", "enabled = true, paused_until = NULL, error_streak = 0"])
async def test_a_channel_that_is_opened_by_a_statement_alone_is_told_of(tenant, operator, green, assignment):
    channel = await tenant.channel()
    await operator.pause(channel)
    if "enabled" in assignment:
        await operator.disable(channel)
    await tenant.set_channel(channel, assignment)
    await tenant.enqueue()

    await tenant.commit(sent(await tenant.claim_one()))

    [event] = await tenant.events("channel_enabled")
    assert event["channel_id"] == channel
    await tenant.set_channel(channel, "paused_until = now() - interval '1 hour'")
    await tenant.set_channel(channel, "paused_until = NULL")
    assert len(await tenant.events("channel_enabled")) == 1


async def test_a_requeue_that_gives_what_was_there_before_is_not_taken_for_a_pasted_one(tenant, operator, green):
    await tenant.channel()
    await tenant.enqueue(max_attempts=3)
    await tenant.commit(permanent(await tenant.claim_one()))
    delivery = (await tenant.only_delivery())["delivery_id"]

    await operator.requeue_one(delivery, attempts=2)

    assert (await tenant.delivery(delivery))["max_attempts"] == 3


async def test_dead_deliveries_of_one_statement_come_back_together(tenant):
    deliveries = await dead(tenant, await tenant.channel(), 3)

    await tenant.db.execute(REQUEUE_DEAD, tenant.workspace, deliveries)

    assert {(await tenant.delivery(one))["max_attempts"] for one in deliveries} == {6}
