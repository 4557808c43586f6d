"""What fails in one place holds up no other: a workspace, a platform that is away, one that hangs."""

import json
from datetime import timedelta

import pytest
from bot.support.answering import PLENTY, TEXTS, Shop, configured, running_bot
from db.support.bots import Bot
from db.support.builders import Tenant
from harness.databases import Database
from harness.eventually import eventually

REFUSES = """
CREATE FUNCTION refuses() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.workspace_id = '{workspace}' THEN
        RAISE EXCEPTION 'refused';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER refuses BEFORE {when} ON {table} FOR EACH ROW EXECUTE FUNCTION refuses();
"""
PLACES = {"take": ("UPDATE", "bot_chats"), "turn": ("INSERT", "bot_logs"), "reply": ("UPDATE", "bot_outbox")}


@pytest.mark.parametrize("place", PLACES)
async def test_a_workspace_that_the_database_refuses_is_named_and_the_others_are_answered(
    database: Database, shop: Shop, place: str
) -> None:
    """All in the same calls: of both workspaces three chats write before the bot starts."""
    chats = await shop.open(3)
    await shop.rule("ping", "pong")
    refused = await Bot.create(await Tenant.create(shop.db))
    await shop.db.execute("UPDATE bot_settings SET texts = $1", json.dumps(TEXTS))
    for chat in chats:
        await refused.arrive(chat)
        await shop.bot.arrive(chat, text="ping")
    when, table = PLACES[place]
    await shop.db.execute(REFUSES.format(workspace=refused.workspace, when=when, table=table))

    async with running_bot(configured(database.url, shop.simulator)):
        await eventually(lambda: _answered(shop.bot, 3), within=PLENTY)
        await eventually(lambda: _is_named(refused), within=PLENTY)

    assert not await _answered(refused, 1)


async def _answered(bot: Bot, count: int) -> bool:
    query = "SELECT count(*) = $2 FROM bot_outbox WHERE workspace_id = $1 AND sent_at IS NOT NULL"
    return bool(await bot.db.fetchval(query, bot.workspace, count))


async def _is_named(bot: Bot) -> bool:
    return bool(await bot.db.fetchval("SELECT count(*) FROM set_aside WHERE workspace_id = $1", bot.workspace))


async def test_a_bot_without_dispatchers_finds_its_platform_again(database: Database, shop: Shop) -> None:
    """Two replicas, and nobody else asks: one probe at a time, then one reply as the trial, then all of them."""
    chats = await shop.open(4)
    await shop.rule("ping", "pong")
    await shop.control("faults", {"method": "POST /messages", "times": 3, "effect": {"status": 502}})
    config = configured(database.url, shop.simulator)

    async with running_bot(config), running_bot(config):
        for chat in chats[:3]:
            await shop.bot.arrive(chat, text="ping")
        await eventually(lambda: _circuit(shop, "open"), within=PLENTY)
        await shop.bot.arrive(chats[3], text="ping")
        await eventually(lambda: _circuit(shop, "closed"), within=PLENTY)
        await shop.settle(4)

    assert sorted(await shop.said()) == ["pong"] * 4
    assert [line["method"] for line in await shop.log()].count("GET /me") == 1


async def _circuit(shop: Shop, state: str) -> bool:
    return (await shop.bot.group())["state"] == state


async def test_of_a_platform_that_hangs_nothing_more_is_taken(database: Database, shop: Shop) -> None:
    hangs, other = await shop.open(2)
    await shop.rule("ping", "pong")
    await shop.control("faults", {"method": "POST /messages", "times": 1, "effect": {"hang": True}})
    settings = {"bot_provider_timeout": timedelta(seconds=3), "stall_after": timedelta(milliseconds=200)}

    async with running_bot(configured(database.url, shop.simulator, **settings)):
        await shop.bot.arrive(hangs, text="ping")
        await eventually(lambda: _is_stalled(shop), within=PLENTY)
        await shop.bot.arrive(other, text="ping")
        await shop.bot.due()
        await shop.settle(2)

    lines = [line for line in await shop.log() if line["method"] == "POST /messages"]
    assert lines[1]["arrived_ns"] - lines[0]["arrived_ns"] > 2_900_000_000


async def _is_stalled(shop: Shop) -> bool:
    return bool(await shop.db.fetchval("SELECT stalled_until > clock_timestamp() FROM platform_limits"))
