"""A turn is recorded as a whole, before anything is sent, by the one who has the chat."""

import asyncio
import json
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from db.support.bots import Bot, outcome, turn

NEXT = {"state": "returns", "context": {"turns": 1}, "expires_in": 1800}


async def test_reply_conversation_log_and_inbox_are_one(bot: Bot) -> None:
    key = await bot.arrive()
    [taken] = await bot.take()

    [committed] = await bot.commit(turn(taken, next=NEXT))

    assert (committed["verdict"], committed["attempt"]) == ("committed", 1)
    assert committed["slot_at"] is not None
    reply = await bot.reply()
    assert (reply["inbound_provider_message_id"], reply["response"]) == (key, {"plan": {"text": "hi"}, "progress": []})
    state = await bot.db.fetchrow("SELECT *, expires_at - updated_at AS left FROM bot_state")
    assert state is not None
    assert (state["state"], state["left"]) == ("returns", timedelta(minutes=30))
    [log] = await bot.logs()
    assert log["meta"]["idempotency_key"].startswith(f"bot:{bot.workspace}:")
    assert log["meta"]["trace_id"] == "trace"
    assert await bot.db.fetchval("SELECT count(*) FROM bot_inbox WHERE processed_at IS NULL") == 0


async def test_one_log_line_for_each_update_that_was_joined(bot: Bot) -> None:
    keys = [await bot.arrive() for _ in range(3)]
    [taken] = await bot.take(each=3)

    await bot.decide(taken)

    assert [log["meta"]["key"] for log in await bot.logs()] == keys
    assert await bot.tenant.count("bot_outbox") == 1


async def test_a_worker_that_comes_back_after_its_lease_changes_nothing(bot: Bot) -> None:
    await bot.arrive()
    [slow] = await bot.take()
    await bot.expire()
    [quick] = await bot.take()
    await bot.decide(quick, reply="quick")
    await bot.end(outcome(quick))

    [late] = await bot.decide(slow, reply="slow", next=NEXT)

    assert late["verdict"] == "stale"
    assert (await bot.reply())["response"]["plan"] == {"text": "quick"}
    assert len(await bot.logs()) == 1
    assert await bot.tenant.count("bot_state") == 0


async def test_a_slow_worker_whose_successor_is_still_at_work_changes_nothing(bot: Bot) -> None:
    await bot.arrive()
    [slow] = await bot.take()
    await bot.expire()
    [quick] = await bot.take()

    [late] = await bot.decide(slow)

    assert late["verdict"] == "stale"
    [committed] = await bot.decide(quick)
    assert committed["verdict"] == "committed"


async def test_of_two_commits_at_once_one_wins(bot: Bot) -> None:
    """The token is checked under the lock of the chat."""
    await bot.arrive()
    [taken] = await bot.take()

    async with bot.db.acquire() as connection, connection.transaction():
        [first] = await bot.on(connection).decide(taken, reply=None)
        second = asyncio.create_task(bot.decide(taken, reply=None))
        await waits_for_a_lock(bot)
    [second_verdict] = await second

    assert (first["verdict"], second_verdict["verdict"]) == ("silent", "stale")
    assert len(await bot.logs()) == 1


async def test_what_was_answered_before_is_not_answered_again(bot: Bot) -> None:
    key = await bot.arrive()
    await bot.db.execute(
        "INSERT INTO bot_outbox (workspace_id, chat_id, inbound_provider_message_id, response_hash, sent_at) "
        "VALUES ($1, '7', $2, 'x', now())",
        *(bot.workspace, key),
    )
    [taken] = await bot.take()

    [committed] = await bot.decide(taken, next=NEXT)

    assert (committed["verdict"], committed["slot_at"]) == ("answered", None)
    assert await bot.tenant.count("bot_state") == 0
    assert [log["meta"]["outcome"] for log in await bot.logs()] == ["answered"]
    assert await bot.take() == []


async def test_one_stale_turn_does_not_stop_the_others(bot: Bot) -> None:
    for chat in "abc":
        await bot.arrive(chat)
    taken = await bot.take()
    await bot.db.execute("UPDATE bot_chats SET lease_token = gen_random_uuid() WHERE chat_id = 'b'")

    committed = await bot.decide(*taken)

    assert {row["chat_id"]: row["verdict"] for row in committed} == {"a": "committed", "b": "stale", "c": "committed"}


async def test_a_workspace_that_was_paused_meanwhile_sends_nothing(bot: Bot) -> None:
    await bot.arrive()
    [taken] = await bot.take()
    await bot.db.execute("UPDATE workspaces SET status = 'paused'")

    [held] = await bot.decide(taken)

    assert (held["verdict"], (await bot.reply())["attempt"]) == ("held", 0)
    assert await bot.take() == []
    await bot.db.execute("UPDATE workspaces SET status = 'active'")
    [again] = await bot.take()
    assert (again["reply"]["attempt"], again["reply"]["maybe_sent"]) == (0, False)
    [slot] = await bot.slots(again)
    assert (slot["taken"], slot["attempt"]) == (True, 1)


async def test_replies_wait_for_their_slots_as_posts_do(bot: Bot) -> None:
    """Nothing is reserved, and each is told when to ask, a step after the one before it."""
    await bot.tenant.group(20, "bot", "max")
    for chat in "abcd":
        await bot.arrive(chat)

    committed = await bot.decide(*await bot.take())

    assert [row["verdict"] for row in committed] == ["committed"] * 4
    first, *others = sorted(committed, key=lambda row: row["wait"])
    assert [row["slot_at"] for row in others] == [None] * 3
    assert (await bot.group())["next_allowed_at"] == first["slot_at"] + timedelta(milliseconds=50)
    assert [b["wait"] - a["wait"] for a, b in pairwise(others)] == [timedelta(milliseconds=50)] * 2


async def test_slots_of_a_fast_group_are_a_step_apart(bot: Bot) -> None:
    await bot.tenant.group(200, "bot", "max")
    for chat in "abcd":
        await bot.arrive(chat)

    committed = await bot.decide(*await bot.take())

    slots = sorted(row["slot_at"] for row in committed)
    assert [(b - a) for a, b in pairwise(slots)] == [timedelta(milliseconds=5)] * 3
    assert (await bot.group())["next_allowed_at"] == slots[-1] + timedelta(milliseconds=5)


async def test_a_new_reply_does_not_overtake_those_that_wait(bot: Bot) -> None:
    await bot.arrive()
    [taken] = await bot.take()
    document = json.dumps([turn(taken) | {"workspace_id": str(bot.workspace)}])

    [committed] = await bot.db.fetch("SELECT * FROM commit_turns_across($1, p_behind => $2)", document, [bot.workspace])

    assert (committed["verdict"], committed["slot_at"]) == ("committed", None)


async def test_a_slot_that_is_far_away_is_not_waited_for(bot: Bot) -> None:
    await bot.tenant.group(0.5, "bot", "max")
    for chat in "abcde":
        await bot.arrive(chat)

    verdicts = [row["verdict"] for row in await bot.decide(*await bot.take())]

    assert sorted(verdicts) == ["committed"] * 3 + ["held"] * 2  # at 0, 2 and 4 seconds
    assert await bot.take() == []  # not before the slots are near


async def test_the_rate_of_a_chat_takes_no_slots_from_posts(bot: Bot) -> None:
    await bot.db.execute("UPDATE bot_settings SET chat_rps = 2")
    await bot.tenant.group(20, "bot", "max")
    await bot.end(outcome(await bot.answer()))
    before = (await bot.group())["next_allowed_at"]
    await bot.arrive()
    [taken] = await bot.take()

    [committed] = await bot.decide(taken)

    assert (committed["verdict"], committed["slot_at"]) == ("committed", None)
    assert (await bot.group())["next_allowed_at"] == before
    [early] = await bot.slots(taken)
    assert not early["taken"]
    assert timedelta() < early["wait"] < timedelta(seconds=0.5)


async def test_a_call_beside_the_chat_waits_for_the_group_only(bot: Bot) -> None:
    await bot.db.execute("UPDATE bot_settings SET chat_rps = 2")
    await bot.tenant.group(100, "bot", "max")
    taken = await bot.answer()
    gate = (await bot.chat())["next_allowed_at"]

    [beside] = await bot.slots(taken, beside=True)

    assert beside["taken"]
    assert (await bot.chat())["next_allowed_at"] == gate


async def test_a_missed_slot_keeps_its_place_in_the_chat(bot: Bot) -> None:
    await bot.db.execute("UPDATE bot_settings SET chat_rps = 2")
    taken = await bot.answer()
    had = (await bot.reply())["slot_at"]

    [unknown] = await bot.slots(taken)
    [again] = await bot.slots(taken, missed=had)

    assert (unknown["taken"], again["taken"]) == (False, True)
    assert again["attempt"] == 1


async def test_a_token_that_passed_on_gets_no_slot(bot: Bot) -> None:
    taken = await bot.answer()
    await bot.expire()
    await bot.take()

    assert await bot.slots(taken) == []


async def test_an_escalation_leaves_its_event_without_the_chat(bot: Bot) -> None:
    await bot.arrive("79991234567")
    [taken] = await bot.take()

    await bot.decide(taken, escalation={"code": "unmatched"})

    [event] = await bot.tenant.events()
    assert event["what"] == "bot_escalated"
    stored = await bot.db.fetchval("SELECT meta::text FROM events")
    assert ("79991234567" in stored, "unmatched" in stored) == (False, True)


async def test_late_updates_do_not_make_a_chat_older(bot: Bot) -> None:
    for ms in (5000, 3000):
        await bot.arrive(ms=ms)
        [taken] = await bot.take()
        await bot.decide(taken, reply=None)

    assert (await bot.chat())["last_provider_ts"] == 5000


@pytest.mark.parametrize("lost", ["before", "after"])
async def test_a_commit_without_an_answer_is_read_back(bot: Bot, lost: str) -> None:
    await bot.arrive()
    [taken] = await bot.take()
    if lost == "after":
        await bot.decide(taken)

    [found] = await bot.db.fetch(
        "SELECT * FROM read_turns($1, $2, $3)", bot.workspace, [taken["chat_id"]], [taken["lease_token"]]
    )

    assert found["committed"] == (lost == "after")
    assert (found["slot_at"] is not None) == (lost == "after")


async def waits_for_a_lock(bot: Bot) -> None:
    waiting: Any = 0
    while not waiting:
        waiting = await bot.db.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
