"""A customer writes, and the bot answers: with everything real but the platform."""

import json
from datetime import timedelta
from typing import Any

import pytest
from bot.support.answering import PLENTY, Shop, configured, running_bot
from db.support.bots import Bot
from db.support.builders import Tenant
from harness.databases import Database
from harness.eventually import eventually


async def test_an_update_is_answered_by_the_rules(database: Database, shop: Shop) -> None:
    [chat] = await shop.open()
    await shop.rule("ping", "pong")
    told: list[tuple[Any, ...]] = []

    tell = lambda *change: told.append(change)  # noqa: E731
    async with running_bot(configured(database.url, shop.simulator), tell=tell):
        await shop.bot.arrive(chat, text="ping please")
        await shop.settle(1)

    assert await shop.said(chat) == ["pong"]
    reply = await shop.bot.reply(chat)
    assert (reply["attempt"], reply["sent_at"] is not None) == (1, True)
    [log] = await shop.bot.logs()
    assert (log["matched_rule_id"], log["meta"]["outcome"]) == ("ping", "matched")
    assert [(changed, seq) for _, changed, seq in told] == [(chat, 2)]


async def test_a_flood_of_one_chat_is_told_so_once_in_a_minute_and_the_others_are_answered(
    database: Database, shop: Shop
) -> None:
    floods, other = await shop.open(2)
    await shop.rule("ping", "pong {{ text }}")
    await shop.db.execute("UPDATE bot_settings SET chat_per_minute = 3, texts = $1", json.dumps({"flood": "Later."}))
    for number in range(30):
        await shop.bot.arrive(floods, text=f"ping {number}")
    await shop.bot.arrive(other, text="ping")

    async with running_bot(configured(database.url, shop.simulator)):
        await shop.settle(5)
        await shop.db.execute("UPDATE bot_chats SET minute_started_at = now() - interval '61 seconds'")
        await shop.bot.arrive(floods, text="ping again")
        await shop.settle(6)

    assert await shop.said(floods) == [*(f"pong ping {number}" for number in range(3)), "Later.", "pong ping again"]
    assert await shop.said(other) == ["pong ping"]
    kinds = await shop.db.fetch("SELECT kind FROM bot_outbox WHERE chat_id = $1 ORDER BY place", floods)
    assert [row["kind"] for row in kinds] == ["reply", "reply", "reply", "notice", "reply"]
    assert await shop.db.fetchval("SELECT count(*) FROM bot_inbox WHERE ignored = 'chat_flood'") == 27


async def test_a_scenario_of_twenty_steps_takes_twenty_quick_messages(database: Database, shop: Shop) -> None:
    """Three replicas at once: each message is judged by the state that the one before it left."""
    [chat] = await shop.open()
    await shop.rule("go", "step 0", next_state="s1", max_turns=100)
    for step in range(1, 20):
        await shop.rule(f"r{step}", f"step {step}", "any", state=f"s{step}", next_state=f"s{step + 1}")
    await shop.rule("end", "end", "any", state="s20", next_state="default")
    for step in range(20):
        await shop.bot.arrive(chat, text="on" if step else "go")

    config = configured(database.url, shop.simulator)
    async with running_bot(config), running_bot(config), running_bot(config):
        await shop.settle(20)

    assert await shop.said(chat) == [f"step {step}" for step in range(20)]


async def test_a_change_of_a_rule_is_in_the_next_answer_of_every_replica(database: Database, shop: Shop) -> None:
    """A hundred times: a change, and at once a message to each of two replicas."""
    chats, changes = await shop.open(2), 100
    await shop.rule("ping", "0")
    config = configured(database.url, shop.simulator, poll_interval=timedelta(milliseconds=10))
    async with running_bot(config), running_bot(config):
        for change in range(1, changes + 1):
            await shop.db.execute("UPDATE bot_rules SET response_template = $1", str(change))
            for chat in chats:
                await shop.bot.arrive(chat, text="ping")
            await shop.settle(len(chats) * change)

    assert [await shop.said(chat) for chat in chats] == [[str(change) for change in range(1, changes + 1)]] * 2
    kept = await shop.db.fetchval("SELECT count(*) FROM bot_rulesets")
    named = await shop.db.fetchval("SELECT count(DISTINCT meta ->> 'ruleset') FROM bot_logs")
    assert kept >= named == changes


async def test_nothing_is_sent_during_a_pause_and_all_of_it_in_order_afterwards(database: Database, shop: Shop) -> None:
    [chat] = await shop.open()
    await shop.db.execute("UPDATE workspaces SET status = 'paused' WHERE workspace_id = $1", shop.bot.workspace)
    for name in ("one", "two", "three"):
        await shop.rule(name, name)
        await shop.bot.arrive(chat, text=name)

    async with running_bot(configured(database.url, shop.simulator)):
        other = await Bot.create(await Tenant.create(shop.db))
        await other.arrive("1")
        await eventually(lambda: _is_handled(other))  # by a poll that saw the paused workspace as well
        assert await shop.bot.logs() == []
        await shop.db.execute("UPDATE workspaces SET status = 'active' WHERE workspace_id = $1", shop.bot.workspace)
        await shop.settle(4)

    assert await shop.said(chat) == ["one", "two", "three"]


async def _is_handled(bot: Bot) -> bool:
    return len(await bot.logs()) == 1


async def test_who_stopped_the_bot_is_no_error_and_can_start_again(database: Database, shop: Shop) -> None:
    [chat] = await shop.open()
    await shop.rule("ping", "pong")
    await shop.open(state="blocked")

    async with running_bot(configured(database.url, shop.simulator)):
        await shop.bot.arrive(chat, text="ping")
        await shop.settle(1)
        assert (await shop.bot.reply(chat))["failed_at"] is not None
        assert (await shop.bot.chat(chat))["stopped_at"] is not None
        assert await shop.db.fetchval("SELECT count(*) FROM condition_bot_errors(0)") == 0
        await shop.open(state="ok")
        await shop.bot.arrive(chat, kind="bot_started")
        await shop.bot.arrive(chat, text="ping")
        await shop.settle(3)

    assert await shop.said(chat) == ["Hello!", "pong"]


async def test_a_chat_whose_call_hangs_holds_up_no_other(database: Database, shop: Shop) -> None:
    hangs, other = await shop.open(2)
    await shop.rule("ping", "pong")
    hang = {"method": "POST /messages", "chat": int(hangs), "times": 1, "effect": {"hang": True}}
    await shop.control("faults", hang)

    async with running_bot(configured(database.url, shop.simulator, bot_provider_timeout=timedelta(seconds=5))):
        await shop.bot.arrive(hangs, text="ping")

        async def is_taken() -> bool:
            return (await shop.bot.chat(hangs))["lease_token"] is not None

        await eventually(is_taken)
        for _ in range(5):
            await shop.bot.arrive(other, text="ping")
        await eventually(lambda: _has_said(shop, other, 5), within=timedelta(seconds=4))


async def _has_said(shop: Shop, chat: str, count: int) -> bool:
    return len(await shop.said(chat)) == count


@pytest.mark.parametrize("arrived", [True, False])
async def test_a_call_without_an_answer_leads_to_one_message(database: Database, shop: Shop, arrived: bool) -> None:
    [chat] = await shop.open()
    await shop.rule("ping", "pong")
    effect = {"hang": True, "accept": True} if arrived else {"hang": True}
    await shop.control("faults", {"method": "POST /messages", "times": 1, "effect": effect})
    config = configured(
        database.url, shop.simulator, bot_provider_timeout=timedelta(seconds=1), bot_lease=timedelta(seconds=5)
    )

    async with running_bot(config):
        await shop.bot.arrive(chat, text="ping")
        await eventually(lambda: _waits(shop, chat), within=PLENTY)
        await shop.bot.due()
        await shop.settle(1)

    assert await shop.said(chat) == ["pong"]
    assert [line["method"] for line in await shop.log()].count("GET /messages") == 1


async def _waits(shop: Shop, chat: str) -> bool:
    query = "SELECT last_error IS NOT NULL FROM bot_outbox WHERE chat_id = $1 ORDER BY place DESC LIMIT 1"
    return bool(await shop.db.fetchval(query, chat))


async def test_an_earlier_answer_with_the_same_words_is_not_taken_for_this_one(database: Database, shop: Shop) -> None:
    [chat] = await shop.open()
    await shop.rule("ping", "pong")
    config = configured(
        database.url, shop.simulator, bot_provider_timeout=timedelta(seconds=1), bot_lease=timedelta(seconds=5)
    )

    async with running_bot(config):
        await shop.bot.arrive(chat, text="ping")
        await shop.settle(1)
        await shop.control("faults", {"method": "POST /messages", "times": 1, "effect": {"hang": True}})
        await shop.bot.arrive(chat, text="ping")
        await eventually(lambda: _waits(shop, chat), within=PLENTY)
        await shop.bot.due()
        await shop.settle(2)

    assert await shop.said(chat) == ["pong", "pong"]


async def test_an_unreadable_chat_is_never_sent_to_blindly(database: Database, shop: Shop) -> None:
    [chat] = await shop.open()
    await shop.rule("ping", "pong")
    await shop.control("faults", {"method": "POST /messages", "times": 1, "effect": {"hang": True, "accept": True}})
    await shop.control("faults", {"method": "GET /messages", "effect": {"status": 500}})
    config = configured(
        database.url, shop.simulator, bot_provider_timeout=timedelta(seconds=1), bot_lease=timedelta(seconds=5)
    )

    async with running_bot(config):
        await shop.bot.arrive(chat, text="ping")
        await eventually(lambda: _waits(shop, chat), within=PLENTY)
        for _ in range(2):
            searches = await _searches(shop)
            await shop.bot.due()
            await eventually(lambda seen=searches: _searched(shop, seen), within=PLENTY)

    assert await shop.said(chat) == ["pong"]
    assert [line["method"] for line in await shop.log()].count("POST /messages") == 1
    assert (await shop.bot.reply(chat))["sent_at"] is None


async def _searches(shop: Shop) -> int:
    return [line["method"] for line in await shop.log()].count("GET /messages")


async def _searched(shop: Shop, before: int) -> bool:
    return await _searches(shop) > before


async def test_a_rotated_token_is_read_again(database: Database, shop: Shop) -> None:
    """One 401 of the old token, then the new one: the customer notices nothing."""
    [chat] = await shop.open()
    await shop.rule("ping", "pong")
    async with running_bot(configured(database.url, shop.simulator)):
        await shop.control("faults", {"method": "POST /messages", "times": 1, "effect": {"status": 401}})
        await shop.bot.arrive(chat, text="ping")
        await shop.settle(1)

    assert (await shop.bot.reply(chat))["last_error"]["code"] == "unauthorized"


async def test_a_workspace_whose_settings_cannot_be_read_holds_up_no_other(database: Database, shop: Shop) -> None:
    [chat] = await shop.open()
    broken = await Bot.create(await Tenant.create(shop.db))
    await broken.db.execute(
        "UPDATE bot_settings SET fallback = '{\"escalate_after\": 1.5}' WHERE workspace_id = $1", broken.workspace
    )
    await shop.rule("ping", "pong")

    async with running_bot(configured(database.url, shop.simulator)):
        await broken.arrive("1", text="ping")
        await eventually(lambda: _is_set_aside(broken), within=PLENTY)
        await shop.bot.arrive(chat, text="ping")
        await eventually(lambda: _has_said(shop, chat, 1), within=PLENTY)

    assert (await broken.chat("1"))["takes"] == 0


async def _is_set_aside(bot: Bot) -> bool:
    return bool(await bot.db.fetchval("SELECT count(*) FROM set_aside WHERE workspace_id = $1", bot.workspace))
