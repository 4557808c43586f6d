"""What `autopost verify` asks of the database, gathered: every difference of a workspace, whatever the chunk."""

import json
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from db.support.builders import Executor

FIRST = UUID(int=0)


class Difference(NamedTuple):
    kind: str
    delivery: str | None
    told: str | None
    row: str | None


async def differences(executor: Executor, workspace: UUID, *, chunk: int = 7) -> list[Difference]:
    """Of deliveries and queue rows, walked in chunks that are cut in odd places, of channels, and of claims that a gate
    should have stopped; orphans are looked for apart.
    """
    found = []
    for function in ("verify_deliveries", "verify_publications", "verify_queue"):
        after = FIRST
        while True:
            row: Any = await executor.fetchrow(f"SELECT * FROM {function}($1, $2, $3)", workspace, after, chunk)
            if not row["checked"]:
                break
            listed = json.loads(row["differences"])
            assert row["found"] == len(listed)
            found += listed
            after = row["last_id"]
    row = await executor.fetchrow("SELECT * FROM verify_channels($1)", workspace)
    found += json.loads(row["differences"])
    found += await stopped_by_no_gate(executor, workspace, chunk=chunk * 5)
    return [Difference(one["kind"], one.get("delivery_id"), one["events"], one["row"]) for one in found]


async def stopped_by_no_gate(executor: Executor, workspace: UUID, *, chunk: int) -> list[Any]:
    found: list[Any] = []
    after = (datetime.min.replace(tzinfo=UTC), FIRST)
    while True:
        query = "SELECT * FROM verify_events($1, $2, $3, $4)"
        row: Any = await executor.fetchrow(query, workspace, *after, chunk)
        if not row["checked"]:
            return [one for one in found if one["kind"] != "orphan"]
        found += json.loads(row["differences"])
        after = (row["last_ts"], row["last_id"])


async def kinds(executor: Executor, workspace: UUID) -> set[str]:
    return {difference.kind for difference in await differences(executor, workspace)}


async def tamper(executor: Executor, statement: str, *values: Any) -> None:
    """As somebody does who goes past every trigger."""
    connection: Any = executor
    async with connection.acquire() as own, own.transaction():
        await own.execute("SET LOCAL session_replication_role = replica")
        await own.execute(statement, *values)
