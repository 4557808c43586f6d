"""Rows that are older than the test: everything a workspace has is moved back in time, its events with it."""

from datetime import timedelta
from typing import Any

import asyncpg

OLD_WEEKS = """
DO $$
DECLARE
    _week timestamp;
BEGIN
    FOR _week IN
        SELECT generate_series(date_trunc('week', now() AT TIME ZONE 'UTC' - interval '30 weeks'),
                               now() AT TIME ZONE 'UTC', interval '7 days')
    LOOP
        CONTINUE WHEN to_regclass('public.events_' || to_char(_week, 'IYYY"w"IW')) IS NOT NULL;
        EXECUTE format('CREATE TABLE public.%I PARTITION OF public.events FOR VALUES FROM (%L) TO (%L)',
                       'events_' || to_char(_week, 'IYYY"w"IW'), _week AT TIME ZONE 'UTC',
                       (_week + interval '7 days') AT TIME ZONE 'UTC');
    END LOOP;
END $$
"""
COLUMNS = {
    "deliveries": (
        *("created_at", "updated_at", "not_before", "next_retry_at", "sent_at", "slot_at"),
        *("claimed_at", "sending_started_at", "sending_lease_until"),
    ),
    "delivery_queue": ("sort_at", "lease_until", "due_at"),
    "channel_due": ("next_due_at", "low_water"),
    "messages": ("created_at", "last_seen_at"),
    "renderings": ("created_at",),
    "media_origin": ("created_at", "last_seen_at"),
    "dead_letters": ("given_up_at", "skipped_at"),
}


async def age(db: "asyncpg.Pool[Any]", by: timedelta) -> None:
    """Past the triggers: nothing happened, it was only long ago."""
    async with db.acquire() as connection, connection.transaction():
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.execute(OLD_WEEKS)
        for table, columns in COLUMNS.items():
            moved = ", ".join(f"{column} = {column} - $1::interval" for column in columns)
            await connection.execute(f"UPDATE {table} SET {moved}", by)
        await connection.execute(
            "UPDATE events SET ts = ts - $1::interval, meta = CASE WHEN meta ? 'slot_at' THEN meta || "
            "jsonb_build_object('slot_at', (meta ->> 'slot_at')::timestamptz - $1::interval) ELSE meta END || "
            "CASE WHEN meta ? 'next_retry_at' THEN jsonb_build_object('next_retry_at', "
            "(meta ->> 'next_retry_at')::timestamptz - $1::interval) ELSE '{}' END",
            by,
        )


async def partitions(db: Any, older: timedelta = timedelta(days=30)) -> list[str]:
    return [row[0] for row in await db.fetch("SELECT * FROM expired_event_partitions($1)", older)]
