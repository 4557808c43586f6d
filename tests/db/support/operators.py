"""What an operator does by hand, in the words of the tests."""

import json
from typing import Any
from uuid import UUID

import asyncpg
from db.support.builders import Tenant, permanent, transient

DISAGREEMENTS = """
SELECT format('%s is %s, given_up says %s', coalesce(d.delivery_id, g.delivery_id), d.status, g.status)
FROM (SELECT * FROM deliveries WHERE workspace_id = $1 AND status IN ('dead', 'failed_permanent')) AS d
FULL JOIN (SELECT * FROM dead_letters WHERE workspace_id = $1) AS g
  ON g.delivery_id = d.delivery_id AND g.status = d.status AND g.channel_id = d.channel_id
WHERE d.delivery_id IS NULL OR g.delivery_id IS NULL
"""
ALERT = "SELECT count(*) FROM dead_letters WHERE workspace_id = $1 AND status = 'dead' AND skipped_at IS NULL"
SIGNED = ("ann", "because")
BY_HAND = {"operator": "ann", "reason": "because", "trace_id": None, "run_id": None}
"""What every event says that an operator made; no run and, here, no trace."""


class Operator:
    """``ann`` with the reason ``because``, unless a test says otherwise."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant

    async def rows(self, function: str, *values: Any, **named: Any) -> list[asyncpg.Record]:
        places = [f"${place}" for place in range(2, len(values) + 2)]
        places += [f"p_{name} => ${place}" for place, name in enumerate(named, len(values) + 2)]
        query = f"SELECT * FROM {function}({', '.join(['$1', *places])})"
        return list(await self.tenant.db.fetch(query, self.tenant.workspace, *values, *named.values()))

    async def requeue(self, *deliveries: UUID, **named: Any) -> dict[UUID, asyncpg.Record]:
        return {row["delivery_id"]: row for row in await self.rows("requeue", list(deliveries), *SIGNED, **named)}

    async def requeue_one(self, delivery: UUID, **named: Any) -> str:
        verdict: str = (await self.requeue(delivery, **named))[delivery]["verdict"]
        return verdict

    async def requeue_matching(self, **named: Any) -> dict[UUID, str]:
        rows = await self.rows("requeue_matching", *SIGNED, **named)
        return {row["delivery_id"]: row["verdict"] for row in rows}

    async def turn_workspace(self, status: str) -> str:
        query = "SELECT turn_workspace($1, $2::text::workspace_status, $3, $4)"
        answer = await self.tenant.db.fetchval(query, self.tenant.workspace, status, *SIGNED)
        verdict: str = _decoded(answer)["verdict"]
        return verdict

    async def skip(self, *deliveries: UUID) -> list[str]:
        verdicts = {row["delivery_id"]: row["verdict"] for row in await self.rows("skip", list(deliveries), *SIGNED)}
        return [verdicts[delivery] for delivery in deliveries]

    async def pause(self, channel: UUID | None = None, group: str | None = None, **named: Any) -> dict[UUID, str]:
        return _verdicts(await self.rows("pause_channels", channel, group, *SIGNED, **named))

    async def disable(self, channel: UUID | None = None, group: str | None = None) -> dict[UUID, str]:
        return _verdicts(await self.rows("disable_channels", channel, group, *SIGNED))

    async def resume(self, channel: UUID | None = None, group: str | None = None) -> dict[UUID, str]:
        return _verdicts(await self.rows("resume_channels", channel, group, *SIGNED))

    async def enable(self, channel: UUID | None = None, group: str | None = None) -> dict[UUID, str]:
        return _verdicts(await self.rows("enable_channels", channel, group, *SIGNED))

    async def quarantine(self) -> list[asyncpg.Record]:
        query = "SELECT * FROM quarantine WHERE workspace_id = $1 ORDER BY title"
        return list(await self.tenant.db.fetch(query, self.tenant.workspace))

    async def rotate(self, channel: UUID, auth_ref: str, group: str | None = None, **named: Any) -> dict[str, Any]:
        [[answer]] = await self.rows("rotate_auth", channel, auth_ref, group, *SIGNED, **named)
        return _decoded(answer)

    async def release(self, **named: Any) -> dict[UUID, str]:
        rows = await self.rows("release_stale", *SIGNED, **named)
        return {row["delivery_id"]: row["verdict"] for row in rows}

    async def resolve(self, delivery: UUID, decision: str, found: str | None = None) -> str:
        [[answer]] = await self.rows("resolve_ambiguous", delivery, decision, *SIGNED, found)
        verdict: str = _decoded(answer)["verdict"]
        return verdict

    async def snapshot(self, **named: Any) -> dict[str, Any]:
        [[answer]] = await self.rows("snapshot", **named)
        [workspace] = _decoded(answer)["workspaces"]
        found: dict[str, Any] = workspace
        return found

    async def recount(self) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await self.rows("recount")]

    async def alerting(self) -> int:
        """How many deliveries the `dead` alert counts."""
        found: int = await self.tenant.db.fetchval(ALERT, self.tenant.workspace)
        return found

    async def disagreements(self) -> list[str]:
        return [row[0] for row in await self.tenant.db.fetch(DISAGREEMENTS, self.tenant.workspace)]


async def dead(tenant: Tenant, channel: UUID, count: int = 1) -> list[UUID]:
    return await _ended(tenant, await tenant.backlog(channel, count), transient)


async def refused(tenant: Tenant, channel: UUID, scope: str = "delivery") -> UUID:
    [delivery] = await _ended(tenant, await tenant.backlog(channel, 1), lambda claim: permanent(claim, scope))
    return delivery


async def held(tenant: Tenant, *, calls: int = 1) -> asyncpg.Record:
    """A delivery that may have been sent, in a channel that wants a human to decide."""
    await tenant.backlog(await tenant.channel(on_ambiguous="hold", max_parallel=1), 1, calls=calls)
    claim = await tenant.claim_one()
    await tenant.commit(transient(claim, ambiguous=True))
    return claim


def meta(event: asyncpg.Record) -> dict[str, Any]:
    return _decoded(event["meta"])


async def _ended(tenant: Tenant, deliveries: list[UUID], ending: Any) -> list[UUID]:
    for delivery in deliveries:
        await tenant.set_delivery(delivery, "max_attempts = 1")
    claims = await tenant.claim()
    await tenant.commit(*(ending(claim) for claim in claims if claim["delivery_id"] in deliveries))
    return deliveries


def _verdicts(rows: list[asyncpg.Record]) -> dict[UUID, str]:
    return {row["channel_id"]: row["verdict"] for row in rows}


def _decoded(answer: str) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(answer)
    return decoded
