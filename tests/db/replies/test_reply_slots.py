"""Replies and posts of one token take its slots in turns; nobody reserves what the other waits for."""

import json
from datetime import timedelta
from typing import Any

import pytest
from db.support.bots import Bot, turn
from db.support.builders import Tenant


@pytest.fixture
async def shared(bot: Bot) -> Bot:
    """20 slots a second for three chats and a channel with a backlog."""
    await bot.tenant.group(20, "bot", "max")
    await bot.tenant.channel(platform="max", rate_group="bot", rate_rps=None, max_parallel=100)
    for number in range(5):
        await bot.tenant.enqueue(f"post {number}")
    for chat in "abc":
        await bot.arrive(chat)
    return bot


async def test_after_a_reply_the_next_slot_is_the_posts(shared: Bot) -> None:
    committed = await shared.decide(*await shared.take())
    assert [row["slot_at"] is not None for row in committed].count(True) == 1
    gate = (await shared.group())["next_allowed_at"]
    [waiting] = [row for row in committed if row["slot_at"] is None and row["wait"] < timedelta(milliseconds=100)]

    assert waiting["wait"] > timedelta(milliseconds=50)  # the slot, and the time that is left to the posts
    await opens(shared)
    posts = await shared.tenant.claim()

    assert (await shared.group())["next_allowed_at"] > gate
    assert len(posts) >= 1


async def test_after_a_post_the_next_slot_is_the_replies(shared: Bot) -> None:
    assert await shared.tenant.claim()
    gate = (await shared.group())["next_allowed_at"]
    taken = await shared.take()
    await opens(shared, timedelta(milliseconds=30))

    committed = await shared.decide(*taken)

    [slot] = [row["slot_at"] for row in committed if row["slot_at"]]
    assert slot >= gate  # later where this process was late


async def test_a_slot_that_no_post_takes_is_the_replies(shared: Bot) -> None:
    taken = await shared.take()
    committed = await shared.decide(*taken)
    waiting = [one for one, row in zip(taken, committed, strict=True) if row["slot_at"] is None]
    await opens(shared, timedelta(milliseconds=-25))

    slots = await shared.slots(*waiting)

    assert [slot["taken"] for slot in slots].count(True) == 1


async def test_without_posts_a_reply_takes_every_slot(bot: Bot) -> None:
    await bot.tenant.group(20, "bot", "max")
    for chat in "ab":
        await bot.arrive(chat)
    first, second = await bot.take()
    await bot.decide(first)
    await opens(bot, timedelta(milliseconds=30))

    [committed] = await bot.decide(second)

    assert committed["slot_at"] is not None


async def test_one_call_takes_slots_in_many_workspaces(bot: Bot) -> None:
    """The same chat in both: each by its own group."""
    other = await Bot.create(await Tenant.create(bot.db), rate=5)
    mine, theirs = await bot.answer(), await other.answer()
    foreign = {**theirs, "lease_token": mine["lease_token"]}
    before = (await other.group())["next_allowed_at"]

    found = await slots_across((bot, mine), (other, foreign), (other, theirs))

    assert [(row["nth"], row["taken"]) for row in found] == [(1, True), (3, False)]
    assert (await other.group())["next_allowed_at"] == before


async def test_one_commit_has_turns_of_many_workspaces(bot: Bot) -> None:
    """A bot that is paused meanwhile, and one that lost its chat, hold up no other."""
    others = [await Bot.create(await Tenant.create(bot.db)) for _ in range(2)]
    bots = [bot, *others]
    taken = []
    for one in bots:
        await one.arrive()
        taken += await one.take()
    await bot.db.execute("UPDATE workspaces SET status = 'paused' WHERE workspace_id = $1", others[0].workspace)
    await bot.db.execute("UPDATE bot_chats SET lease_token = new_id() WHERE workspace_id = $1", others[1].workspace)

    committed = await commit_across(*zip(bots, taken, strict=True))

    assert [row["verdict"] for row in committed] == ["committed", "held", "stale"]
    assert [len(await one.logs()) for one in bots] == [1, 1, 0]


async def test_one_take_has_chats_of_many_workspaces(bot: Bot) -> None:
    others = [await Bot.create(await Tenant.create(bot.db)) for _ in range(2)]
    for one in (bot, *others):
        for chat in "abc":
            await one.arrive(chat)
    await bot.db.execute("UPDATE workspaces SET status = 'paused' WHERE workspace_id = $1", others[1].workspace)

    rows = await bot.db.fetch(
        "SELECT workspace_id, chat_id FROM take_chats_across($1, $2)",
        [bot.workspace, others[0].workspace, others[1].workspace],
        [2, 1, 3],
    )

    assert sorted(map(tuple, rows)) == sorted([(bot.workspace, "a"), (bot.workspace, "b"), (others[0].workspace, "a")])


async def opens(bot: Bot, before: timedelta = timedelta()) -> None:
    """Wait until so long before the group's next slot, on the clock of the database."""
    await bot.db.execute(
        "SELECT pg_sleep(greatest(0, extract(epoch FROM next_allowed_at - $2::interval - clock_timestamp()))) "
        "FROM platform_limits WHERE workspace_id = $1",
        *(bot.workspace, before),
    )


async def slots_across(*calls: tuple[Bot, Any]) -> list[Any]:
    return await calls[0][0].db.fetch(
        "SELECT * FROM take_reply_slots($1, $2, $3, $4, $5)",
        [bot.workspace for bot, _ in calls],
        [taken["chat_id"] for _, taken in calls],
        [taken["lease_token"] for _, taken in calls],
        [False] * len(calls),
        [None] * len(calls),
    )


async def commit_across(*turns: tuple[Bot, Any]) -> list[Any]:
    document = [turn(taken) | {"workspace_id": str(bot.workspace)} for bot, taken in turns]
    return await turns[0][0].db.fetch("SELECT * FROM commit_turns_across($1) ORDER BY nth", json.dumps(document))
