"""`autopost bot subscribe`: a webhook that MAX gave up is noticed, alerted, and healed by one command."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
from autopost_adapters.max.send import MaxAdapter
from autopost_bot.config import BotConfig
from autopost_bot.gateway import Gateway
from autopost_bot.webhook_checks import WebhookChecks
from autopost_runtime.http.client import HttpClient
from autopost_runtime.postgres.pool import open_database
from autopost_runtime.secrets.credentials import Credentials
from autopost_simulator import Simulator, listening
from db.support.builders import Tenant
from db.support.shop_bot import make_bot
from harness.autopost_command import Autopost, Ran
from harness.databases import Database
from harness.eventually import eventually
from harness.http_client import http_client

TOKEN = "canary-max-token"
SECRET = "canary-hook-secret"
DEAD = "http://127.0.0.1:1/v1/bot/max"
HOOK = "https://shop.example/v1/bot/max"
SIGNED = ("--operator", "ann", "--reason", "lost")
INTERVAL = timedelta(minutes=10)


class Shop:
    """A workspace with a bot, the simulated MAX, and the check of the bot service."""

    def __init__(self, tenant: Tenant, database: Database, url: str, http: Any, checks: WebhookChecks) -> None:
        self.tenant = tenant
        self.url = url
        self.http = http
        self.checks = checks
        self._database_url = database.url
        self._env = {"TOKEN": TOKEN, "AUTOPOST_MAX_API_URL": f"{url}/max", "AUTOPOST_WEBHOOK_SECRET": SECRET}

    async def bot(self, *words: str, **env: str) -> Ran:
        return await Autopost(self._database_url, **(self._env | env))("bot", *words)

    async def check(self) -> None:
        """As after the interval."""
        await self.tenant.db.execute("UPDATE bot_settings SET subscriptions_read_at = NULL")
        await self.checks.check_due()

    async def subscribed(self) -> list[str]:
        answer = await self.http.get(f"{self.url}/max/subscriptions", headers={"Authorization": TOKEN})
        return [one["url"] for one in answer.json()["subscriptions"]]

    async def is_given_up(self) -> bool:
        return not await self.subscribed()

    async def alerted(self) -> list[str]:
        rows = await self.tenant.db.fetch("""SELECT condition FROM alert_conditions('{"bot_webhook": 3600}')""")
        return [row["condition"] for row in rows]


@pytest.fixture
async def shop(database: Database) -> AsyncIterator[Shop]:
    tenant = await Tenant.create(database.pool)
    await make_bot(tenant)
    await tenant.db.execute(
        "INSERT INTO workspace_endpoints (workspace_id, kind, secret_hash) VALUES ($1, 'bot_webhook', $2)",
        *(tenant.workspace, sha256(SECRET.encode()).hexdigest()),
    )
    config = BotConfig(database_url=database.url, database_role=None, database_pool=2)
    async with (
        listening(Simulator(open_to_all=True)) as url,
        HttpClient() as client,
        http_client() as http,
        open_database(config, "bot") as pool,
    ):
        gateway = Gateway(pool)
        platform = MaxAdapter(client, f"{url}/max", timedelta(seconds=20), timedelta(seconds=20))
        checks = WebhookChecks(gateway, Credentials(gateway, {"TOKEN": TOKEN}), platform, INTERVAL)
        yield Shop(tenant, database, url, http, checks)


async def test_a_webhook_that_max_gave_up_is_alerted_and_healed_by_one_command(shop: Shop) -> None:
    await shop.http.post(f"{shop.url}/_sim/max/settings", json={"webhook_time_scale": 1e6})
    await shop.bot("subscribe", "--url", DEAD, *SIGNED)
    await shop.http.post(f"{shop.url}/_sim/max/customers/9/write", json={"text": "hello"})
    await eventually(shop.is_given_up)

    await shop.check()
    lost = await shop.alerted()
    ran = await shop.bot("subscribe", "--url", HOOK, *SIGNED, "--json")

    assert lost == ["bot_webhook"]
    assert (ran.code, ran.json["url"]) == (0, HOOK)
    assert await shop.subscribed() == [HOOK]
    assert await shop.alerted() == []


async def test_updates_that_still_come_are_no_alert(shop: Shop) -> None:
    await shop.check()
    await shop.tenant.db.execute(
        "INSERT INTO bot_chats (workspace_id, chat_id, minute_started_at) VALUES ($1, '7', now())",
        shop.tenant.workspace,
    )

    assert await shop.alerted() == []


async def test_a_platform_that_does_not_answer_changes_nothing(shop: Shop) -> None:
    await shop.bot("subscribe", "--url", HOOK, *SIGNED)
    await shop.http.post(f"{shop.url}/_sim/faults", json={"name": "outage", "effect": {"status": 502}})

    await shop.check()

    assert await shop.tenant.db.fetchval("SELECT subscriptions -> 0 ->> 'url' FROM bot_settings") == HOOK
    assert await shop.alerted() == []


async def test_the_list_names_addresses_that_were_left_behind(shop: Shop) -> None:
    """MAX adds a webhook for each address."""
    for url in ("https://old.example/v1/bot/max", HOOK):
        await shop.bot("subscribe", "--url", url, *SIGNED)

    listed = await shop.bot("subscriptions")
    removed = await shop.bot("unsubscribe", "--url", "https://old.example/v1/bot/max", *SIGNED, "--json")

    assert "MAX also sends them to https://old.example" in listed.out
    assert [one["url"] for one in removed.json["subscriptions"]] == [HOOK]
    assert await shop.tenant.db.fetchval("SELECT webhook_url FROM bot_settings") == HOOK


async def test_the_end_of_a_webhook_is_recorded(shop: Shop) -> None:
    await shop.bot("subscribe", "--url", HOOK, *SIGNED)

    ran = await shop.bot("unsubscribe", "--url", HOOK, *SIGNED)

    assert ran.code == 0
    assert "nowhere" in ran.out
    assert await shop.tenant.db.fetchval("SELECT webhook_url IS NULL FROM bot_settings")
    assert await shop.subscribed() == []


async def test_a_dry_run_changes_nothing(shop: Shop) -> None:
    ran = await shop.bot("subscribe", "--url", HOOK, *SIGNED, "--dry-run", "--json")

    assert (ran.code, ran.json["dry_run"]) == (0, True)
    assert await shop.subscribed() == []
    assert await shop.tenant.events() == []


@pytest.mark.parametrize(
    ("change", "env", "said"),
    [
        ("DELETE FROM bot_settings", {}, "insert a row into bot_settings"),
        ("SELECT", {"AUTOPOST_WEBHOOK_SECRET": "another-secret"}, "ingest would answer 401 to every update"),
        ("SELECT", {"TOKEN": ""}, "the environment variable TOKEN is not set"),
        ("UPDATE credential_bindings SET secret_ref = 'file:/nowhere'", {}, "the file /nowhere cannot be read"),
    ],
)
async def test_what_cannot_work_is_said_before_max_is_asked(
    shop: Shop, change: str, env: dict[str, str], said: str
) -> None:
    await shop.tenant.db.execute(change)

    ran = await shop.bot("subscribe", "--url", HOOK, *SIGNED, **env)

    assert ran.code != 0
    assert said in ran.err
    assert await shop.subscribed() == []


async def test_what_max_refuses_is_said_in_its_words(shop: Shop) -> None:
    ran = await shop.bot("subscribe", "--url", "http://shop.example/v1/bot/max", *SIGNED)

    assert ran.code == 1
    assert "must start with https" in ran.err
    assert await shop.tenant.db.fetchval("SELECT webhook_url IS NULL FROM bot_settings")


async def test_neither_token_nor_secret_is_shown_or_stored(shop: Shop) -> None:
    ran = [await shop.bot(*words, *SIGNED) for words in (("subscribe", "--url", HOOK), ("unsubscribe", "--url", HOOK))]

    stored = json.dumps([dict(row) for row in await shop.tenant.db.fetch("SELECT meta::text FROM events")])
    for canary in (TOKEN, SECRET):
        assert canary not in stored
        assert all(canary not in f"{one.out}{one.err}" for one in ran)
