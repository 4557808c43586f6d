"""An update goes into the inbox once, within the rate of its endpoint, unless the workspace is disabled."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from db.support.builders import Tenant
from db.support.senders import Sender, make_sender
from db.support.shop_bot import make_bot
from harness.eventually import eventually


async def store(sender: Sender, key: str = "mid.1", **fields: Any) -> dict[str, Any]:
    update = {
        "provider": "max",
        "chat_id": "7",
        "key": key,
        "kind": "message_created",
        "answer": True,
        "body": {},
        "user_id": "9",
        "chat_type": "dialog",
        "provider_ts": 1_000,
    }
    query = "SELECT store_bot_update($1, $2, $3)"
    given = json.dumps({**update, "trace_id": "t", **fields})
    answer: dict[str, Any] = json.loads(
        await sender.tenant.db.fetchval(query, sender.tenant.workspace, sender.endpoint, given)
    )
    return answer


async def test_of_twenty_copies_one_is_stored(tenant: Tenant) -> None:
    await make_bot(tenant)
    sender = await make_sender(tenant)

    verdicts = [answer["verdict"] for answer in await asyncio.gather(*(store(sender) for _ in range(20)))]

    assert (verdicts.count("stored"), verdicts.count("duplicate")) == (1, 19)
    assert await tenant.count("bot_inbox") == 1
    assert {event["what"] for event in await tenant.events()} == {"ingress_dedup_dropped"}


async def test_a_time_that_is_still_to_come_is_taken_as_now(tenant: Tenant) -> None:
    sender = await make_sender(tenant)

    await store(sender, provider_ts=2**53)

    now = datetime.now(UTC).timestamp() * 1000
    assert now - 600_000 < await tenant.db.fetchval("SELECT provider_ts FROM bot_inbox") < now + 600_000


async def test_the_same_key_in_another_chat_is_another_update(tenant: Tenant) -> None:
    sender = await make_sender(tenant)

    verdicts = [(await store(sender, chat_id=chat))["verdict"] for chat in ("7", "8")]

    assert verdicts == ["stored", "stored"]


async def test_an_endpoint_that_is_gone_stores_nothing(tenant: Tenant) -> None:
    sender = await make_sender(tenant)
    await tenant.db.execute("DELETE FROM workspace_endpoints WHERE endpoint_id = $1", sender.endpoint)

    assert (await store(sender))["verdict"] == "endpoint_disabled"
    assert await tenant.count("bot_inbox") == 0


async def test_what_is_over_the_rate_is_not_stored_and_told_how_long_to_wait(tenant: Tenant) -> None:
    await make_bot(tenant)
    sender = await make_sender(tenant, rate=0.01)
    await store(sender, "mid.1")

    refused = await store(sender, "mid.2")

    assert refused["verdict"] == "rate_limited"
    assert 0 < refused["retry_after_ms"] <= 100_000
    assert await tenant.count("bot_inbox") == 1
    assert [event["what"] for event in await tenant.events()] == ["ingress_rate_limited"]
    assert await sender.runs() == [{"rate_limited": 1}]


async def test_a_paused_workspace_stores_and_a_disabled_one_does_not(tenant: Tenant) -> None:
    sender = await make_sender(tenant)
    verdicts = []
    for status in ("paused", "disabled"):
        await tenant.db.execute("UPDATE workspaces SET status = $1", status)
        verdicts.append((await store(sender, status))["verdict"])

    assert verdicts == ["stored", "workspace_disabled"]
    assert await tenant.count("bot_inbox") == 1


@pytest.fixture
async def bot(tenant: Tenant) -> Sender:
    """The webhook of a tenant whose bot answers."""
    await make_bot(tenant)
    return await make_sender(tenant)


async def inbox(sender: Sender) -> list[asyncpg.Record]:
    return await sender.tenant.db.fetch("SELECT * FROM bot_inbox ORDER BY ts")


async def chat(sender: Sender, chat_id: str = "7") -> asyncpg.Record:
    row = await sender.tenant.db.fetchrow("SELECT * FROM bot_chats WHERE chat_id = $1", chat_id)
    assert row is not None
    return row


async def ignored(sender: Sender) -> list[str | None]:
    return [row["ignored"] for row in await inbox(sender)]


async def test_what_the_bot_answers_is_due_in_its_chat(bot: Sender) -> None:
    answer = await store(bot, provider_seq="18446744073709551615")

    [row] = await inbox(bot)
    assert (answer["verdict"], answer["answer"], answer["chat_id"], answer["seq"]) == ("stored", True, "7", 1)
    assert (row["user_id"], row["chat_type"], row["provider_ts"]) == ("9", "dialog", 1_000)
    assert (row["provider_seq"], row["ignored"], row["processed_at"]) == (2**64 - 1, None, None)
    due = await chat(bot)
    assert (due["user_id"], due["chat_type"]) == ("9", "dialog")
    assert due["due_at"] <= datetime.now(UTC) + timedelta(seconds=5)


async def test_a_chat_that_is_due_already_is_not_put_off(bot: Sender) -> None:
    await store(bot, "mid.1")
    before = await chat(bot)
    await store(bot, "mid.2")

    assert (await chat(bot))["due_at"] == before["due_at"]


async def test_a_chat_that_waits_for_a_retry_is_due_when_the_customer_writes(bot: Sender) -> None:
    await store(bot, "mid.1")
    await bot.tenant.db.execute("UPDATE bot_chats SET due_at = now() + interval '1 hour'")

    await store(bot, "mid.2")

    assert (await chat(bot))["due_at"] <= datetime.now(UTC) + timedelta(seconds=5)


async def test_without_a_time_of_the_provider_the_arrival_is_the_time(bot: Sender) -> None:
    before = datetime.now(UTC)

    await store(bot, provider_ts=None)

    [row] = await inbox(bot)
    assert abs(row["provider_ts"] - before.timestamp() * 1000) < 60_000


async def test_a_press_without_its_message_belongs_to_the_dialog_of_the_person(bot: Sender) -> None:
    """MAX sends message: null where the message is gone. Two chats would be two conversations with one customer."""
    await store(bot, "mid.1")

    answer = await store(bot, "cb:k:5", chat_id="user:9", kind="message_callback", chat_type=None)

    assert (answer["chat_id"], answer["answer"]) == ("7", True)
    assert [row["chat_id"] for row in await inbox(bot)] == ["7", "7"]
    assert await bot.tenant.count("bot_chats") == 1


async def test_the_same_press_twice_is_one_update_also_without_its_message(bot: Sender) -> None:
    await store(bot, "mid.1")
    press = {"chat_id": "user:9", "kind": "message_callback", "chat_type": None}

    verdicts = [(await store(bot, "cb:k:5", **press))["verdict"] for _ in range(2)]

    assert verdicts == ["stored", "duplicate"]


async def test_a_press_of_a_person_who_never_wrote_has_a_chat_of_its_own(bot: Sender) -> None:
    """The adapter addresses the person then."""
    answer = await store(bot, "cb:k:5", chat_id="user:9", kind="message_callback", chat_type=None)

    assert (answer["chat_id"], answer["answer"]) == ("user:9", True)


async def test_a_person_in_a_group_is_not_mistaken_for_their_dialog(bot: Sender) -> None:
    await store(bot, "mid.1", chat_id="-70", chat_type="chat")
    await store(bot, "mid.2", chat_id="7", user_id="9")

    answer = await store(bot, "cb:k:5", chat_id="user:9", kind="message_callback", chat_type=None)

    assert answer["chat_id"] == "7"
    assert (await chat(bot, "-70"))["user_id"] is None


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"is_bot": True}, "bot_sender"),
        ({"chat_id": "-70", "chat_type": "chat"}, "not_a_dialog"),
        ({"chat_id": "-71", "chat_type": "channel"}, "not_a_dialog"),
        ({"kind": "message_edited", "answer": False}, "unknown_kind"),
        ({"chat_id": ""}, "unknown_kind"),
        ({"kind": "bot_stopped", "answer": False}, "stopped"),
    ],
)
async def test_what_nobody_answers_is_stored_as_done_with_the_reason(
    bot: Sender, fields: dict[str, Any], reason: str
) -> None:
    answer = await store(bot, **fields)

    [row] = await inbox(bot)
    assert (answer["verdict"], answer["answer"], row["ignored"]) == ("stored", False, reason)
    assert row["processed_at"] is not None
    assert await bot.tenant.db.fetchval("SELECT count(*) FROM bot_chats WHERE due_at IS NOT NULL") == 0
    assert await bot.tenant.db.fetchval("SELECT coalesce(sum(unanswered), 0) FROM bot_counts()") == 0


@pytest.mark.parametrize("change", ["DELETE FROM bot_settings", "UPDATE bot_settings SET enabled = false"])
async def test_without_a_bot_updates_are_stored_and_nobody_answers(bot: Sender, change: str) -> None:
    await bot.tenant.db.execute(change)

    await store(bot)

    assert await ignored(bot) == ["no_bot"]


async def test_a_group_is_answered_where_the_settings_say_so_but_never_its_bots(bot: Sender) -> None:
    await bot.tenant.db.execute("UPDATE bot_settings SET answer_in = '{dialog,chat}'")
    group = {"chat_id": "-70", "chat_type": "chat"}

    answers = [await store(bot, "mid.1", **group), await store(bot, "mid.2", is_bot=True, **group)]

    assert [answer["answer"] for answer in answers] == [True, False]
    assert await ignored(bot) == [None, "bot_sender"]


async def test_what_is_ignored_leaves_one_event_a_minute_without_the_number_of_the_chat(bot: Sender) -> None:
    for number in range(3):
        await store(bot, f"mid.{number}", chat_id="-70123", chat_type="chat")
    await bot.tenant.db.execute("UPDATE bot_chats SET minute_started_at = now() - interval '2 minutes'")
    await store(bot, "mid.9", chat_id="-70123", chat_type="chat")

    events = await bot.tenant.db.fetch("SELECT meta::text FROM events WHERE action = 'bot_update_ignored'")
    assert len(events) == 2
    assert all("not_a_dialog" in event["meta"] and "70123" not in event["meta"] for event in events)


class TestTooManyUpdatesOfOneChat:
    async def test_are_stored_and_the_chat_is_silent_until_the_minute_is_over(self, bot: Sender) -> None:
        await bot.tenant.db.execute("UPDATE bot_settings SET chat_per_minute = 2")

        answers = [await store(bot, f"mid.{number}") for number in range(4)]
        await bot.tenant.db.execute("UPDATE bot_chats SET minute_started_at = now() - interval '61 seconds'")
        answers.append(await store(bot, "mid.9"))

        assert [answer["verdict"] for answer in answers] == ["stored"] * 5
        assert [answer["answer"] for answer in answers] == [True, True, False, False, True]
        assert await ignored(bot) == [None, None, "chat_flood", "chat_flood", None]
        assert [event["what"] for event in await bot.tenant.events()] == ["bot_update_ignored"]

    async def test_leave_the_first_of_them_to_the_bot_which_says_so_once_in_a_minute(self, bot: Sender) -> None:
        await bot.tenant.db.execute(
            "UPDATE bot_settings SET chat_per_minute = 2, texts = jsonb_build_object('flood', 'Later.')"
        )

        answers = [await store(bot, f"mid.{number}") for number in range(2)]
        await bot.tenant.db.execute("UPDATE bot_chats SET due_at = NULL")  # the bot keeps up
        answers.append(await store(bot, "mid.2"))
        assert (await chat(bot))["due_at"] is not None
        answers += [await store(bot, f"mid.{number}") for number in range(3, 5)]
        await bot.tenant.db.execute("UPDATE bot_chats SET minute_started_at = now() - interval '61 seconds'")
        answers += [await store(bot, f"mid.9{number}") for number in range(4)]

        assert [answer["answer"] for answer in answers] == [*[True] * 3, *[False] * 2, *[True] * 3, False]
        waiting = "SELECT provider_message_id FROM bot_inbox WHERE processed_at IS NULL AND ignored IS NOT NULL"
        rows = await bot.tenant.db.fetch(f"{waiting} ORDER BY ts")
        assert [row[0] for row in rows] == ["mid.2", "mid.92"]

    async def test_do_not_use_up_the_rate_of_the_others(self, tenant: Tenant) -> None:
        """What is over the rate of the endpoint is not stored and comes again in a minute."""
        await make_bot(tenant, chat_per_minute=2)
        bot = await make_sender(tenant, rate=4)

        flood = [await store(bot, f"mid.{number}") for number in range(50)]
        other = [await store(bot, f"mid.{number}", chat_id="8", user_id="10") for number in range(2)]

        assert {answer["verdict"] for answer in flood} == {"stored"}
        assert [(answer["verdict"], answer["answer"]) for answer in other] == [("stored", True)] * 2

    async def test_without_a_limit_all_are_answered(self, bot: Sender) -> None:
        await bot.tenant.db.execute("UPDATE bot_settings SET chat_per_minute = NULL")

        assert all([(await store(bot, f"mid.{number}"))["answer"] for number in range(30)])

    async def test_block_nobody_who_writes_at_the_same_time(self, tenant: Tenant) -> None:
        """Floods, duplicates and others of many chats at once take their locks in one order."""
        await make_bot(tenant, chat_per_minute=3)
        bot = await make_sender(tenant, rate=1000)

        answers = await asyncio.gather(
            *(store(bot, f"mid.{number % 15}", chat_id=str(number % 3)) for number in range(120))
        )

        verdicts = [answer["verdict"] for answer in answers]
        assert (verdicts.count("stored"), verdicts.count("duplicate")) == (15, 105)


class TestACustomerWhoStoppedTheBot:
    async def test_is_known_to_have_stopped_until_they_start_it_again(self, bot: Sender) -> None:
        await store(bot, "stop:1", kind="bot_stopped", answer=False, provider_ts=1_000)
        stopped = await chat(bot)
        await store(bot, "start:2", kind="bot_started", provider_ts=2_000)

        assert stopped["stopped_at"] is not None
        assert (await chat(bot))["stopped_at"] is None
        assert await ignored(bot) == ["stopped", None]

    async def test_has_not_stopped_when_the_start_came_first(self, bot: Sender) -> None:
        """Webhooks may come in any order."""
        await store(bot, "start:2", kind="bot_started", provider_ts=2_000)
        await store(bot, "stop:1", kind="bot_stopped", answer=False, provider_ts=1_000)

        assert (await chat(bot))["stopped_at"] is None

    async def test_has_started_again_when_they_write(self, bot: Sender) -> None:
        """The start may come after the message."""
        await store(bot, "stop:1", kind="bot_stopped", answer=False, provider_ts=1_000)
        await store(bot, "mid.2", provider_ts=2_000)

        assert (await chat(bot))["stopped_at"] is None
        assert await ignored(bot) == ["stopped", None]

    async def test_gets_no_answer_to_what_they_wrote_before(self, bot: Sender) -> None:
        await store(bot, "stop:2", kind="bot_stopped", answer=False, provider_ts=2_000)
        await store(bot, "mid.1", provider_ts=1_000)

        assert (await chat(bot))["stopped_at"] is not None
        assert await ignored(bot) == ["stopped", "stopped"]


async def test_the_same_words_under_two_numbers_are_two_updates(bot: Sender) -> None:
    """The customer really wrote twice."""
    body = {"message": {"body": {"text": "Где мой заказ?"}}}

    answers = [await store(bot, key, body=body) for key in ("mid.1", "mid.2")]

    assert [answer["answer"] for answer in answers] == [True, True]


async def test_one_number_in_two_workspaces_is_two_updates(bot: Sender, tenant: Tenant) -> None:
    other = await Tenant.create(tenant.db)
    await make_bot(other)

    answers = [await store(sender) for sender in (bot, await make_sender(other))]

    assert [(answer["verdict"], answer["answer"], answer["seq"]) for answer in answers] == [("stored", True, 1)] * 2


async def test_an_update_is_seen_by_whoever_waits_for_the_chat(bot: Sender, tenant: Tenant) -> None:
    """Whoever looks for more work under the lock of the chat sees the update or the time: none is lost."""
    await store(bot, "mid.1")
    assert isinstance(tenant.db, asyncpg.Pool)
    async with tenant.db.acquire() as holder:
        async with holder.transaction():
            await holder.execute("SELECT 1 FROM bot_chats FOR NO KEY UPDATE")
            storing = asyncio.create_task(store(bot, "mid.2"))
            await waits_for_a_lock(tenant)
            await holder.execute("UPDATE bot_chats SET due_at = NULL")
        await storing

    assert (await chat(bot))["due_at"] is not None


async def waits_for_a_lock(tenant: Tenant) -> None:
    waiting = "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    await eventually(lambda: tenant.db.fetchval(f"{waiting} AND datname = current_database()"))
