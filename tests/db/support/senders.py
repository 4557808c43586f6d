"""A push endpoint of a tenant, and what is asked of it."""

import json
from typing import Any
from uuid import UUID, uuid4

from db.support.builders import Tenant


class Sender:
    """A push endpoint of the tenant."""

    def __init__(self, tenant: Tenant, endpoint: UUID) -> None:
        self.tenant = tenant
        self.endpoint = endpoint

    def on(self, executor: Any) -> "Sender":
        return Sender(self.tenant.on(executor), self.endpoint)

    async def admit(
        self, post: dict[str, Any], payload_hash: str = "hash", *, past_gate: bool = False
    ) -> dict[str, Any]:
        [answer] = await self.admit_all([post], [payload_hash], past_gate=past_gate)
        return answer

    async def admit_all(
        self, posts: list[dict[str, Any]], payload_hashes: list[str], *, past_gate: bool = False, look_up: bool = True
    ) -> list[dict[str, Any]]:
        query = "SELECT admit_posts($1, $2, $3, $4, $5, p_look_up => $6)"
        given = json.dumps([{**post, "run_id": str(uuid4())} for post in posts])
        answer: list[dict[str, Any]] = json.loads(
            await self.tenant.db.fetchval(
                query, self.tenant.workspace, self.endpoint, given, payload_hashes, [past_gate] * len(posts), look_up
            )
        )
        return answer

    async def push(self, text: str | None = None, payload_hash: str | None = None, **fields: Any) -> dict[str, Any]:
        text = text or uuid4().hex
        return await self.admit(await self.tenant.post(text, **fields), payload_hash or text)

    async def runs(self) -> list[dict[str, Any]]:
        rows = await self.tenant.db.fetch("SELECT * FROM ingest_runs ORDER BY started_at, finished_at")
        assert all(row["finished_at"] for row in rows)
        return [json.loads(row["stats_json"]) for row in rows]


async def make_sender(tenant: Tenant, rate: float | None = None, window: int = 10) -> Sender:
    endpoint = await tenant.db.fetchval(
        "INSERT INTO workspace_endpoints (workspace_id, kind, secret_hash, ingress_rps, hash_drop_window_sec) "
        "VALUES ($1, 'webhook_push', encode(sha256(gen_random_uuid()::text::bytea), 'hex'), $2::float8, $3) "
        "RETURNING endpoint_id",
        *(tenant.workspace, rate, window),
    )
    return Sender(tenant, endpoint)
