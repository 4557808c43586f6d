"""What a claim and a commit touch: the buffers of their own work, whatever lies in the tables beside it."""

import json
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import pytest
from db.support.builders import Tenant, permanent, sent, transient
from harness.full import FULL

pytestmark = pytest.mark.time_limit(480)

SENT = 1_000_000 if FULL else 200_000
BLOCKED = 100_000 if FULL else 20_000
FEW = 1_000
CHANNELS = 20
DUE = 5
"""Per channel."""
RATIO = 1.5
MOST = {"claim": 60, "claim_due": 60, "arrived": 30, "across": 30, "sent": 35, "failed": 60}
"""Buffers per row: half as much again as was seen with a million sent or 100,000 blocked."""

CLAIM = "SELECT * FROM claim_deliveries($1, $2, $3)"
CLAIM_DUE = "SELECT * FROM claim_due(ARRAY[$1::uuid, gen_random_uuid()], $2, $3, $3)"
SHORT = "SELECT * FROM commit_sent($1, $2, $3, $4)"
ACROSS = "SELECT * FROM commit_sent_across(array_fill($1::uuid, ARRAY[cardinality($2::uuid[])]), $2, $3, $4)"
COMMIT = "SELECT * FROM commit_deliveries($1, $2, '1 hour', 3, 0.5)"
ROWS = {CLAIM: CHANNELS * DUE, CLAIM_DUE: CHANNELS * DUE + 1, COMMIT: CHANNELS * DUE // 2, SHORT: 0, ACROSS: 1}
OTHERS = """
WITH other AS (
    INSERT INTO workspaces (name) SELECT 'other' FROM generate_series(1, $1) RETURNING workspace_id
), gate AS (
    INSERT INTO platform_limits (workspace_id, platform, rate_group) SELECT workspace_id, 'telegram', 'bot' FROM other
)
INSERT INTO channels (workspace_id, platform, target_id, auth_ref, rate_group)
SELECT workspace_id, 'telegram', n::text, 'bot', 'bot' FROM other CROSS JOIN generate_series(1, $2) AS n
"""
"""$1 tenants with $2 channels each."""
FILL = """
WITH message AS (
    INSERT INTO messages (workspace_id, content_hash, payload)
    SELECT $1, gen_random_uuid()::text, '{}' FROM generate_series(1, $3 / cardinality($2::uuid[]))
    RETURNING message_id, content_hash
), delivery AS (
    INSERT INTO deliveries (workspace_id, message_id, channel_id, hash_version, content_hash, status, attempt,
                            not_before, sent_at, created_at, event_count)
    SELECT $1, m.message_id, c.channel_id, 1, m.content_hash, $4, CASE WHEN $4 = 'sent' THEN 1 ELSE 0 END,
           now() - interval '1 day', CASE WHEN $4 = 'sent' THEN now() - interval '1 day' END,
           now() - interval '1 day', 3
    FROM message m
    CROSS JOIN unnest($2::uuid[]) AS c (channel_id)
    RETURNING delivery_id, channel_id, message_id, created_at
), queued AS (
    INSERT INTO delivery_queue (workspace_id, delivery_id, channel_id, asleep, sort_at, due_at)
    SELECT $1, delivery_id, channel_id, false, created_at, created_at FROM delivery WHERE $4 <> 'sent'
)
INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action)
SELECT $1, d.delivery_id, d.message_id, d.channel_id, 'enqueue'
FROM delivery d
"""


@dataclass
class Shop:
    """A workspace with channels that have something to send now, and as much that is being sent."""

    tenant: Tenant
    channels: list[UUID]
    claims: list[Any] = field(default_factory=list)

    @classmethod
    async def open(cls, tenant: Tenant) -> "Shop":
        shop = cls(tenant, await tenant.channels(CHANNELS, max_parallel=2 * DUE))
        await shop.restock()
        shop.claims = await tenant.claim(CHANNELS * DUE)
        await shop.restock()
        return shop

    async def restock(self) -> None:
        for channel in self.channels:
            await self.tenant.backlog(channel, DUE)

    async def fill(self, connection: Any, channels: list[UUID], count: int, status: str) -> None:
        """In bulk, past the triggers, and vacuumed, as the tables of a queue that has run for long are."""
        await connection.execute("SET session_replication_role = replica")
        query = FILL.replace("$4", f"'{status}'::delivery_status")
        await connection.execute(query, self.tenant.workspace, channels, count, timeout=600)
        await connection.execute("SET session_replication_role = DEFAULT")
        await connection.execute("VACUUM (ANALYZE) deliveries", timeout=600)
        for table in ("messages", "delivery_queue", "events"):
            await connection.execute(f"VACUUM (ANALYZE) {table}", timeout=600)

    async def touched(self, connection: Any) -> dict[str, float]:
        """Buffers per row of a claim and of commits, in the best of two rounds: the first one only warms the plans.

        Nothing stays: what was rolled back is swept out of the pages, or the next round would not fit into them.
        """
        rounds = [await self._touched(connection) for _ in range(2)]
        return {call: min(one[call] for one in rounds) for call in rounds[0]}

    async def _touched(self, connection: Any) -> dict[str, float]:
        await connection.execute("VACUUM deliveries, delivery_queue", timeout=600)
        half = len(self.claims) // 2
        refused = [transient(claim, "platform", retry_after_ms=1) for claim in self.claims[half:-CHANNELS]]
        refused += [permanent(claim, "channel") for claim in self.claims[-CHANNELS:]]
        claim = await self.measure(connection, CLAIM, uuid4(), CHANNELS * DUE)
        together = await self.measure(connection, CLAIM_DUE, uuid4(), CHANNELS * DUE)
        arrived = self.claims[:half]
        fences = [claim["delivery_id"] for claim in arrived], [claim["claim_token"] for claim in arrived]
        short = await self.measure(connection, SHORT, *fences, ["17"] * half)
        across = await self.measure(connection, ACROSS, *fences, ["17"] * half)
        well = await self.commit(connection, [sent(claim) for claim in self.claims[:half]])
        ill = await self.commit(connection, refused)
        return {
            "claim": claim / (CHANNELS * DUE),
            "claim_due": together / (CHANNELS * DUE),
            "arrived": short / half,
            "across": across / half,
            "sent": well / half,
            "failed": ill / len(refused),
        }

    async def commit(self, connection: Any, outcomes: list[dict[str, Any]]) -> int:
        return await self.measure(connection, COMMIT, json.dumps(outcomes, default=str))

    async def measure(self, connection: Any, query: str, *arguments: Any) -> int:
        """In a transaction of its own: what a transaction wrote itself, foreign keys check again."""
        transaction = connection.transaction()
        await transaction.start()
        explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {query}"
        [explained] = json.loads(await connection.fetchval(explain, self.tenant.workspace, *arguments))
        await transaction.rollback()
        plan = explained["Plan"]
        assert plan["Actual Rows"] == ROWS[query]
        return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


def check(before: dict[str, float], after: dict[str, float]) -> None:
    print({call: round(count, 1) for call, count in after.items()})  # noqa: T201 -- for -rP
    for call, count in before.items():
        assert after[call] <= MOST[call], f"{call}: {after[call]:.1f} buffers per row"
        assert after[call] <= RATIO * count, f"{call}: {count:.1f} buffers per row became {after[call]:.1f}"


@pytest.fixture
async def shop(tenant: Tenant) -> Shop:
    return await Shop.open(tenant)


async def test_history_costs_a_claim_and_a_commit_nothing(database, shop):
    connection = await database.connect()
    await shop.fill(connection, shop.channels, FEW, "sent")
    before = await shop.touched(connection)

    await shop.fill(connection, shop.channels, SENT, "sent")

    check(before, await shop.touched(connection))
    check(before, await shop.touched(await database.connect()))


async def test_what_waits_behind_a_paused_channel_costs_the_others_nothing(database, shop):
    connection = await database.connect()
    await shop.fill(connection, shop.channels, FEW, "sent")
    before = await shop.touched(connection)

    paused = await shop.tenant.channel(max_parallel=10)
    await shop.fill(connection, [paused], BLOCKED, "queued")
    await shop.tenant.set_channel(paused, "paused_until = clock_timestamp() + interval '1 hour'")

    check(before, await shop.touched(connection))
    check(before, await shop.touched(await database.connect()))


async def test_channels_of_other_tenants_cost_a_claim_and_a_commit_nothing(database, shop):
    """Planned for few channels and for many; those of the others are due, full and idle."""
    connection = await database.connect()
    await shop.fill(connection, shop.channels, FEW, "sent")
    before = await shop.touched(connection)

    await connection.execute(OTHERS, 500, 40, timeout=600)
    await connection.execute(
        "UPDATE channel_due SET next_due_at = CASE WHEN abs(hashtext(channel_id::text)) % 2 = 0 THEN 'infinity'"
        " ELSE now() END, waits_for_place = abs(hashtext(channel_id::text)) % 4 = 0 WHERE workspace_id <> $1",
        shop.tenant.workspace,
    )
    await connection.execute("VACUUM (ANALYZE) channel_due, channels, platform_limits, workspaces, channel_counters")

    check(before, await shop.touched(connection))
    check(before, await shop.touched(await database.connect()))


async def test_the_poll_costs_an_idle_workspace_a_probe_and_a_backlog_nothing(database, shop):
    connection = await database.connect()
    await connection.execute(
        "WITH idle AS (INSERT INTO workspaces (name) SELECT 'idle' FROM generate_series(1, $1) RETURNING workspace_id) "
        "INSERT INTO channels (workspace_id, platform, target_id, auth_ref, rate_group) "
        "SELECT workspace_id, 'telegram', 'chat', 'bot', 'bot' FROM idle",
        FEW,
    )
    await connection.execute(
        "UPDATE channel_due SET next_due_at = 'infinity' WHERE workspace_id <> $1", shop.tenant.workspace
    )
    await connection.execute("VACUUM (ANALYZE) channel_due, channels, platform_limits, workspaces")
    before = await polled(connection)

    await shop.fill(connection, [await shop.tenant.channel()], BLOCKED, "queued")

    assert before <= 5 * FEW
    assert await polled(connection) <= RATIO * before


async def polled(connection: Any) -> int:
    """Buffers of a poll that finds the one workspace with something to do; the first only warms the plan."""
    explain = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM due_workspaces()"
    [plan] = [json.loads(await connection.fetchval(explain))[0]["Plan"] for _ in range(2)][1:]
    assert plan["Actual Rows"] == 1
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])
