"""The state machine of a delivery, tried by raw SQL as the owner of the tables: whoever writes, it holds."""

from itertools import product
from uuid import UUID, uuid4

import asyncpg
import pytest
from db.support.builders import Tenant
from db.support.consistency import consistent

LEGAL = {
    "queued": {"claimed", "sending", "failed_permanent", "deduped", "dead"},
    "retry": {"claimed", "sending", "failed_permanent", "deduped", "dead"},
    "claimed": {"sending", "queued", "retry", "dead"},
    "sending": {"sent", "retry", "failed_permanent", "dead"},
    "failed_permanent": {"retry"},
    "dead": {"retry"},
    "sent": set(),
    "deduped": set(),
}
PATHS = {
    "queued": (),
    "claimed": ("claimed",),
    "sending": ("sending",),
    "retry": ("sending", "retry"),
    "sent": ("sending", "sent"),
    "failed_permanent": ("failed_permanent",),
    "deduped": ("deduped",),
    "dead": ("dead",),
}
PAIRS = list(product(LEGAL, LEGAL))
INSERT = """
INSERT INTO deliveries (workspace_id, message_id, channel_id, hash_version, content_hash, status, attempt)
SELECT $1, message_id, $2, hash_version, content_hash, $3, $4 FROM messages WHERE workspace_id = $1
RETURNING delivery_id"""
EXPLAIN = """
INSERT INTO events (workspace_id, delivery_id, action) VALUES ($1, $2, 'manual_requeue')"""


@pytest.fixture
async def queued(tenant: Tenant) -> UUID:
    await tenant.channel(max_parallel=1)
    await tenant.enqueue()
    delivery: UUID = (await tenant.only_delivery())["delivery_id"]
    return delivery


async def move(tenant: Tenant, delivery: UUID, status: str) -> None:
    bump = ", attempt = attempt + 1, claim_token = gen_random_uuid()" if status == "sending" else ""
    await tenant.set_delivery(delivery, f"status = $3{bump}", status)


async def arrive(tenant: Tenant, delivery: UUID, status: str) -> None:
    for step in PATHS[status]:
        await move(tenant, delivery, step)


async def explain(tenant: Tenant, delivery: UUID) -> None:
    await tenant.db.execute(EXPLAIN, tenant.workspace, delivery)


async def verdict(tenant: Tenant, before: str, after: str) -> str:
    """What the database says to this move of a delivery in a workspace of its own; the tables agree afterwards."""
    apart = await Tenant.create(tenant.db)
    await apart.channel(max_parallel=1)
    await apart.enqueue()
    delivery = (await apart.only_delivery())["delivery_id"]
    await arrive(apart, delivery, before)

    said = await _try(apart, delivery, before, after)

    assert (await apart.delivery(delivery))["status"] == (after if said == "passes" else before)
    assert await consistent(tenant.db, apart.workspace)
    return said


async def _try(tenant: Tenant, delivery: UUID, before: str, after: str) -> str:
    try:
        async with tenant.db.acquire() as connection, connection.transaction():
            await move(tenant.on(connection), delivery, after)
            if before in ("dead", "failed_permanent"):
                await explain(tenant.on(connection), delivery)
    except asyncpg.PostgresError as refusal:
        return str(refusal.sqlstate)
    return "passes"


async def test_of_all_64_moves_exactly_the_legal_ones_pass(tenant):
    found = {(before, after): await verdict(tenant, before, after) for before, after in PAIRS if before != after}

    assert found == {
        (before, after): "passes" if after in LEGAL[before] else "AP002" for before, after in PAIRS if before != after
    }


async def test_staying_is_no_move(tenant):
    """But for one into sending, which would be an attempt that nobody made."""
    found = {status: await verdict(tenant, status, status) for status in LEGAL}

    assert found == {status: "AP003" if status == "sending" else "passes" for status in LEGAL}


@pytest.mark.parametrize("given_up", ["dead", "failed_permanent"])
async def test_what_was_given_up_comes_back_only_with_a_word_of_explanation(database, tenant, queued, given_up):
    await arrive(tenant, queued, given_up)

    with pytest.raises(asyncpg.PostgresError) as refusal:
        await move(tenant, queued, "retry")

    assert refusal.value.sqlstate == "AP006"
    assert (await tenant.delivery(queued))["status"] == given_up


async def test_an_explanation_of_an_earlier_transaction_does_not_count(database, tenant, queued):
    await arrive(tenant, queued, "dead")
    await explain(tenant, queued)

    with pytest.raises(asyncpg.PostgresError, match="without a manual_requeue event"):
        await move(tenant, queued, "retry")


async def test_the_explanation_of_another_delivery_does_not_count(database, tenant, queued):
    await arrive(tenant, queued, "dead")
    connection = await database.connect()

    with pytest.raises(asyncpg.PostgresError, match="without a manual_requeue event"):
        async with connection.transaction():
            await explain(tenant.on(connection), uuid4())
            await move(tenant.on(connection), queued, "retry")


ATTEMPTS = {
    "up without sending": ("queued", "attempt = attempt + 1"),
    "up on the way out": ("sending", "status = 'retry', attempt = attempt + 1"),
    "up while sending": ("sending", "attempt = attempt + 1"),
    "up by two": ("queued", "status = 'sending', attempt = attempt + 2"),
    "down": ("retry", "attempt = attempt - 1"),
    "down into sending": ("retry", "status = 'sending', attempt = 0"),
    "back to nothing by a requeue": ("sent", "attempt = 0"),
}


async def test_attempt_rises_by_one_into_sending_and_never_otherwise(tenant):
    [channel] = await tenant.channels(1)
    for name, (before, assignment) in ATTEMPTS.items():
        [delivery] = await tenant.backlog(channel, 1)
        await arrive(tenant, delivery, before)

        with pytest.raises(asyncpg.PostgresError) as refusal:
            await tenant.set_delivery(delivery, assignment)
        assert refusal.value.sqlstate == "AP003", name


async def test_a_delivery_is_born_queued_failed_or_deduped(tenant, queued):
    channel = (await tenant.delivery(queued))["channel_id"]
    said = {}

    for status in LEGAL:
        try:
            said[status] = await tenant.db.fetchval(INSERT, tenant.workspace, channel, status, 0) and "passes"
        except asyncpg.PostgresError as refusal:
            said[status] = str(refusal.sqlstate)

    born = ("queued", "failed_permanent", "deduped")
    assert said == {status: "passes" if status in born else "AP002" for status in LEGAL}


async def test_only_what_is_finished_can_be_deleted(tenant):
    [channel] = await tenant.channels(1)
    said = {}

    for status in LEGAL:
        [delivery] = await tenant.backlog(channel, 1)
        await arrive(tenant, delivery, status)
        try:
            said[status] = await tenant.db.execute("DELETE FROM deliveries WHERE delivery_id = $1", delivery)
        except asyncpg.PostgresError as refusal:
            said[status] = str(refusal.sqlstate)

    live = ("queued", "retry", "claimed", "sending")
    assert said == {status: "AP005" if status in live else "DELETE 1" for status in LEGAL}


async def test_deliveries_cannot_be_truncated(tenant, queued):
    with pytest.raises(asyncpg.PostgresError) as refusal:
        await tenant.db.execute("TRUNCATE deliveries")

    assert refusal.value.sqlstate == "AP005"


async def test_neither_the_key_nor_the_channel_of_a_delivery_can_change(tenant, queued):
    other = await tenant.channel()

    for assignment in ("delivery_id = $3", "channel_id = $3"):
        with pytest.raises(asyncpg.PostgresError) as refusal:
            await tenant.set_delivery(queued, assignment, other)
        assert refusal.value.sqlstate == "AP004", assignment


async def test_one_statement_may_move_many_deliveries_in_many_ways(database, tenant):
    for place in range(6):
        channel = await tenant.channel(max_parallel=1 + place % 2)
        await tenant.backlog(channel, 4)
    moves = "(ARRAY['claimed', 'sending', 'dead', 'queued', 'failed_permanent'])[1 + n % 5]::delivery_status"

    await tenant.db.execute(
        f"""
        UPDATE deliveries d SET status = {moves}, attempt = d.attempt + (n % 5 = 1)::int
        FROM (SELECT delivery_id, row_number() OVER (ORDER BY delivery_id) AS n FROM deliveries) AS o
        WHERE o.delivery_id = d.delivery_id
        """
    )

    assert {row["status"] for row in await tenant.deliveries()} == {
        "claimed",
        "sending",
        "dead",
        "queued",
        "failed_permanent",
    }
    assert await consistent(database.pool, tenant.workspace)
