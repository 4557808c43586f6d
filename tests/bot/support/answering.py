"""Replicas that answer customers, in this process, on a real Postgres and a simulated MAX."""

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import httpx
from autopost_adapters.max.send import MaxAdapter
from autopost_bot.config import BotConfig
from autopost_bot.conversation.gateway import ConversationGateway
from autopost_bot.conversation.pipeline import Tell, conversations
from autopost_bot.conversation.send import ReplyAdapter
from autopost_bot.gateway import Gateway
from autopost_runtime.http.client import HttpClient
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.postgres.pool import open_database
from autopost_runtime.secrets.credentials import Credentials
from db.support.bots import Bot
from harness.eventually import eventually

TOKEN = "bot-tests-token"
ENVIRONMENT = {"TOKEN": TOKEN}
PLENTY = timedelta(seconds=30)
TEXTS = {"greeting": "Hello!", "clarify": "Say it differently.", "escalate": "Ask a person."}


def configured(url: str, simulator: str, **settings: Any) -> BotConfig:
    given: dict[str, Any] = {
        "database_url": url,
        "nats_url": None,
        "max_api_url": f"{simulator}/max",
        "poll_interval": timedelta(milliseconds=50),
    }
    return BotConfig(**(given | settings))


@contextlib.asynccontextmanager
async def running_bot(
    config: BotConfig,
    gateway_of: type[ConversationGateway] = ConversationGateway,
    wrap: Callable[[MaxAdapter], ReplyAdapter] = lambda adapter: adapter,
    tell: Tell = lambda *_: None,
) -> AsyncIterator[Service]:
    """A replica, wired as the service wires itself."""
    service = Service("bot")
    async with open_database(config, service) as database, HttpClient() as http:
        timeout = config.bot_provider_timeout
        platform = MaxAdapter(http, config.max_api_url, timeout, timeout)
        try:
            async with conversations(
                config,
                service,
                gateway_of(database),
                adapters={"max": wrap(platform)},
                identities=Credentials(Gateway(database), ENVIRONMENT),
                tell=tell,
            ):
                yield service
        finally:
            await service.end_tasks()


class Shop:
    """A bot, its simulated platform, and the customers who write to it."""

    def __init__(self, bot: Bot, simulator: str, http: httpx.AsyncClient) -> None:
        self.bot = bot
        self.db = bot.db
        self.simulator = simulator
        self.http = http

    async def control(self, path: str, body: Any) -> None:
        (await self.http.post(f"{self.simulator}/_sim/{path}", json=body)).raise_for_status()

    async def open(self, chats: int = 1, **columns: Any) -> list[str]:
        """Dialogs without limits of the platform's, unless the test sets some; their ids."""
        ids = [str(7_000 + number) for number in range(chats)]
        known = [{"platform": "max", "id": int(one), "type": "dialog", "limits": [], **columns} for one in ids]
        await self.control("chats", known)
        await self.limit_token(0)
        return ids

    async def limit_token(self, calls: int) -> None:
        """So many calls in any second; 0 for no limit."""
        limits = [{"count": calls, "per": 1}] if calls else []
        await self.control("tokens", [{"platform": "max", "token": TOKEN, "limits": limits}])

    async def rule(self, rule_id: str, template: str, mode: str = "contains", **columns: Any) -> None:
        """Answers to its own name, unless the test says otherwise."""
        given = {
            "workspace_id": self.bot.workspace,
            "rule_id": rule_id,
            "intent": rule_id,
            "pattern": json.dumps({"mode": mode, "keywords": [] if mode == "any" else [rule_id]}),
            "response_template": template,
            **columns,
        }
        places = ", ".join(f"${place}" for place in range(1, len(given) + 1))
        await self.db.execute(f"INSERT INTO bot_rules ({', '.join(given)}) VALUES ({places})", *given.values())

    async def settle(self, updates: int, within: timedelta = PLENTY) -> None:
        """So many updates are handled, and no reply waits."""

        async def nothing_left() -> bool:
            left = await self.db.fetchrow(
                "SELECT (SELECT count(*) FROM bot_logs) AS handled, (SELECT count(*) FROM bot_outbox "
                "WHERE sent_at IS NULL AND failed_at IS NULL) AS unsent, "
                "(SELECT count(*) FROM bot_chats WHERE lease_token IS NOT NULL) AS taken"
            )
            return left is not None and (left["handled"], left["unsent"], left["taken"]) == (updates, 0, 0)

        await eventually(nothing_left, within=within)

    async def log(self, after: int = 0) -> list[dict[str, Any]]:
        answer = await self.http.get(f"{self.simulator}/_sim/log", params={"after": after})
        return [json.loads(line) for line in answer.text.splitlines() if line]

    async def said(self, chat: str | None = None) -> list[str]:
        """What customers read, also where the answer of the call was withheld."""
        lines = [line for line in await self.log() if line["message_ids"]]
        return [line["text"] for line in lines if chat in (None, str(line["chat"]))]
