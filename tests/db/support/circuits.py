"""The circuit of a rate group: failures that open it, probes, and the trial that closes it."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
from db.support.builders import LEASE, Tenant, transient

ANSWERED: dict[str, Any] = {"answered": True}


def no_answer(claim: Any, **fields: Any) -> dict[str, Any]:
    """What a gateway, a hanging connection or half an answer comes to."""
    return transient(claim, "platform", **{"code": "http_502", "ambiguous": True, **fields})


class Circuit:
    """Of one rate group of a tenant."""

    def __init__(self, tenant: Tenant, rate_group: str = "bot", platform: str = "telegram") -> None:
        self.tenant = tenant
        self.key = (tenant.workspace, platform, rate_group)

    async def row(self) -> asyncpg.Record:
        query = (
            "SELECT *, circuit::text AS state FROM platform_limits "
            "WHERE (workspace_id, platform, rate_group) = ($1, $2, $3)"
        )
        row = await self.tenant.db.fetchrow(query, *self.key)
        assert row is not None
        return row

    async def state(self) -> str:
        state: str = (await self.row())["state"]
        return state

    async def fail(self, count: int = 3) -> list[UUID]:
        """So many new deliveries that get no answer; which."""
        for _ in range(count):
            await self.tenant.enqueue()
        claims = await self.tenant.claim(count)
        assert len(claims) == count
        await self.tenant.commit(*map(no_answer, claims))
        return [claim["delivery_id"] for claim in claims]

    async def open(self) -> list[UUID]:
        failed = await self.fail(3)
        assert await self.state() == "open"
        return failed

    async def due(self, earlier: timedelta = timedelta(days=1)) -> None:
        """The time of the next probe comes, and no probe was lately."""
        await self.tenant.db.execute(
            "UPDATE platform_limits SET probe_at = probe_at - $4::interval, probed_at = probed_at - $4::interval "
            "WHERE (workspace_id, platform, rate_group) = ($1, $2, $3)",
            *self.key,
            earlier,
        )

    async def takes(self, per_second: int = 5) -> list[asyncpg.Record]:
        return list(await self.tenant.db.fetch("SELECT * FROM take_probes($1)", per_second))

    async def record(self, probe: asyncpg.Record, *, answered: bool, error: str | None = '{"code": "connect"}') -> Any:
        return await self.tenant.db.fetchval(
            "SELECT record_probe($1, $2, $3, $4, $5, $6)::text",
            *self.key,
            probe["probe_at"],
            answered,
            None if answered else error,
        )

    async def probe(self, *, answered: bool) -> str | None:
        """The next probe, with its answer; the circuit after it."""
        await self.due()
        [probe] = await self.takes()
        circuit: str | None = await self.record(probe, answered=answered)
        return circuit

    async def trial(self, lease: timedelta = LEASE) -> list[asyncpg.Record]:
        query = "SELECT * FROM claim_trial($1, $2, $3, $4, $5)"
        return list(await self.tenant.db.fetch(query, *self.key, self.tenant.run_id, lease))

    async def half(self) -> None:
        await self.open()
        assert await self.probe(answered=True) == "half"

    async def wait_is_over(self) -> None:
        """Of every delivery in retry."""
        await self.tenant.db.execute(
            "UPDATE deliveries SET next_retry_at = now() WHERE workspace_id = $1 AND status = 'retry' "
            "AND next_retry_at < 'infinity'",
            self.tenant.workspace,
        )

    async def history(self) -> list[str]:
        events = await self.tenant.events("group_opened", "group_closed")
        wanted = {"platform": self.key[1], "rate_group": self.key[2]}
        return [e["what"] for e in events if wanted.items() <= json.loads(e["meta"]).items()]
