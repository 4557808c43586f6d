"""Why a customer has no answer: by the id of the message, or by that of the reply. Without the customer's words."""

import json

import pytest
from autopost_cli.why.text import lines
from db.support.bots import Bot, outcome, transient

CHAT = "7700112233"
WORDS = "gooseberry jam"


@pytest.fixture
async def bot(tenant) -> Bot:
    return await Bot.create(tenant)


async def ask(bot, ident):
    return json.loads(await bot.db.fetchval("SELECT why($1)", str(ident)))


async def gate(bot, ident):
    [entry] = (await ask(bot, ident))["found"]
    return entry["gate"] and entry["gate"]["gate"]


async def said(bot, ident):
    return "\n".join(lines(await ask(bot, ident)))


async def test_an_update_waits_for_the_bot_or_for_what_holds_its_workspace(bot):
    key = await bot.arrive(CHAT, text=WORDS)
    assert await gate(bot, key) == "due"

    for change, held, back in (
        ("UPDATE workspaces SET status = 'paused'", "workspace_paused", "UPDATE workspaces SET status = 'active'"),
        ("UPDATE bot_settings SET enabled = false", "bot_off", "UPDATE bot_settings SET enabled = true"),
        (
            "SELECT set_aside(workspace_id, 'bot_turns', 3, '1 minute', 'x') FROM bot_settings",
            "set_aside",
            "DELETE FROM set_aside",
        ),
        (
            "UPDATE platform_limits SET circuit = 'open', opened_at = now(), probe_at = now()",
            "platform_outage",
            "UPDATE platform_limits SET circuit = 'closed', opened_at = NULL, probe_at = NULL",
        ),
    ):
        await bot.db.execute(change)
        assert await gate(bot, key) == held
        await bot.db.execute(back)

    await bot.take()
    assert await gate(bot, key) == "lease"


async def test_a_reply_waits_for_its_retry_and_the_next_update_for_the_reply(bot):
    key = await bot.arrive(CHAT, text=WORDS)
    following = await bot.arrive(CHAT, text=WORDS)
    assert await gate(bot, following) == "behind_in_chat"
    [taken] = await bot.take()
    await bot.decide(taken)
    reply = (await bot.reply(CHAT))["reply_id"]
    assert await gate(bot, reply) == "lease"

    await bot.end(transient(taken, message=f"chat {CHAT} is away"))

    assert (await gate(bot, reply), await gate(bot, key), await gate(bot, following)) == (
        "retry_backoff",
        "retry_backoff",
        "behind_in_chat",
    )
    told = await said(bot, reply)
    assert "http_502" in told and f"autopost bot skip {reply}" in told


async def test_what_was_answered_says_how_and_nothing_of_the_customer(bot):
    key = await bot.arrive(CHAT, text=WORDS)
    [taken] = await bot.take()
    await bot.decide(taken)
    await bot.end(outcome(taken))
    reply = (await bot.reply(CHAT))["reply_id"]

    by_key, by_reply = await ask(bot, key), await ask(bot, reply)

    assert by_key["found"] == by_reply["found"]
    [entry] = by_key["found"]
    assert (entry["outcome"], entry["gate"], entry["reply"]["reply_id"]) == ("matched", None, str(reply))
    told = await said(bot, reply)
    assert "matched, default → default" in told and "sent " in told
    assert CHAT not in told + json.dumps(by_key) and WORDS not in told + json.dumps(by_key)


async def test_what_nobody_answers_says_why(bot):
    await bot.db.execute("UPDATE bot_settings SET enabled = false")
    key = await bot.arrive(CHAT)

    assert await gate(bot, key) is None
    assert "no_bot" in await said(bot, key)
    assert (await ask(bot, "mid.unknown"))["found"] == []
