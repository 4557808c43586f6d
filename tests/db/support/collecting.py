"""What the collector asks of the database, and how a test makes things old."""

import json
from datetime import timedelta
from typing import Any

import asyncpg
from db.media.test_media_origin import PNG, ref
from db.support.builders import Tenant
from db.support.staging import Staging

KEEP, LARGE, LARGE_BYTES = timedelta(days=30), timedelta(days=7), 20 * 1024 * 1024
LEASE = timedelta(seconds=60)
CAT = ref(PNG)
OLD = timedelta(days=31)


async def mark(tenant: Tenant, lease: timedelta = LEASE, limit: int = 100) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after: Any = {}
    while after is not None:
        query = "SELECT mark_media_for_deletion('media', $1, $2, $3, $4, $5, $6)"
        answer = await tenant.db.fetchval(query, KEEP, LARGE, LARGE_BYTES, lease, json.dumps(after), limit)
        step = json.loads(answer)
        found, after = found + step["deletions"], step["after"]
    return found


async def mark_orphan_objects(tenant: Tenant, lease: timedelta = LEASE) -> list[dict[str, Any]]:
    answer = await tenant.db.fetchval("SELECT mark_orphan_objects('media', $1, 100)", lease)
    return list(json.loads(answer)["deletions"])


async def finish(tenant: Tenant, deletion: dict[str, Any]) -> bool:
    query = "SELECT finish_media_deletion($1::text::uuid, $2, $3::text::uuid)"
    done: bool = await tenant.db.fetchval(
        query, deletion["workspace_id"], deletion["blob_ref"], deletion["deletion_token"]
    )
    return done


async def age(tenant: Tenant, by: timedelta = OLD) -> None:
    await tenant.db.execute("UPDATE media_origin SET last_seen_at = last_seen_at - $1::interval", by)


async def age_fetches(tenant: Tenant, by: timedelta) -> None:
    await tenant.db.execute("UPDATE media_fetches SET started_at = started_at - $1::interval", by)


async def end_leases(tenant: Tenant) -> None:
    await tenant.db.execute(
        "UPDATE media_origin SET deleting_until = now() - interval '1 s' WHERE deletion_token IS NOT NULL"
    )


async def fetching(staging: Staging) -> asyncpg.Record:
    await staging.stage()
    post = await staging.leased()
    assert await staging.take(post) == "ours"
    return post
