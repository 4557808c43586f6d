"""What the planner knows about the tables: nothing, the statistics of empty tables, or the truth.

``AUTOPOST_TEST_STATISTICS=deleted`` runs any test with statistics deleted before each hot call, ``empty`` with those of
tables that were analysed while they were empty.
"""

import os
import re
from contextlib import suppress
from typing import Any

import asyncpg

from harness.known_types import KnowsTypes

OURS = "SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'i', 'I')"
FORGET = """
    DO $$ BEGIN
        PERFORM pg_advisory_xact_lock(hashtext('forget_statistics')); -- else two would lock rows in other orders
        DELETE FROM pg_statistic WHERE starelid IN ({oids});
        UPDATE pg_class
        SET reltuples = {rows}, relpages = 0, relallvisible = 0
        WHERE oid IN ({oids})
          AND (reltuples, relpages, relallvisible) IS DISTINCT FROM ({rows}::real, 0, 0);
    END $$"""
NEVER_ANALYSED = -1
EMPTY = 0
HOT = re.compile(
    r"\b(claim_\w+|commit_\w+|record_\w+|take_\w+|end_\w+|renew_\w+|admit_posts|enqueue_\w+|next_\w+|begin_\w+"
    r"|due_\w+|recover_\w+|read_outcomes|ingest_pull_chunk|unseen_pull_items|relay_lag"
    r"|change_actions|chat_\w+|list_actions|expire_\w+|forget_uploads|stall_groups|store_bot_update"
    r"|retain_\w+|recount|snapshot|status_report|queue_depth|alert_conditions|match_dead_letters|requeue\w*|why\w*)\s*\("
)


async def forget_statistics(connection: Any, rows: int = NEVER_ANALYSED) -> None:
    """As after a restore, or as if every table had been analysed while it was empty. Cached plans are made anew."""
    await connection.execute(FORGET.format(rows=rows, oids=OURS))


class Forgetful(KnowsTypes):
    """Forgets all statistics before a hot call. Not inside a transaction: others could not analyse until it ended."""

    rows = NEVER_ANALYSED

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:
        await self._forget_before(query)
        return await super().execute(query, *args, timeout=timeout)

    async def fetch(self, query: str, *args: Any, **options: Any) -> Any:
        await self._forget_before(query)
        return await super().fetch(query, *args, **options)

    async def fetchval(self, query: str, *args: Any, **options: Any) -> Any:
        await self._forget_before(query)
        return await super().fetchval(query, *args, **options)

    async def fetchrow(self, query: str, *args: Any, **options: Any) -> Any:
        await self._forget_before(query)
        return await super().fetchrow(query, *args, **options)

    async def _forget_before(self, query: str) -> None:
        if HOT.search(query) and not self.is_in_transaction():
            with suppress(asyncpg.InsufficientPrivilegeError):  # the role of a service
                await forget_statistics(_Plain(self), self.rows)


class AsIfEmpty(Forgetful):
    rows = EMPTY


class _Plain:
    """The connection without what it does before a hot call."""

    def __init__(self, connection: Forgetful) -> None:
        self._connection = connection

    async def execute(self, query: str, *args: Any) -> None:
        await asyncpg.Connection.execute(self._connection, query, *args)


def connection_class(mode: str | None = None) -> type[asyncpg.Connection]:
    """As ``AUTOPOST_TEST_STATISTICS`` says."""
    mode = os.environ.get("AUTOPOST_TEST_STATISTICS", "") if mode is None else mode
    if not mode:
        return KnowsTypes
    return {"deleted": Forgetful, "empty": AsIfEmpty}[mode]
