"""Run dispatchers with a real Postgres and S3 and with simulated platforms."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

import httpx
import msgspec
from autopost_adapters.registry import adapters
from autopost_contracts.plan import Plan
from autopost_dispatcher.claim.schedule import ClaimSchedule
from autopost_dispatcher.config import DispatcherConfig
from autopost_dispatcher.dispatch import poll
from autopost_dispatcher.gateway import Gateway
from autopost_dispatcher.pipeline import pipeline
from autopost_runtime.config.load import Secret
from autopost_runtime.http.client import HttpClient
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.nats.bus import open_bus
from autopost_runtime.postgres.pool import open_database
from autopost_runtime.secrets.credentials import Credentials
from autopost_runtime.storage.objects import open_objects
from db.support.builders import Tenant
from harness.buckets import Bucket
from harness.eventually import eventually

TOKENS = {"telegram": "1000001:dispatcher-tests-token-0123456789", "max": "dispatcher-tests-token"}
ANOTHER = "1000001:another-dispatcher-tests-token-0123456789"
"""Of the same bot of Telegram."""
ENVIRONMENT = {name.upper(): token for name, token in TOKENS.items()} | {"ANOTHER": ANOTHER}
NOWHERE = "postgresql://nowhere/none"


def configured(url: str, simulator: str, bucket: Bucket | None = None, **settings: Any) -> DispatcherConfig:
    """Of defaults, with addresses of the test; no NATS, so what there is to do is found by looking."""
    given: dict[str, Any] = {
        "database_url": url,
        "nats_url": None,
        "telegram_api_url": simulator,
        "max_api_url": f"{simulator}/max",
        "poll_interval": timedelta(milliseconds=50),
    }
    if bucket:
        given |= {
            "s3_endpoint": bucket.endpoint,
            "s3_access_key": Secret(bucket.access_key),
            "s3_secret_key": Secret(bucket.secret_key),
            "s3_bucket": bucket.bucket,
        }
    return DispatcherConfig(**(given | settings))


@contextlib.asynccontextmanager
async def running_dispatcher(config: DispatcherConfig, gateway_of: type[Gateway] = Gateway) -> AsyncIterator[Service]:
    """A replica, wired as the service wires itself."""
    service, schedule = Service("dispatcher"), ClaimSchedule()
    async with (
        open_database(config, service) as database,
        open_bus(config, service) as bus,
        HttpClient(limit=config.concurrency) as http,
        open_objects(config) if config.s3_endpoint else contextlib.nullcontext() as objects,
    ):
        gateway = gateway_of(database)
        platforms = adapters(
            http,
            telegram_url=config.telegram_api_url,
            max_url=config.max_api_url,
            timeout=config.provider_timeout,
            upload_timeout=config.time_to_upload,
        )
        identities = Credentials(gateway, ENVIRONMENT)
        try:
            async with pipeline(
                config, service, gateway, schedule, bus, adapters=platforms, identities=identities, store=objects
            ):
                service.spawn(poll(schedule, gateway, config.poll_interval, service.stopping), "poll")
                yield service
        finally:
            await service.end_tasks()


@contextlib.asynccontextmanager
async def replica(stage: "RunningDispatchers", url: str, **settings: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """The service itself, in a process of its own; stopped by SIGTERM, and well."""
    bucket = stage.bucket
    addresses = {
        "database_url": url,
        "nats_url": "off",
        "telegram_api_url": stage.simulator,
        "max_api_url": f"{stage.simulator}/max",
        "s3_endpoint": bucket.endpoint,
        "s3_access_key": bucket.access_key,
        "s3_secret_key": bucket.secret_key,
        "s3_bucket": bucket.bucket,
        "health_port": "0",
        "poll_interval": "100ms",
        "log_level": "error",
    }
    given = {f"AUTOPOST_{name.upper()}": value for name, value in (addresses | settings).items()}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "autopost_dispatcher"), env=os.environ | ENVIRONMENT | given
    )
    try:
        yield process
        process.terminate()
        assert await process.wait() == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


class RunningDispatchers:
    def __init__(self, tenant: Tenant, simulator: str, http: httpx.AsyncClient, bucket: Bucket) -> None:
        self.tenant = tenant
        self.simulator = simulator
        self.bucket = bucket
        self._http = http

    async def channels(self, platform: str, count: int, **columns: Any) -> list[str]:
        """Chats without limits of the platform's, unless the test sets some; their ids."""
        chats = [str(-1_000_000_000_000 - number) for number in range(count)]
        if platform == "max":
            chats = [str(-70_000_000_000_000 - number) for number in range(count)]
        known = [{"platform": platform, "id": int(chat), "limits": []} for chat in chats]
        await self.control("chats", known)
        await self.control("tokens", [{"platform": platform, "token": TOKENS[platform], "limits": []}])
        await self.tenant.db.execute(
            "INSERT INTO credential_bindings (workspace_id, auth_ref, platform, secret_ref) VALUES ($1, $2, $2, $3)",
            *(self.tenant.workspace, platform, f"env:{platform.upper()}"),
        )
        for chat in chats:
            address = {"platform": platform, "target_id": chat, "auth_ref": platform, "rate_group": platform}
            await self.tenant.channel(**(address | {"max_parallel": 1} | columns))
        return chats

    async def control(self, path: str, body: Any) -> None:
        (await self._http.post(f"{self.simulator}/_sim/{path}", json=body)).raise_for_status()

    async def clear_faults(self) -> None:
        (await self._http.delete(f"{self.simulator}/_sim/faults")).raise_for_status()

    async def store(self, body: bytes, content_type: str) -> str:
        """Its ``blob_ref``."""
        digest = sha256(body).hexdigest()
        key = f"{self.tenant.workspace}/media/{digest}"
        async with open_objects(configured(NOWHERE, self.simulator, self.bucket)) as objects:
            await objects.put(key, body, content_type)
        ref = f"sha256:{digest}"
        await self.tenant.db.execute(
            "INSERT INTO media_origin (workspace_id, blob_ref, origin_url, sha256, content_type, size_bytes) "
            "VALUES ($1, $2, $3, $4, $5, $6)",
            *(self.tenant.workspace, ref, f"s3://{self.bucket.bucket}/{key}", digest, content_type, len(body)),
        )
        return ref

    async def enqueue(self, *plans: Plan) -> None:
        """The same plans for every channel."""
        for plan in plans:
            post = await self.tenant.post(uuid4().hex)
            for rendering in post["renderings"]:
                rendering |= {"plan": msgspec.to_builtins(plan), "plan_hash": plan.digest(), "calls": len(plan.parts)}
            await self.tenant.put(post)

    async def settled(self, within: timedelta = timedelta(minutes=1)) -> dict[str, int]:
        """How many deliveries ended how, once none is under way."""

        async def nothing_left() -> dict[str, int] | None:
            found = await self.statuses()
            return found if found.keys() <= {"sent", "failed_permanent", "dead"} else None

        return await eventually(nothing_left, within=within)

    async def statuses(self) -> dict[str, int]:
        rows = await self.tenant.db.fetch(
            "SELECT status::text, count(*) FROM deliveries WHERE workspace_id = $1 GROUP BY 1", self.tenant.workspace
        )
        return {row["status"]: row["count"] for row in rows}

    async def log(self, after: int = 0) -> list[dict[str, Any]]:
        answer = await self._http.get(f"{self.simulator}/_sim/log", params={"after": after})
        return [json.loads(line) for line in answer.text.splitlines() if line]

    async def accepted(self, after: int = 0) -> list[dict[str, Any]]:
        """The calls that put something into a chat, also those whose answer was withheld."""
        return [line for line in await self.log(after) if line["message_ids"]]

    async def deliveries(self) -> Sequence[UUID]:
        return [row["delivery_id"] for row in await self.tenant.deliveries()]
