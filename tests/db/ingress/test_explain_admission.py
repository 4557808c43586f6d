"""What an admission touches: the buffers of its own work, whatever was taken in before."""

import json
from typing import Any
from uuid import uuid4

import pytest
from db.support.builders import Tenant
from db.support.senders import Sender, make_sender

pytestmark = pytest.mark.time_limit(480)

BEFORE = 20_000
PLANNED = 8
"""Calls after which no plan is made anew."""

LOOKS = 3
"""The least of them counts: whoever analyses a table meanwhile makes one of them plan anew, in thousands of buffers."""

ADMIT = "SELECT admit_posts($1, $2, $3, $4, $5)"
FILL = """
WITH content AS (
    INSERT INTO messages (workspace_id, content_hash, payload)
    SELECT $1, n::text, '{}' FROM generate_series(1, $3) AS n
    RETURNING message_id, content_hash
), rendering AS (
    INSERT INTO renderings (workspace_id, message_id, plan_hash, rendered_text, plan)
    SELECT $1, message_id, 'plan', '', '{}' FROM content
), delivery AS (
    INSERT INTO deliveries (workspace_id, message_id, channel_id, hash_version, content_hash, status)
    SELECT $1, m.message_id, c.channel_id, 1, m.content_hash, 'deduped'
    FROM content m
    JOIN channels c ON c.workspace_id = $1
)
INSERT INTO ingress_receipts (workspace_id, endpoint_id, endpoint_kind, source_ref, payload_hash, run_id, expires_at)
SELECT $1, $2, 'webhook_push', CASE WHEN c.content_hash::int % 2 = 0 THEN c.content_hash END, c.content_hash, new_id(),
       now() + interval '1 day'
FROM content c
ON CONFLICT DO NOTHING
"""


async def touched(sender: Sender, post: dict[str, Any]) -> int:
    """Buffers."""
    given = (
        sender.tenant.workspace,
        sender.endpoint,
        json.dumps([{**post, "run_id": str(uuid4())}]),
        [uuid4().hex],
        [False],
    )
    told = await sender.tenant.db.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {ADMIT}", *given)
    plan = json.loads(told)[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


@pytest.fixture
async def sender(database: Any, tenant: Tenant) -> Sender:
    """On one connection, whose plans are made while there is nothing and it is known that there is nothing."""
    await tenant.channels(2)
    await tenant.db.execute("VACUUM ANALYZE")
    return (await make_sender(tenant)).on(await database.connect())


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (None, {}),
        (None, {"source_ref": "new"}),
        (None, {"source_ref": "2"}),
        ("the same again and again", {}),
    ],
    ids=["by payload", "by source_ref", "a duplicate", "a repost"],
)
async def test_a_push_touches_no_more_when_much_was_taken_in_before(tenant, sender, text, fields):
    async def pushed() -> int:
        await tenant.db.execute("DELETE FROM ingress_receipts WHERE source_ref = 'new'")
        return await touched(sender, await tenant.post(text or uuid4().hex, **fields))

    for _ in range(PLANNED):
        early = await pushed()

    await tenant.db.execute(FILL, tenant.workspace, sender.endpoint, BEFORE)
    late = min([await pushed() for _ in range(LOOKS)])

    assert late < 1.5 * early + 50
