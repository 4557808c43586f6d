"""A bot of a tenant, and the calls that its workers make."""

import json
from datetime import timedelta
from itertools import count
from typing import Any
from uuid import UUID

import asyncpg
from db.support.builders import Tenant
from db.support.senders import make_sender

LEASE = timedelta(seconds=30)
PATIENCE = timedelta(seconds=5)


class Bot:
    """``on(connection)`` is the same bot through one connection: for transactions that stay open."""

    def __init__(self, tenant: Tenant, endpoint: UUID) -> None:
        self.tenant = tenant
        self.endpoint = endpoint
        self.db = tenant.db
        self.workspace = tenant.workspace
        self._times = count(1_700_000_000_000, 1000)

    @classmethod
    async def create(cls, tenant: Tenant, *, rate: float | None = None, chat_rps: float = 1_000_000) -> "Bot":
        """Without limits, unless the test gives some."""
        await tenant.db.execute(
            "INSERT INTO credential_bindings (workspace_id, auth_ref, platform, secret_ref) "
            "VALUES ($1, 'bot', 'max', 'env:TOKEN')",
            tenant.workspace,
        )
        await tenant.group(rate, "bot", "max")
        await tenant.db.execute(
            "INSERT INTO bot_settings (workspace_id, auth_ref, rate_group, chat_rps, chat_per_minute) "
            "VALUES ($1, 'bot', 'bot', $2, NULL)",
            *(tenant.workspace, chat_rps),
        )
        return cls(tenant, (await make_sender(tenant)).endpoint)

    def on(self, executor: Any) -> "Bot":
        same = Bot(self.tenant.on(executor), self.endpoint)
        same._times = self._times
        return same

    async def arrive(
        self,
        chat: str = "7",
        key: str | None = None,
        ms: int | None = None,
        seq: int = 0,
        text: str = "hello",
        kind: str = "message_created",
        **fields: Any,
    ) -> str:
        """A message of a customer, each a second after the one before by the provider's clock."""
        at = next(self._times) if ms is None else ms
        update = {
            "provider": "max",
            "chat_id": chat,
            "key": key or f"mid.{chat}.{at}.{seq}",
            "kind": kind,
            "answer": True,
            "chat_type": "dialog",
            "body": {"message": {"body": {"text": text}}},
            "provider_ts": at,
            "provider_seq": seq,
            "trace_id": "trace",
            **fields,
        }
        stored = await self.db.fetchval(
            "SELECT store_bot_update($1, $2, $3)", self.workspace, self.endpoint, json.dumps(update)
        )
        assert json.loads(stored)["verdict"] == "stored"
        return str(update["key"])

    async def take(self, limit: int = 50, each: int = 1, lease: timedelta = LEASE) -> list[Any]:
        rows = await self.db.fetch("SELECT * FROM take_chats($1, $2, $3, $4)", *(self.workspace, limit, each, lease))
        return [readable(row) for row in rows]

    async def commit(self, *turns: dict[str, Any], patience: timedelta = PATIENCE) -> list[Any]:
        return await self.db.fetch(
            "SELECT * FROM commit_turns($1, $2, $3)", self.workspace, json.dumps(turns), patience
        )

    async def end(self, *outcomes: dict[str, Any], jitter: float = 0.5) -> list[Any]:
        return await self.db.fetch(
            "SELECT * FROM commit_replies($1, $2, $3)", self.workspace, json.dumps(outcomes), jitter
        )

    async def slots(
        self, *taken: Any, beside: bool = False, missed: Any = None, patience: timedelta = PATIENCE
    ) -> list[Any]:
        return await self.db.fetch(
            "SELECT * FROM take_reply_slots($1, $2, $3, $4, $5, $6)",
            [self.workspace] * len(taken),
            [one["chat_id"] for one in taken],
            [one["lease_token"] for one in taken],
            [beside] * len(taken),
            [missed] * len(taken),
            patience,
        )

    async def decide(self, *taken: Any, **fields: Any) -> list[Any]:
        return await self.commit(*(turn(one, **fields) for one in taken))

    async def answer(self, chat: str = "7", **fields: Any) -> Any:
        """A message, answered up to the point at which the reply is being sent."""
        await self.arrive(chat)
        [taken] = await self.take()
        [committed] = await self.decide(taken, **fields)
        assert committed["verdict"] == "committed"
        return taken

    async def expire(self) -> None:
        """The leases end, as if their workers had died."""
        await self.db.execute(
            "UPDATE bot_chats SET lease_until = clock_timestamp() - interval '1 second', due_at = clock_timestamp() "
            "WHERE lease_until IS NOT NULL"
        )

    async def due(self) -> None:
        """What waits for its next attempt is due."""
        await self.db.execute("UPDATE bot_outbox SET next_attempt_at = clock_timestamp() WHERE sent_at IS NULL")
        await self.db.execute("UPDATE bot_chats SET due_at = clock_timestamp() WHERE due_at IS NOT NULL")

    async def chat(self, chat: str = "7") -> asyncpg.Record:
        return await self._row("SELECT * FROM bot_chats WHERE (workspace_id, chat_id) = ($1, $2)", chat)

    async def reply(self, chat: str = "7") -> Any:
        return readable(
            await self._row(
                "SELECT * FROM bot_outbox WHERE (workspace_id, chat_id) = ($1, $2) ORDER BY place DESC LIMIT 1", chat
            )
        )

    async def group(self) -> asyncpg.Record:
        return await self._row("SELECT *, circuit::text AS state FROM platform_limits WHERE workspace_id = $1")

    async def logs(self) -> list[Any]:
        query = "SELECT * FROM bot_logs WHERE workspace_id = $1 ORDER BY ts, id"
        return [readable(row) for row in await self.db.fetch(query, self.workspace)]

    async def _row(self, query: str, *values: Any) -> asyncpg.Record:
        row = await self.db.fetchrow(query, self.workspace, *values)
        assert row is not None
        return row


def readable(row: Any) -> dict[str, Any]:
    fields = {"context", "reply", "updates", "response", "last_error", "meta"}
    return {k: json.loads(v) if k in fields and isinstance(v, str) else v for k, v in dict(row).items()}


def turn(taken: Any, reply: str | None = "hi", **fields: Any) -> dict[str, Any]:
    """Of what a worker took; ``reply=None`` says nothing."""
    keys = [update["key"] for update in taken["updates"]]
    log = {"message_text": "text", "state_before": "default", "state_after": "default", "meta": {"outcome": "matched"}}
    return {
        "chat_id": taken["chat_id"],
        "lease_token": str(taken["lease_token"]),
        "trace_id": "trace",
        "updates": [{"key": key, "log": log} for key in keys],
        "next": None,
        "reply": reply and {"key": keys[-1], "plan": {"text": reply}, "plan_hash": "p", "response_hash": "p"},
        "escalation": None,
        **fields,
    }


def outcome(taken: Any, result: str = "sent", **fields: Any) -> dict[str, Any]:
    given = {"provider_message_id": "mid.out", "parts": [["mid.out"]]} if result == "sent" else {}
    return {
        "chat_id": taken["chat_id"],
        "lease_token": str(taken["lease_token"]),
        "result": result,
        **given,
        **fields,
    }


def transient(taken: Any, code: str = "http_502", **fields: Any) -> dict[str, Any]:
    return outcome(taken, "failed", **{"category": "TRANSIENT", "scope": "platform", "code": code, **fields})


def permanent(taken: Any, code: str = "chat_denied", **fields: Any) -> dict[str, Any]:
    given = {"category": "PERMANENT", "scope": "channel", "code": code, "answered": True}
    return outcome(taken, "failed", **{**given, **fields})
