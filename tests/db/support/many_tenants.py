"""Several workspaces, and the calls that a dispatcher makes in all of them at once."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from db.support.builders import LEASE, Executor, Tenant

CLAIM = "SELECT * FROM claim_due($1, $2, $3, $4, $5, p_now => $6)"
SAME_IDS = """
WITH message AS (
    INSERT INTO messages (workspace_id, message_id, content_hash, payload) VALUES ($1, $3, 'same', '{}')
), rendering AS (
    INSERT INTO renderings (workspace_id, message_id, rendering_id, plan_hash, rendered_text, plan)
    VALUES ($1, $3, $3, 'plan', '', jsonb_build_object('of', $1::text))
), waiting AS (
    SELECT clock_timestamp() - interval '1 minute' AS at
)
INSERT INTO deliveries (workspace_id, delivery_id, message_id, channel_id, rendering_id, hash_version, content_hash,
                        not_before, created_at)
SELECT $1, $3, $3, $2, $3, 1, 'same', at, at FROM waiting
"""


async def tenants(pool: Executor, count: int) -> list[Tenant]:
    return sorted([await Tenant.create(pool) for _ in range(count)], key=lambda one: one.workspace)


async def alike(pool: Executor, count: int = 2) -> tuple[list[Tenant], UUID, UUID]:
    """Tenants whose ids are the same, of the channel and of what is to be sent: an id is unique in its workspace only.

    Their tokens and targets differ.
    """
    made, channel, delivery = await tenants(pool, count), uuid4(), uuid4()
    for tenant in made:
        own = str(tenant.workspace)
        await tenant.channel(channel_id=channel, auth_ref=own, rate_group=own, target_id=own, max_parallel=1)
        await pool.execute(SAME_IDS, tenant.workspace, channel, delivery)
    return made, channel, delivery


class Claimed:
    """What ``claim_due`` gave: rows with the facts of their channels, and what it says about each workspace."""

    def __init__(self, rows: Sequence[Any]) -> None:
        header, *rest = rows
        told = json.loads(header["shared"])
        assert header["delivery_id"] is None
        assert all(row["shared"] is None for row in rest)
        shared = told["shared"] or {"plans": {}, "channels": {}}
        self.workspaces: dict[UUID, dict[str, Any]] = {
            UUID(key): one for key, one in (told["workspaces"] or {}).items()
        }
        self.rows = [
            dict(row)
            | shared["channels"][str(row["workspace_id"])][str(row["channel_id"])]
            | {"plan": (shared["plans"] or {}).get(str(row["workspace_id"]), {}).get(str(row["rendering_id"]))}
            for row in rest
        ]

    def of(self, tenant: Tenant) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["workspace_id"] == tenant.workspace]

    def counts(self, among: Sequence[Tenant]) -> list[int]:
        return [len(self.of(tenant)) for tenant in among]


async def claim_due(
    executor: Executor,
    among: Sequence[Tenant],
    *,
    limit: int = 100,
    most: int = 1000,
    lease: timedelta = LEASE,
    now: Any = None,
) -> Claimed:
    ids = [tenant.workspace for tenant in among]
    return Claimed(await executor.fetch(CLAIM, ids, uuid4(), limit, most, lease, now))
