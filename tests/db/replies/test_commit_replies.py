"""How a reply ended: sent, tried again, or refused for good; then the chat goes on."""

import asyncio
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from db.support.bots import Bot, outcome, permanent, transient
from db.support.builders import Tenant

STUCK = "SELECT count(*) FROM stuck_bot_replies('0 seconds')"


async def test_what_was_sent_says_so_once(bot: Bot) -> None:
    taken = await bot.answer()

    [committed] = await bot.end(outcome(taken))

    assert (committed["verdict"], committed["seq"], committed["more"]) == ("committed", 2, False)
    reply = await bot.reply()
    assert reply["sent_at"] is not None
    assert (reply["provider_message_id"], reply["response"]["progress"]) == ("mid.out", [["mid.out"]])
    assert [event["what"] for event in await bot.tenant.events()] == ["bot_replied"]
    assert await bot.take() == []


async def test_an_old_token_changes_nothing(bot: Bot) -> None:
    taken = await bot.answer()
    await bot.expire()
    [again] = await bot.take()

    [stale] = await bot.end(outcome(taken))

    assert stale["verdict"] == "stale"
    assert (await bot.reply())["sent_at"] is None
    [committed] = await bot.end(outcome(again))
    assert committed["verdict"] == "committed"


async def test_a_transient_failure_is_tried_again_after_the_usual_wait(bot: Bot) -> None:
    taken = await bot.answer()

    await bot.end(transient(taken, ambiguous=True))

    wait = await bot.db.fetchval("SELECT next_attempt_at - clock_timestamp() FROM bot_outbox")
    assert timedelta(seconds=1.5) < wait <= timedelta(seconds=2)
    assert await bot.take() == []
    await bot.due()
    [again] = await bot.take()
    assert (again["reply"]["attempt"], again["reply"]["maybe_sent"]) == (1, True)


async def test_the_fifth_failure_is_the_last(bot: Bot) -> None:
    taken = await bot.answer()
    for _ in range(4):
        await bot.end(transient(taken, scope="delivery"))
        await bot.due()
        [taken] = await bot.take()
        await bot.slots(taken)
    await bot.arrive(key="next")

    [committed] = await bot.end(transient(taken, scope="delivery"))

    assert (committed["failed"], committed["more"]) == (True, True)
    assert (await bot.reply())["failed_at"] is not None
    [following] = await bot.take()
    assert [update["key"] for update in following["updates"]] == ["next"]


async def test_a_customer_who_stopped_the_bot_ends_the_reply_for_good(bot: Bot) -> None:
    taken = await bot.answer()

    [committed] = await bot.end(permanent(taken, "chat_denied"))

    assert committed["failed"]
    assert (await bot.chat())["stopped_at"] is not None
    assert await bot.db.fetchval(STUCK) == 0
    assert await bot.take() == []
    assert [event["what"] for event in await bot.tenant.events()] == ["bot_reply_failed"]


async def test_given_back_costs_no_attempt(bot: Bot) -> None:
    taken = await bot.answer()

    await bot.end(outcome(taken, "released"))

    [again] = await bot.take()
    assert (again["reply"]["attempt"], again["reply"]["maybe_sent"]) == (0, False)


async def test_given_back_for_a_time_is_not_due_before(bot: Bot) -> None:
    taken = await bot.answer()

    await bot.end(outcome(taken, "released", retry_after_ms=60_000))

    assert await bot.take() == []


async def test_a_cooldown_is_everybodys(bot: Bot) -> None:
    await bot.tenant.group(20, "bot", "max")
    taken = await bot.answer()

    await bot.end(transient(taken, "rate_limited", retry_after_ms=60_000, answered=True))

    gate = await bot.db.fetchval("SELECT next_allowed_at - clock_timestamp() FROM platform_limits")
    assert timedelta(seconds=55) < gate <= timedelta(seconds=60)
    await bot.tenant.channel(platform="max")
    await bot.tenant.enqueue()
    assert await bot.tenant.claim() == []


async def test_three_replies_without_an_answer_open_the_circuit_of_posts(bot: Bot) -> None:
    for chat in "abc":
        await bot.end(transient(await bot.answer(chat)))

    assert (await bot.group())["state"] == "open"
    await bot.tenant.channel(platform="max")
    await bot.tenant.enqueue()
    assert await bot.tenant.claim() == []
    assert (await bot.tenant.events())[0]["what"] == "group_opened"


async def test_while_the_circuit_is_open_replies_wait_and_burn_no_attempt(bot: Bot) -> None:
    await bot.arrive("waits")
    [waiting] = await bot.take()
    await open_circuit(bot)

    [held] = await bot.decide(waiting)
    await bot.arrive("new")

    assert held["verdict"] == "held"
    assert (await bot.reply("waits"))["attempt"] == 0
    assert (await bot.take(), await bot.db.fetch("SELECT * FROM due_bot_workspaces()")) == ([], [])


async def test_a_reply_in_hand_gets_no_slot_while_the_circuit_is_open(bot: Bot) -> None:
    taken = await bot.answer()
    await open_circuit(bot)

    [slot] = await bot.slots(taken)

    assert not slot["taken"]
    assert slot["wait"] > timedelta(seconds=5)


async def test_one_reply_tries_a_platform_that_is_back(bot: Bot) -> None:
    for chat in "abc":
        await bot.arrive(chat)
    await half_open(bot)

    [taken] = await bot.take()
    [other] = await bot.take()  # nothing is decided yet, so this may become the trial as well
    [committed] = await bot.decide(taken)
    assert [row["verdict"] for row in await bot.decide(other)] == ["held"]
    assert committed["verdict"] == "committed"
    assert (await bot.group())["trial"] == committed["reply_id"]
    assert await bot.take() == []

    await bot.end(outcome(taken))

    assert (await bot.group())["state"] == "closed"
    assert len(await bot.take()) == 2


async def test_a_trial_whose_worker_died_opens_the_circuit_again(bot: Bot) -> None:
    await bot.arrive()
    await half_open(bot)
    [taken] = await bot.take()
    await bot.decide(taken)
    await probes(bot)
    assert (await bot.group())["state"] == "half"

    await bot.expire()
    await probes(bot)

    assert (await bot.group())["state"] == "open"


async def test_a_group_without_channels_is_probed_with_the_token_of_its_bot(bot: Bot) -> None:
    await open_circuit(bot)
    await bot.db.execute("UPDATE platform_limits SET probe_at = now() - interval '1 second'")

    [probe] = await probes(bot)

    assert probe["auth_ref"] == "bot"


@pytest.mark.parametrize("first", ["store", "commit"])
async def test_an_update_that_is_stored_during_the_commit_is_not_lost(bot: Bot, first: str) -> None:
    """Both ways round: whoever comes second sees what the first has done."""
    taken = await bot.answer()
    async with bot.db.acquire() as connection, connection.transaction():
        ahead, behind = bot.on(connection), bot
        if first == "store":
            await ahead.arrive()
            task: asyncio.Task[Any] = asyncio.create_task(behind.end(outcome(taken)))
        else:
            await ahead.end(outcome(taken))
            task = asyncio.create_task(behind.arrive())
        await blocked(bot)
    await task

    assert [one["chat_id"] for one in await bot.take()] == ["7"]


async def test_parts_are_recorded_in_their_order_and_only_by_who_has_the_chat(bot: Bot) -> None:
    taken = await bot.answer()
    query = "SELECT record_reply_part($1, $2, $3, $4, $5)"

    async def record(part: int, ids: list[str], token: Any = taken["lease_token"]) -> bool:
        return bool(await bot.db.fetchval(query, bot.workspace, "7", token, part, ids))

    assert not await record(1, ["b"])
    assert await record(0, ["a"])
    assert await record(0, ["a"])  # its answer was lost
    assert await record(1, ["b"])
    assert (await bot.reply())["response"]["progress"] == [["a"], ["b"]]
    await bot.expire()
    [again] = await bot.take()
    assert again["reply"]["progress"] == [["a"], ["b"]]
    assert not await record(2, ["c"])


async def test_no_event_names_the_chat(bot: Bot) -> None:
    for end in (outcome, transient, permanent):
        taken = await bot.answer("79991234567")
        await bot.end(end(taken, message="no chat 79991234567"))  # type: ignore[operator]
        await bot.due()
        for again in await bot.take():
            await bot.end(permanent(again, message="no chat 79991234567"))

    stored = await bot.db.fetch("SELECT meta::text || coalesce(error::text, '') FROM events")
    assert stored
    assert not [row[0] for row in stored if "79991234567" in row[0]]


async def test_an_unknown_result_is_refused(bot: Bot) -> None:
    taken = await bot.answer()

    with pytest.raises(asyncpg.PostgresError) as refused:
        await bot.end(outcome(taken, "perhaps"))

    assert refused.value.sqlstate == "AP001"


async def test_other_tenants_with_the_same_chat_are_not_touched(bot: Bot) -> None:
    other = await Bot.create(await Tenant.create(bot.db))
    mine, theirs = await bot.answer(), await other.answer()

    [foreign] = await bot.end(outcome({**mine, "lease_token": theirs["lease_token"]}))

    assert foreign["verdict"] == "stale"
    [committed] = await bot.end(outcome(mine))
    assert committed["verdict"] == "committed"
    assert (await other.reply())["sent_at"] is None


async def open_circuit(bot: Bot) -> None:
    await bot.db.execute(
        "UPDATE platform_limits SET circuit = 'open', opened_at = now(), probe_at = now() + interval '1 hour'"
    )


async def half_open(bot: Bot) -> None:
    await bot.db.execute(
        "UPDATE platform_limits SET circuit = 'half', opened_at = now(), probe_at = now() + interval '1 hour'"
    )


async def probes(bot: Bot) -> list[Any]:
    return await bot.db.fetch("SELECT * FROM take_probes()")


async def blocked(bot: Bot) -> None:
    waiting: Any = 0
    while not waiting:
        waiting = await bot.db.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
