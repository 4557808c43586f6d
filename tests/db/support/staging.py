"""What a worker asks of the database for the posts that are staged there."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
from db.support.builders import Tenant
from db.support.senders import Sender

LEASE = timedelta(seconds=60)
REQUEST = {"media": [{"type": "image", "url": "https://a.example/a.png"}]}
GONE = {"code": "http_404", "field": "media[0].url"}


class Staging:
    """What a worker asks of the database."""

    def __init__(self, tenant: Tenant, sender: Sender) -> None:
        self.tenant, self.sender = tenant, sender

    async def stage(self, text: str | None = None, **fields: Any) -> dict[str, Any]:
        return await self.sender.push(text, request=REQUEST, source={"kind": "push"}, renderings=[], **fields)

    async def lease(self, limit: int = 10, per_workspace: int = 10, db: Any = None) -> list[asyncpg.Record]:
        query = "SELECT * FROM lease_staged_posts($1, $2, $3)"
        return list(await (db or self.tenant.db).fetch(query, limit, per_workspace, LEASE))

    async def leased(self) -> asyncpg.Record:
        [post] = await self.lease()
        return post

    async def finish(self, post: asyncpg.Record, text: str = "hello", **fields: Any) -> dict[str, Any]:
        content = await self.tenant.post(text, **fields)
        query = "SELECT finish_staged_post($1, $2, $3, $4)"
        answer: dict[str, Any] = json.loads(await self.tenant.db.fetchval(query, *fence(post), json.dumps(content)))
        return answer

    async def fail(self, post: asyncpg.Record, attempts: int = 0, wait: int | None = None) -> str:
        query = "SELECT fail_staged_post($1, $2, $3, $4, $5, $6)"
        verdict: str = await self.tenant.db.fetchval(query, *fence(post), json.dumps(GONE), attempts, wait)
        return verdict

    async def take(self, post: asyncpg.Record, url_hash: str = "a.png") -> str:
        query = "SELECT verdict FROM take_media_fetch($1, $2, $3, $4)"
        verdict: str = await self.tenant.db.fetchval(query, *fence(post), url_hash)
        return verdict

    async def note(self, post: asyncpg.Record, blob_ref: str) -> bool:
        query = "SELECT note_media_put($1, 'a.png', $2, $3)"
        noted: bool = await self.tenant.db.fetchval(query, post["workspace_id"], post["lease_token"], blob_ref)
        return noted

    async def fetched(self, post: asyncpg.Record, blob_ref: str) -> None:
        query = "SELECT finish_media_fetch($1, 'a.png', $2, $3, 's3://b/k', 'x', 'image/png', 3, 1, 1, 'a.png')"
        await self.tenant.db.execute(query, post["workspace_id"], post["lease_token"], blob_ref)

    async def puts(self) -> list[str]:
        found: list[str] = await self.tenant.db.fetchval("SELECT puts FROM media_fetches WHERE url_hash = 'a.png'")
        return found

    async def row(self) -> asyncpg.Record:
        [row] = await self.tenant.db.fetch("SELECT * FROM staged_posts WHERE workspace_id = $1", self.tenant.workspace)
        return row

    async def run(self) -> asyncpg.Record:
        [row] = await self.tenant.db.fetch("SELECT * FROM ingest_runs WHERE workspace_id = $1", self.tenant.workspace)
        return row

    async def let_leases_end(self) -> None:
        await self.tenant.db.execute(
            "UPDATE staged_posts SET lease_until = now() - interval '1 s', next_attempt_at = now() - interval '1 s' "
            "WHERE status = 'fetching'"
        )


def fence(post: asyncpg.Record) -> tuple[UUID, UUID, UUID]:
    return post["workspace_id"], post["post_id"], post["lease_token"]
