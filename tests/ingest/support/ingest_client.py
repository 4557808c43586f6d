"""Client of a running ingest for tests: post, store media, query its database."""

from hashlib import sha256
from typing import Any
from uuid import UUID

import httpx
from harness.databases import Database

DEMO = "demo-push-secret-for-development"
SHOP = "shop-push-secret-for-development"
DEMO_WORKSPACE = UUID("0de00000-0000-4000-8000-000000000001")
SHOP_WORKSPACE = UUID("5f000000-0000-4000-8000-000000000002")
TABLES = ("messages", "deliveries", "ingress_receipts", "staged_posts")


class Ear:
    """Stands where the bus stands."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.numbers: dict[str, int] = {}

    def wake(self, subject: str, number: int | None = None) -> None:
        if number is None:
            self.heard.append(subject)
        else:
            self.numbers[subject] = number


class IngestClient:
    def __init__(self, url: str, http: httpx.AsyncClient, database: Database, ear: Ear) -> None:
        self.url = url
        self.http = http
        self.ear = ear
        self._database = database

    async def post(self, body: Any = None, *, secret: str | None = DEMO, **options: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        headers |= options.pop("headers", {})
        query = options.pop("query", "")
        given = options if options else {"json": {"text": "hello"} if body is None else body}
        return await self.http.post(f"{self.url}/v1/posts{query}", headers=headers, **given)

    async def try_out(self, body: Any = None, **options: Any) -> httpx.Response:
        return await self.post(body, query="?dry_run=1", **options)

    async def store(self, content: bytes, content_type: str, *, workspace: UUID = DEMO_WORKSPACE, **more: Any) -> str:
        """As if the bytes lay in S3; the ref to name them by."""
        digest = sha256(content).hexdigest()
        await self.sql(
            "SELECT remember_media_origin($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            *(workspace, f"sha256:{digest}", f"s3://media/{workspace}/media/{digest}", digest),
            *(content_type, len(content), more.get("width"), more.get("height"), more.get("name")),
        )
        return f"sha256:{digest}"

    async def rows(self) -> dict[str, int]:
        return {table: await self.sql(f"SELECT count(*) FROM {table}") for table in TABLES}

    async def sql(self, query: str, *args: Any) -> Any:
        return await self._database.pool.fetchval(query, *args)
