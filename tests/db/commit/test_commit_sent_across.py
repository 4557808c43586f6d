"""``commit_sent_across``: sent outcomes of many workspaces, as if each were committed alone."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from db.support.builders import Tenant, permanent, sent
from db.support.consistency import consistent
from db.support.many_tenants import alike, claim_due, tenants

COMMIT = "SELECT * FROM commit_sent_across($1, $2, $3, $4, $5)"


async def commit_across(pool: Any, claims: Sequence[Any]) -> tuple[list[int], dict[UUID, float | None]]:
    """The places of those that are left, and what is due then."""
    keys = [[row[key] for row in claims] for key in ("workspace_id", "delivery_id", "claim_token")]
    row = await pool.fetchrow(COMMIT, *keys, [str(nth) for nth in range(len(claims))], uuid4())
    dues = dict(zip(row["workspaces"] or (), row["dues"] or (), strict=True))
    return [nth - 1 for nth in row["unsettled"]], dues


async def busy(pool: Any, count: int) -> tuple[list[Tenant], list[dict[str, Any]]]:
    among = await tenants(pool, count)
    for tenant in among:
        for channel in await tenant.channels(2, max_parallel=1):
            await tenant.backlog(channel, 2)
    return among, (await claim_due(pool, among)).rows


async def test_each_is_sent_with_its_own_event(database):
    among, claims = await busy(database.pool, 3)

    left, _ = await commit_across(database.pool, claims)

    assert left == []
    for tenant in among:
        own = [(nth, row) for nth, row in enumerate(claims) if row["workspace_id"] == tenant.workspace]
        assert len(own) == 2
        for nth, row in own:
            stored = await tenant.delivery(row["delivery_id"])
            assert (stored["status"], stored["provider_message_id"], stored["claim_token"]) == ("sent", str(nth), None)
            assert await tenant.history(row["delivery_id"]) == ["send_attempt", "sent"]
        await consistent(database.pool, tenant.workspace, None)


async def test_it_says_where_something_can_be_claimed_again(database):
    among, claims = await busy(database.pool, 2)
    last = await among[1].claim()
    assert last == []  # every channel is full

    _, dues = await commit_across(database.pool, claims)
    await claim_due(database.pool, among)
    again = await database.pool.fetchval("SELECT count(*) FROM deliveries WHERE status = 'sending'")

    assert set(dues) == {tenant.workspace for tenant in among}
    assert all(due is not None and due <= 0 for due in dues.values())
    assert again == 4


async def test_an_outcome_whose_claim_passed_on_is_left(database):
    among, claims = await busy(database.pool, 2)
    claims[1] |= {"claim_token": uuid4()}

    left, _ = await commit_across(database.pool, [*claims, claims[0]])  # the last is told twice

    assert left == [1, len(claims)]
    for tenant in among:
        await consistent(database.pool, tenant.workspace, None)


async def test_a_token_is_good_in_its_own_workspace_only(database):
    """Two tenants with the same ids, claimed by one call: the deliveries differ in their workspace alone."""
    (first, second), _, delivery = await alike(database.pool)
    claims = (await claim_due(database.pool, [first, second])).rows
    mine = [row for row in claims if row["workspace_id"] == first.workspace]

    left, _ = await commit_across(database.pool, mine)

    assert left == []
    assert (await first.delivery(delivery))["status"] == "sent"
    assert (await second.delivery(delivery))["status"] == "sending"
    assert (await second.history(delivery)) == ["send_attempt"]
    assert await second.count("delivery_queue") == 1


async def test_a_workspace_with_a_streak_is_left_and_the_others_are_not(database):
    among, claims = await busy(database.pool, 2)
    own = [row for row in claims if row["workspace_id"] == among[0].workspace]
    await among[0].commit(permanent(own[0], "channel"))
    rest = [row for row in claims if row is not own[0]]

    left, _ = await commit_across(database.pool, rest)

    assert [rest[nth]["delivery_id"] for nth in left] == [own[1]["delivery_id"]]
    await among[0].commit(sent(own[1]))
    for tenant in among:
        await consistent(database.pool, tenant.workspace, None)
