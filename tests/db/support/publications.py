"""A workspace with publications, and what people and services do with them."""

import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

from db.support.builders import Tenant, decode, rendering

SECOND = timedelta(seconds=1)


class Publisher:
    """People by name: ann drafts, bob approves and schedules."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant
        self.channel: UUID

    @classmethod
    async def create(cls, tenant: Tenant, **columns: Any) -> "Publisher":
        made = cls(tenant)
        made.channel = await tenant.channel(**columns)
        return made

    async def call(self, function: str, *arguments: Any) -> Any:
        places = ", ".join(f"${place}" for place in range(2, len(arguments) + 2))
        answer = await self.tenant.db.fetchval(f"SELECT {function}($1, {places})", self.tenant.workspace, *arguments)
        return decode(answer) if answer is not None else None

    async def draft(self, text: str = "Sale!", **fields: Any) -> UUID:
        given = {
            "channel_id": str(self.channel),
            "creative_draft": {"text": text},
            "media_type": "text",
            "trace_id": "trace",
            **fields,
        }
        answer = await self.call("draft_publication", json.dumps(given), "ann")
        return UUID(answer["publication"]["publication_id"])

    async def show(self, publication: UUID) -> dict[str, Any]:
        return dict((await self.call("read_publication", publication))["publication"])

    async def version(self, publication: UUID) -> int:
        return int((await self.show(publication))["version"])

    async def status(self, publication: UUID) -> str:
        return str((await self.show(publication))["status"])

    async def post(self, publication: UUID, calls: int = 1) -> dict[str, Any]:
        """Compiled for its channel as it is now."""
        shown = await self.call("read_publication", publication)
        text = shown["publication"]["creative_draft"]["text"]
        return {
            "content_hash": sha256(text.encode()).hexdigest(),
            "hash_version": 1,
            "payload": {"type": "text", "text": text},
            "trace_id": "trace",
            "renderings": [rendering(shown["profile"]["profile_hash"], text, calls)],
        }

    async def approve(self, publication: UUID) -> str:
        post = await self.post(publication)
        plan = {
            "plan_hash": post["renderings"][0]["plan_hash"],
            "hash_version": 1,
            "content_hash": post["content_hash"],
        }
        arguments = (publication, await self.version(publication), json.dumps(plan), "bob")
        return str((await self.call("approve_publication", *arguments))["verdict"])

    async def schedule(self, publication: UUID, at: datetime | None = None) -> dict[str, Any]:
        arguments = (publication, await self.version(publication), at or now(), None, "bob")
        return dict(await self.call("schedule_publication", *arguments))

    async def scheduled(self, text: str = "Sale!", at: datetime | None = None, **fields: Any) -> UUID:
        publication = await self.draft(text, **fields)
        await self.approve(publication)
        assert (await self.schedule(publication, at))["verdict"] == "scheduled"
        return publication

    async def due(self, limit: int = 100, at: datetime | None = None) -> dict[str, Any]:
        answer = await self.tenant.db.fetchval("SELECT due_publications($1, $2)", limit, at)
        return dict(decode(answer))

    async def begin(self, publication: UUID, version: int | None = None, calls: int = 1) -> str:
        post = json.dumps(await self.post(publication, calls))
        version = await self.version(publication) if version is None else version
        return str((await self.call("begin_publication", publication, version, post))["verdict"])

    async def begun(self, text: str = "Sale!", calls: int = 1, **fields: Any) -> UUID:
        """Its delivery waits to be claimed."""
        publication = await self.scheduled(text, **fields)
        await self.due()
        assert await self.begin(publication, calls=calls) == "begun"
        return publication

    async def begun_many(self, count: int) -> list[UUID]:
        """In a few statements; in the order in which their deliveries wait."""
        db, workspace = self.tenant.db, self.tenant.workspace
        plan = (await self.post(await self.draft("of the plan")))["renderings"][0]
        given = json.dumps({"channel_id": str(self.channel), "creative_draft": {"text": "Sale!"}, "media_type": "text"})
        await db.execute("SELECT draft_publication($1, $2, 'ann') FROM generate_series(1, $3)", workspace, given, count)
        of_them = "FROM publications p WHERE p.workspace_id = $1 AND p.creative_draft ->> 'text' = 'Sale!'"
        approval = json.dumps({"plan_hash": plan["plan_hash"], "hash_version": 1, "content_hash": "any"})
        await db.execute(
            f"SELECT approve_publication($1, p.publication_id, 1, $2, 'bob') {of_them}", workspace, approval
        )
        await db.execute(
            f"SELECT schedule_publication($1, p.publication_id, 1, clock_timestamp(), NULL, 'bob') {of_them}", workspace
        )
        await self.due(count)
        post = {"hash_version": 1, "payload": {"type": "text", "text": "Sale!"}, "renderings": [plan]}
        rows = await db.fetch(
            f"""
            SELECT p.publication_id,
                   begin_publication($1, p.publication_id, 2, $2::jsonb || jsonb_build_object(
                       'content_hash', p.publication_id)) ->> 'verdict' AS verdict
            {of_them}
            ORDER BY p.publication_id
            """,
            *(workspace, json.dumps(post)),
        )
        assert {row["verdict"] for row in rows} == {"begun"}
        return [row["publication_id"] for row in rows]

    async def cancel(self, publication: UUID) -> str:
        arguments = (publication, None, "ann", "a wrong price")
        return str((await self.call("cancel_publication", *arguments))["verdict"])

    async def delivery(self, publication: UUID) -> UUID:
        return UUID((await self.show(publication))["delivery_id"])

    async def told(self) -> list[str]:
        rows = await self.tenant.events()
        return [row["what"].removeprefix("publication_") for row in rows if row["what"].startswith("publication_")]

    async def commands(self, subject: str = "delivery.commands") -> list[dict[str, Any]]:
        rows = await self.tenant.db.fetch(
            "SELECT * FROM command_outbox WHERE workspace_id = $1 AND subject = $2 ORDER BY created_at",
            *(self.tenant.workspace, subject),
        )
        return [dict(row) | {"payload": decode(row["payload"])} for row in rows]


def now() -> datetime:
    return datetime.now(UTC)
