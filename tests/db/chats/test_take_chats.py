"""One worker has a chat, and gets its updates in the order of the provider; a reply goes before any update."""

import asyncio
import json
from datetime import timedelta

from db.support.bots import Bot, outcome, transient
from db.support.builders import Tenant


async def test_of_many_workers_one_gets_the_chat(bot: Bot) -> None:
    await bot.arrive()

    taken = await asyncio.gather(*(bot.take() for _ in range(8)))

    assert [len(chats) for chats in taken].count(1) == 1
    assert sum(map(len, taken)) == 1


async def test_updates_come_in_the_order_of_the_provider(bot: Bot) -> None:
    await bot.arrive(key="late", ms=3000)
    await bot.arrive(key="first", ms=1000)
    await bot.arrive(key="third", ms=2000, seq=2)
    await bot.arrive(key="second", ms=2000, seq=1)

    [taken] = await bot.take(each=10)

    assert [update["key"] for update in taken["updates"]] == ["first", "second", "third", "late"]


async def test_each_take_gives_as_many_as_asked_and_the_rest_afterwards(bot: Bot) -> None:
    first, second, third = 1_700_000_000_000, 1_700_000_001_000, 1_700_000_002_000
    by_time = {ms: await bot.arrive(ms=ms) for ms in (third, first, second)}
    keys = [by_time[ms] for ms in (first, second, third)]
    handled = []
    for _ in range(3):
        [taken] = await bot.take()
        handled += [update["key"] for update in taken["updates"]]
        [committed] = await bot.decide(taken, reply=None)
        assert committed["verdict"] == "silent"

    assert handled == keys
    assert await bot.take() == []


async def test_twenty_quick_messages_walk_through_twenty_steps(bot: Bot) -> None:
    """Three workers at once: each reads the state under the lease, so none sees the same step."""
    for _ in range(20):
        await bot.arrive()

    async def work() -> None:
        while len(await bot.logs()) < 20:
            for taken in await bot.take():
                step = taken["context"].get("step", 0)
                following = {"state": "walking", "context": {"turns": 0, "step": step + 1}, "expires_in": None}
                [committed] = await bot.decide(taken, next=following)
                if committed["verdict"] == "committed":
                    await bot.end(outcome(taken))

    await asyncio.gather(work(), work(), work())

    assert (await bot.take(), len(await bot.logs())) == ([], 20)
    context = await bot.db.fetchval("SELECT context ->> 'step' FROM bot_state")
    assert context == "20"


async def test_a_reply_that_waits_goes_before_the_next_update(bot: Bot) -> None:
    first = await bot.answer()
    await bot.arrive(key="next")
    await bot.end(transient(first))
    assert await bot.take() == []  # the reply is due later, and the update after it
    await bot.due()

    [taken] = await bot.take()

    assert taken["updates"] is None
    assert taken["reply"]["key"] != "next"
    assert (taken["reply"]["attempt"], taken["reply"]["maybe_sent"]) == (1, False)


async def test_what_was_being_sent_when_the_lease_ended_perhaps_arrived(bot: Bot) -> None:
    await bot.answer()
    await bot.expire()

    [again] = await bot.take()

    assert again["reply"]["maybe_sent"]
    await bot.expire()  # it dies again, before its first call
    [again] = await bot.take()
    assert (again["reply"]["maybe_sent"], again["reply"]["attempt"]) == (True, 1)


async def test_an_earlier_reply_with_the_same_text_is_not_this_one(bot: Bot) -> None:
    first = await bot.answer()
    await bot.end(outcome(first, provider_message_id="mid.1", parts=[["mid.0"], ["mid.1"]]))
    await bot.answer()
    await bot.expire()

    [again] = await bot.take()

    assert sorted(again["reply"]["sent_ids"]) == ["mid.0", "mid.1"]


async def test_a_reply_is_not_tried_for_ever_by_workers_that_die(bot: Bot) -> None:
    await bot.answer()
    for _ in range(4):
        await bot.expire()
        [again] = await bot.take()
        [slot] = await bot.slots(again)
        assert slot["taken"]
    assert slot["attempt"] == 5
    await bot.arrive(key="next")
    await bot.expire()

    [taken] = await bot.take()

    assert [update["key"] for update in taken["updates"]] == ["next"]
    assert [event["what"] for event in await bot.tenant.events()] == ["bot_reply_failed"]


async def test_takes_count_what_was_not_committed(bot: Bot) -> None:
    await bot.arrive()
    for expected in (1, 2, 3):
        [taken] = await bot.take()
        assert taken["takes"] == expected
        await bot.expire()

    [taken] = await bot.take()
    await bot.decide(taken, reply=None)
    await bot.arrive()
    [taken] = await bot.take()
    assert taken["takes"] == 1


async def test_chats_that_were_lost_together_come_back_one_at_a_time(bot: Bot) -> None:
    """One of them may be what the worker died of: the others must not be taken for poison with it."""
    for chat in "abc":
        await bot.arrive(chat)
    await bot.take()
    await bot.expire()
    await bot.arrive("fresh")

    taken = [{one["chat_id"]: one["takes"] for one in await bot.take()} for _ in range(3)]

    assert taken == [{"a": 2, "fresh": 1}, {"b": 2}, {"c": 2}]


async def test_a_paused_workspace_hands_out_nothing_and_all_of_it_afterwards(bot: Bot) -> None:
    keys = [await bot.arrive() for _ in range(3)]
    await bot.db.execute("UPDATE workspaces SET status = 'paused'")
    assert (await bot.take(), await bot.db.fetch("SELECT * FROM due_bot_workspaces()")) == ([], [])

    await bot.db.execute("UPDATE workspaces SET status = 'active'")

    [taken] = await bot.take(each=10)
    assert [update["key"] for update in taken["updates"]] == keys


async def test_a_bot_that_is_off_takes_nothing(bot: Bot) -> None:
    await bot.arrive()
    await bot.db.execute("UPDATE bot_settings SET enabled = false")

    assert await bot.take() == []


async def test_the_workspace_that_waits_longest_comes_first(bot: Bot) -> None:
    other = await Bot.create(await Tenant.create(bot.db))
    await bot.arrive()
    await other.arrive()
    await bot.take(1)
    await bot.expire()
    await bot.arrive("8")

    due = await bot.db.fetch("SELECT * FROM due_bot_workspaces()")

    assert [row["workspace_id"] for row in due] == [other.workspace, bot.workspace]


async def test_chats_that_are_taken_make_no_workspace_due(bot: Bot) -> None:
    await bot.arrive()
    await bot.take()
    await bot.arrive()  # while it is taken

    assert await bot.db.fetch("SELECT * FROM due_bot_workspaces()") == []


async def test_a_change_of_the_rules_is_seen_by_the_next_take(bot: Bot) -> None:
    await bot.arrive()
    [before] = await bot.take()
    await bot.expire()
    await bot.db.execute("UPDATE bot_settings SET max_turns = 6")

    [after] = await bot.take()

    assert after["rules_seq"] == before["rules_seq"] + 1


async def test_what_is_given_back_is_due_at_once_and_was_no_take(bot: Bot) -> None:
    await bot.arrive()
    [taken] = await bot.take()

    given = await bot.db.fetchval(
        "SELECT release_chats($1, $2, $3)", bot.workspace, [taken["chat_id"]], [taken["lease_token"]]
    )

    [again] = await bot.take()
    assert (given, again["takes"]) == (1, 1)


async def test_a_lease_is_renewed_only_for_who_has_it(bot: Bot) -> None:
    await bot.arrive()
    [first] = await bot.take(lease=timedelta(seconds=5))
    query = "SELECT * FROM renew_chats($1, $2, $3)"
    renewed = await bot.db.fetch(query, bot.workspace, ["7"], [first["lease_token"]])
    await bot.expire()
    await bot.take()

    lost = await bot.db.fetch(query, bot.workspace, ["7"], [first["lease_token"]])

    assert ([row[0] for row in renewed], lost) == (["7"], [])


async def test_many_idle_chats_and_a_paused_workspace_cost_nothing(bot: Bot) -> None:
    paused = await Bot.create(await Tenant.create(bot.db))
    await bot.db.execute(
        "INSERT INTO bot_chats (workspace_id, chat_id, due_at) "
        "SELECT $1, n::text, now() FROM generate_series(1, 20000) AS n",
        paused.workspace,
    )
    await bot.db.execute("UPDATE workspaces SET status = 'paused' WHERE workspace_id = $1", paused.workspace)
    await bot.db.execute(
        "INSERT INTO bot_chats (workspace_id, chat_id) SELECT $1, n::text FROM generate_series(1, 20000) AS n",
        bot.workspace,
    )
    await bot.db.execute("VACUUM ANALYZE bot_chats")
    await bot.arrive("a")
    async with bot.db.acquire() as connection:
        await connection.fetch("SELECT * FROM due_bot_workspaces()")  # its catalog is read
        plan = await connection.fetchval("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM due_bot_workspaces()")

    top = json.loads(plan)[0]["Plan"]
    assert top["Shared Hit Blocks"] + top["Shared Read Blocks"] < 60
