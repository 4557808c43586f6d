"""What the collector asks of the database, and how a test makes things old."""

import json
from datetime import timedelta
from typing import Any

import asyncpg
from db.builders import Tenant
from db.staging import Staging
from db.test_media_origin import PNG, ref

KEEP, LARGE, LARGE_BYTES = timedelta(days=30), timedelta(days=7), 20 * 1024 * 1024
LEASE = timedelta(seconds=60)
CAT = ref(PNG)
OLD = timedelta(days=31)


async def doom(tenant: Tenant, lease: timedelta = LEASE, limit: int = 100) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after: Any = {}
    while after is not None:
        query = "SELECT doom_media('media', $1, $2, $3, $4, $5, $6)"
        answer = await tenant.db.fetchval(query, KEEP, LARGE, LARGE_BYTES, lease, json.dumps(after), limit)
        step = json.loads(answer)
        found, after = found + step["doomed"], step["after"]
    return found


async def doom_strays(tenant: Tenant, lease: timedelta = LEASE) -> list[dict[str, Any]]:
    answer = await tenant.db.fetchval("SELECT doom_strays('media', $1, 100)", lease)
    return list(json.loads(answer)["doomed"])


async def bury(tenant: Tenant, doomed: dict[str, Any]) -> bool:
    query = "SELECT bury_media($1::text::uuid, $2, $3::text::uuid)"
    done: bool = await tenant.db.fetchval(query, doomed["workspace_id"], doomed["blob_ref"], doomed["doom"])
    return done


async def age(tenant: Tenant, by: timedelta = OLD) -> None:
    await tenant.db.execute("UPDATE media_origin SET last_seen_at = last_seen_at - $1::interval", by)


async def age_fetches(tenant: Tenant, by: timedelta) -> None:
    await tenant.db.execute("UPDATE media_fetches SET started_at = started_at - $1::interval", by)


async def end_leases(tenant: Tenant) -> None:
    await tenant.db.execute("UPDATE media_origin SET doomed_until = now() - interval '1 s' WHERE doom IS NOT NULL")


async def fetching(staging: Staging) -> asyncpg.Record:
    await staging.stage()
    post = await staging.leased()
    assert await staging.take(post) == "ours"
    return post
