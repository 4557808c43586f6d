"""Access to a running system for tests: HTTP API, database and the log of the simulator."""

from datetime import timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

import asyncpg
import httpx
import msgspec
from autopost_cli.demo.system import DemoSystem
from autopost_cli.development import PUSH_SECRET, WORKSPACE
from autopost_cli.stack.stack import Stack
from autopost_runtime.storage.objects import Objects


class System:
    def __init__(self, stack: Stack, http: httpx.AsyncClient, database: "asyncpg.Connection[Any]") -> None:
        self.stack = stack
        self.http = http
        self.database = database
        self.places = stack.describe()

    def scene(self, patience: Any) -> DemoSystem:
        nats = self.stack if self.stack.backends.nats else None
        where = (self.places["ingest"], self.places["simulator"])
        return DemoSystem(self.database, self.http, *where, patience, nats, wait=timedelta(seconds=1))

    async def post(self, secret: str = PUSH_SECRET, **body: Any) -> httpx.Response:
        return await self.http.post(
            f"{self.places['ingest']}/v1/posts", headers={"Authorization": f"Bearer {secret}"}, json=body
        )

    async def metrics(self, service: str) -> str:
        return (await self.http.get(f"{self.places['health'][service]}/metrics")).text

    async def statuses(self, workspace: str = WORKSPACE) -> dict[str, int]:
        rows = await self.database.fetch(
            "SELECT status::text, count(*) FROM deliveries WHERE workspace_id = $1 GROUP BY status", UUID(workspace)
        )
        return {row["status"]: row["count"] for row in rows}

    async def accepted(self) -> list[dict[str, Any]]:
        """The provider calls that put a message into a chat, in order; also those whose answer was withheld."""
        answer = await self.http.get(f"{self.places['simulator']}/_sim/log")
        lines = [msgspec.json.decode(line) for line in answer.content.splitlines() if line]
        return [line for line in lines if line["message_ids"]]

    async def store(self, objects: Objects, content: bytes, kind: str, content_type: str, name: str) -> dict[str, str]:
        """The item of a post that shows it."""
        digest = sha256(content).hexdigest()
        key = f"{WORKSPACE}/media/{digest}"
        await objects.put(key, content, content_type)
        await self.database.execute(
            "SELECT remember_media_origin($1, $2, $3, $4, $5, $6, p_name => $7)",
            *(UUID(WORKSPACE), f"sha256:{digest}", f"s3://{objects.bucket}/{key}", digest),
            *(content_type, len(content), name),
        )
        return {"type": kind, "blob_ref": f"sha256:{digest}"}

    async def control(self, path: str, body: Any) -> None:
        (await self.http.post(f"{self.places['simulator']}/_sim/{path}", json=body)).raise_for_status()
