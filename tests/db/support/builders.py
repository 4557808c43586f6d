"""A workspace of a test's own, and the calls that services make in it, in the words of the tests."""

import asyncio
import json
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, TypeAlias
from uuid import UUID, uuid4

import asyncpg

Executor: TypeAlias = "asyncpg.Pool[asyncpg.Record] | asyncpg.Connection[asyncpg.Record]"
LEASE = timedelta(seconds=300)
NEVER = datetime.max  # noqa: DTZ901 -- what asyncpg makes of 'infinity'


PLAIN = {"delivery_id", "claim_token", "result", "provider_message_id"}


class Tenant:
    """``on(connection)`` is the same tenant through one connection: for transactions that stay open."""

    def __init__(self, executor: Executor, workspace: UUID) -> None:
        self.db = executor
        self.workspace = workspace
        self.run_id = uuid4()
        self.now: datetime | None = None
        """The last moment of a test that keeps its own clock."""

    @classmethod
    async def create(cls, executor: Executor) -> "Tenant":
        workspace = await executor.fetchval("INSERT INTO workspaces (name) VALUES ('test') RETURNING workspace_id")
        return cls(executor, workspace)

    def on(self, executor: Executor) -> "Tenant":
        same = Tenant(executor, self.workspace)
        same.run_id = self.run_id
        return same

    async def channel(self, **columns: Any) -> UUID:
        """Without limits, unless the test gives some."""
        given = {
            "workspace_id": self.workspace,
            "platform": "telegram",
            "target_id": uuid4().hex,
            "auth_ref": "bot",
            "rate_group": "bot",
            "rate_rps": None,
            "max_parallel": 1000,
            **{name: json.dumps(value) if isinstance(value, dict) else value for name, value in columns.items()},
        }
        await self.db.execute(
            "INSERT INTO platform_limits (workspace_id, platform, rate_group, rate_rps) VALUES ($1, $2, $3, NULL) "
            "ON CONFLICT DO NOTHING",
            *(given["workspace_id"], given["platform"], given["rate_group"]),
        )
        places = ", ".join(f"${place}" for place in range(1, len(given) + 1))
        query = f"INSERT INTO channels ({', '.join(given)}) VALUES ({places}) RETURNING channel_id"
        channel: UUID = await self.db.fetchval(query, *given.values())
        return channel

    async def channels(self, count: int, **columns: Any) -> list[UUID]:
        return [await self.channel(**columns) for _ in range(count)]

    async def group(self, rate: float | None, name: str = "bot", platform: str = "telegram") -> None:
        await self.db.execute(
            "INSERT INTO platform_limits (workspace_id, platform, rate_group, rate_rps) "
            "VALUES ($1, $2, $3, $4::float8) "
            "ON CONFLICT (workspace_id, platform, rate_group) DO UPDATE SET rate_rps = excluded.rate_rps",
            *(self.workspace, platform, name, rate),
        )

    async def set_channel(self, channel: UUID, assignment: str, *values: Any) -> None:
        query = f"UPDATE channels SET {assignment} WHERE workspace_id = $1 AND channel_id = $2"
        await self.db.execute(query, self.workspace, channel, *values)

    async def set_delivery(self, delivery: UUID, assignment: str, *values: Any) -> None:
        query = f"UPDATE deliveries SET {assignment} WHERE workspace_id = $1 AND delivery_id = $2"
        await self.db.execute(query, self.workspace, delivery, *values)

    async def post(self, text: str | None = None, *, calls: int = 1, **fields: Any) -> dict[str, Any]:
        """Compiled for every profile that the workspace has now."""
        text = text or uuid4().hex
        content_hash = sha256(text.encode()).hexdigest()
        profiles = await self.db.fetch(
            "SELECT DISTINCT profile_hash FROM channels WHERE workspace_id = $1", self.workspace
        )
        return {
            "content_hash": content_hash,
            "hash_version": 1,
            "payload": {"type": "text", "text": text},
            "tags": [],
            "run_id": str(uuid4()),
            "trace_id": "trace",
            "renderings": [rendering(row["profile_hash"], text, calls) for row in profiles],
            **fields,
        }

    async def enqueue(
        self, text: str | None = None, *, now: Any = None, audit_deduped: bool = False, **fields: Any
    ) -> dict[str, Any]:
        return await self.put(await self.post(text, **fields), now=now, audit_deduped=audit_deduped)

    async def put(self, post: dict[str, Any], *, now: Any = None, audit_deduped: bool = False) -> dict[str, Any]:
        query = "SELECT enqueue_messages_and_deliveries($1, NULL, 'push', $2, $3, $4)"
        return decode(await self.db.fetchval(query, self.workspace, json.dumps(post), now, audit_deduped))

    async def put_batch(self, posts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        query = "SELECT enqueue_messages_and_deliveries_batch($1, NULL, 'push', $2)"
        return decode(await self.db.fetchval(query, self.workspace, json.dumps(posts)))

    async def backlog(self, channel: UUID, count: int, *, calls: int = 1) -> list[UUID]:
        """Deliveries of one channel, the oldest first, a second apart."""
        return [
            await self.db.fetchval(
                """
                WITH message AS (
                    INSERT INTO messages (workspace_id, content_hash, payload)
                    VALUES ($1, gen_random_uuid()::text, '{}')
                    RETURNING message_id, content_hash
                ), rendering AS (
                    INSERT INTO renderings (workspace_id, message_id, plan_hash, rendered_text, plan, calls)
                    SELECT $1, message_id, 'plan', '', '{}', $3 FROM message RETURNING rendering_id
                )
                INSERT INTO deliveries (workspace_id, message_id, channel_id, rendering_id, hash_version, content_hash,
                                        not_before, created_at)
                SELECT $1, message_id, $2, rendering_id, 1, content_hash, age.at, age.at
                FROM message, rendering, (SELECT clock_timestamp() - $4::interval) AS age (at)
                RETURNING delivery_id
                """,
                *(self.workspace, channel, calls, timedelta(seconds=count - place)),
            )
            for place in range(count)
        ]

    async def claim(
        self, limit: int = 100, *, now: Any = None, lease: timedelta = LEASE, run_id: UUID | None = None
    ) -> list[dict[str, Any]]:
        """Each with its plan and the facts of its channel, which come once for all of them."""
        query = "SELECT * FROM claim_deliveries($1, $2, $3, $4, p_now => $5)"
        rows = [
            dict(row) for row in await self.db.fetch(query, self.workspace, run_id or self.run_id, limit, lease, now)
        ]
        common = [row.pop("shared") for row in rows]
        if not rows:
            return []
        assert common[1:] == [None] * (len(rows) - 1)
        shared = json.loads(common[0])
        plans = (shared["plans"] or {}).get(str(self.workspace), {})
        channels = shared["channels"][str(self.workspace)]
        return [row | channels[str(row["channel_id"])] | {"plan": plans.get(str(row["rendering_id"]))} for row in rows]

    async def claim_one(self) -> dict[str, Any]:
        [claim] = await self.claim()
        return claim

    async def commit(
        self, *outcomes: dict[str, Any], jitter: float = 0.5, short: bool = True, **options: Any
    ) -> list[dict[str, Any]]:
        """As the dispatcher does it: what all arrived in one part goes the short way, if it can."""
        if short and outcomes and all(one["result"] == "sent" and one.keys() <= PLAIN for one in outcomes):
            left = await self.commit_sent(*outcomes)
            rest = iter(await self.commit(*(outcomes[nth - 1] for nth in left), short=False) if left else ())
            done = {"verdict": "committed", "status": "sent", "next_retry_at": None}
            return [
                next(rest) if nth in left else {"delivery_id": UUID(str(one["delivery_id"])), **done}
                for nth, one in enumerate(outcomes, start=1)
            ]
        given = {"pause": timedelta(hours=1), "streak": 3, **options}
        query = "SELECT * FROM commit_deliveries($1, $2, $3, $4, $5, $6)"
        return list(
            await self.db.fetch(
                query,
                self.workspace,
                json.dumps(outcomes, default=str),
                given["pause"],
                given["streak"],
                jitter,
                self.run_id,
            )
        )

    async def commit_sent(self, *outcomes: dict[str, Any]) -> list[int]:
        """The numbers of those that are left."""
        rows = await self.db.fetch(
            "SELECT commit_sent($1, $2, $3, $4, $5) AS nth",
            self.workspace,
            *([str(one[field]) for one in outcomes] for field in ("delivery_id", "claim_token")),
            [one.get("provider_message_id") for one in outcomes],
            self.run_id,
        )
        return [row["nth"] for row in rows]

    async def drain(self) -> int:
        """Claims and commits as sent until nothing is handed out; how many there were."""
        count = 0
        while claims := await self.claim():
            await self.commit(*(sent(claim) for claim in claims))
            count += len(claims)
        return count

    async def recover(self, *, now: Any = None, jitter: float = 0.5) -> int:
        query = "SELECT recover_sending_leases($1, $2, 1000, $3)"
        recovered: int = await self.db.fetchval(query, self.workspace, now, jitter)
        return recovered

    async def delivery(self, delivery: UUID) -> asyncpg.Record:
        query = "SELECT * FROM deliveries WHERE workspace_id = $1 AND delivery_id = $2"
        row = await self.db.fetchrow(query, self.workspace, delivery)
        assert row is not None
        return row

    async def deliveries(self) -> list[asyncpg.Record]:
        query = "SELECT * FROM deliveries WHERE workspace_id = $1 ORDER BY created_at, delivery_id"
        return list(await self.db.fetch(query, self.workspace))

    async def only_delivery(self) -> asyncpg.Record:
        [row] = await self.deliveries()
        return row

    async def state(self, channel: UUID) -> asyncpg.Record:
        query = "SELECT * FROM channels WHERE workspace_id = $1 AND channel_id = $2"
        row = await self.db.fetchrow(query, self.workspace, channel)
        assert row is not None
        return row

    async def due(self, channel: UUID) -> asyncpg.Record:
        query = "SELECT *, xmin::text AS version FROM channel_due WHERE workspace_id = $1 AND channel_id = $2"
        row = await self.db.fetchrow(query, self.workspace, channel)
        assert row is not None
        return row

    async def next_due_at(self) -> Any:
        return await self.db.fetchval("SELECT next_due_at($1)", self.workspace)

    async def history(self, delivery: UUID) -> list[str]:
        query = "SELECT action::text FROM events WHERE workspace_id = $1 AND delivery_id = $2 ORDER BY seq"
        return [row["action"] for row in await self.db.fetch(query, self.workspace, delivery)]

    async def events(self, *actions: str) -> list[asyncpg.Record]:
        """In the order they were written; all of them when no action is named."""
        query = """
            SELECT *, action::text AS what, result::text AS ended FROM events
            WHERE workspace_id = $1 AND (cardinality($2::text[]) = 0 OR action::text = ANY ($2)) ORDER BY seq"""
        return list(await self.db.fetch(query, self.workspace, list(actions)))

    async def count(self, table: str) -> int:
        found: int = await self.db.fetchval(f"SELECT count(*) FROM {table} WHERE workspace_id = $1", self.workspace)
        return found


def rendering(profile_hash: str, text: str = "", calls: int = 1) -> dict[str, Any]:
    return {
        "profile_hash": profile_hash,
        "plan_hash": f"plan-{profile_hash}",
        "rendered_text": text,
        "plan": {"parts": [text] * calls},
        "calls": calls,
    }


def sent(claim: asyncpg.Record, **fields: Any) -> dict[str, Any]:
    return {**_fence(claim), "result": "sent", "provider_message_id": "17", **fields}


def failed(claim: asyncpg.Record, category: str, scope: str, **fields: Any) -> dict[str, Any]:
    return {**_fence(claim), "result": "failed", "category": category, "scope": scope, "code": "boom", **fields}


def transient(claim: asyncpg.Record, scope: str = "delivery", **fields: Any) -> dict[str, Any]:
    return failed(claim, "TRANSIENT", scope, **fields)


def permanent(claim: asyncpg.Record, scope: str = "delivery", **fields: Any) -> dict[str, Any]:
    return failed(claim, "PERMANENT", scope, **fields)


def released(claim: asyncpg.Record) -> dict[str, Any]:
    return {**_fence(claim), "result": "released"}


def _fence(claim: asyncpg.Record) -> dict[str, Any]:
    return {"delivery_id": claim["delivery_id"], "claim_token": claim["claim_token"]}


def decode(answer: str) -> Any:
    return json.loads(answer)


async def is_waiting(executor: Executor, pid: int) -> bool:
    """Whether the backend stands in line for a lock."""
    query = "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $1"
    return bool(await executor.fetchval(query, pid))


def running(work: Any) -> "asyncio.Task[Any]":
    return asyncio.create_task(work)
