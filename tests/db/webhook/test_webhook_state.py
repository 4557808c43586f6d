"""Where the provider sends the updates of a bot to: asked by one replica at a time, recorded, and set by operators."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from db.support.builders import Tenant
from db.support.senders import make_sender
from db.support.shop_bot import make_bot

HOOK = "https://shop.example/v1/bot/max"
HERE = [{"url": HOOK, "update_types": None}]
ELSEWHERE = [{"url": "https://old.example/v1/bot/max", "update_types": ["message_created"]}]
INTERVAL = timedelta(minutes=10)


@pytest.fixture
async def bot(tenant: Tenant) -> Tenant:
    await make_bot(tenant)
    return tenant


async def due(bot: Tenant, limit: int = 10) -> list[str]:
    rows = await bot.db.fetch("SELECT * FROM take_webhook_checks($1, $2)", INTERVAL, limit)
    return [row["auth_ref"] for row in rows]


async def note(bot: Tenant, subscriptions: list[dict[str, Any]]) -> bool:
    found: bool = await bot.db.fetchval("SELECT note_webhooks($1, $2)", bot.workspace, json.dumps(subscriptions))
    return found


async def set_url(bot: Tenant, url: str | None, reason: str = "moved") -> dict[str, Any]:
    query = "SELECT set_bot_webhook($1, $2, 'ann', $3)"
    answer: dict[str, Any] = json.loads(await bot.db.fetchval(query, bot.workspace, url, reason))
    return answer


async def test_of_many_replicas_one_asks_once_in_an_interval(bot: Tenant) -> None:
    asked = await asyncio.gather(*(due(bot) for _ in range(8)))
    again = await due(bot)
    await bot.db.execute("UPDATE bot_settings SET subscriptions_read_at = now() - interval '11 minutes'")

    assert [one for found in asked for one in found] == ["bot"]
    assert again == []
    assert await due(bot) == ["bot"]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE bot_settings SET enabled = false",
        "UPDATE workspaces SET status = 'paused'",
        "UPDATE workspaces SET status = 'disabled'",
    ],
)
async def test_a_bot_that_does_not_answer_is_not_asked_about(bot: Tenant, change: str) -> None:
    await bot.db.execute(change)

    assert await due(bot) == []


async def test_asking_loads_no_rules_anew(bot: Tenant) -> None:
    before = await bot.db.fetchval("SELECT rules_seq FROM bot_settings")
    await due(bot)
    await note(bot, HERE)

    assert await bot.db.fetchval("SELECT rules_seq FROM bot_settings") == before


@pytest.mark.parametrize(
    ("url", "subscriptions", "is_subscribed"),
    [
        (None, [], False),
        (None, ELSEWHERE, True),
        (HOOK, [], False),
        (HOOK, ELSEWHERE, False),
        (HOOK, [*ELSEWHERE, *HERE], True),
    ],
)
async def test_updates_have_to_come_to_the_address_that_was_set_or_anywhere(
    bot: Tenant, url: str | None, subscriptions: list[dict[str, Any]], is_subscribed: bool
) -> None:
    await set_url(bot, url)

    assert await note(bot, subscriptions) is is_subscribed
    assert (await bot.db.fetchval("SELECT webhook_lost_at FROM bot_settings") is None) is is_subscribed


async def test_a_lost_webhook_is_lost_since_it_was_seen_first(bot: Tenant) -> None:
    await note(bot, [])
    first = await bot.db.fetchval("SELECT webhook_lost_at FROM bot_settings")
    await note(bot, [])
    second = await bot.db.fetchval("SELECT webhook_lost_at FROM bot_settings")
    await note(bot, HERE)

    assert first == second
    assert await bot.db.fetchval("SELECT webhook_lost_at FROM bot_settings") is None


async def test_an_address_is_set_with_operator_and_reason(bot: Tenant) -> None:
    answers = [await set_url(bot, HOOK), await set_url(bot, None)]

    assert [(answer["verdict"], answer.get("was")) for answer in answers] == [("set", None), ("set", HOOK)]
    metas = [json.loads(row["meta"]) for row in await bot.db.fetch("SELECT meta FROM events ORDER BY ts")]
    assert [(meta["what"], meta["operator"], meta["reason"]) for meta in metas] == [
        ("bot_settings.webhook_url", "ann", "moved")
    ] * 2
    with pytest.raises(asyncpg.PostgresError) as refused:
        await set_url(bot, HOOK, reason=" ")
    assert refused.value.sqlstate == "AP010"


async def test_without_a_bot_there_is_nothing_to_set_or_to_read(tenant: Tenant) -> None:
    assert await set_url(tenant, HOOK) == {"verdict": "no_bot"}
    assert await tenant.db.fetch("SELECT * FROM read_bot_access($1)", tenant.workspace) == []


async def test_an_operator_learns_where_the_token_is_and_whether_a_secret_fits(bot: Tenant) -> None:
    sender = await make_sender(bot)
    await bot.db.execute("UPDATE workspace_endpoints SET kind = 'bot_webhook', secret_hash = repeat('a', 64)")
    query = "SELECT * FROM read_bot_access($1, $2)"

    rows = [await bot.db.fetchrow(query, bot.workspace, digest) for digest in ("a" * 64, "b" * 64, None)]
    await bot.db.execute("UPDATE workspace_endpoints SET enabled = false WHERE endpoint_id = $1", sender.endpoint)
    rows.append(await bot.db.fetchrow(query, bot.workspace, "a" * 64))

    assert [(row["secret_ref"], row["has_secret"]) for row in rows if row] == [
        ("env:TOKEN", True),
        ("env:TOKEN", False),
        ("env:TOKEN", None),
        ("env:TOKEN", False),
    ]
