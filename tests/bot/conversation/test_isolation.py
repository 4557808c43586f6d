"""One odd update, one odd answer, one row that the database refuses: the bot goes on, and all others are served."""

import asyncio
import json
from typing import Any
from uuid import uuid4

import nats
from autopost_bot.conversation.schedule import ChatSchedule
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.subjects import Topology
from autopost_runtime.config.load import ServiceConfig
from autopost_runtime.nats.bus import ensure_streams, open_bus
from bot.support.answering import PLENTY, TOKEN, Shop, configured, running_bot
from db.support.bots import Bot
from db.support.builders import Tenant
from harness.databases import Database
from harness.eventually import eventually
from harness.odd_answers import ODD_ANSWERS, odd_max

BODIES: dict[str, Any] = {
    "nothing": None,
    "a list": [1, [], {}],
    "words": "ping",
    "lists for objects": {"message": [], "callback": []},
    "numbers for words": {"message": {"body": {"text": 5, "attachments": {"type": []}}}},
    "odd attachments": {
        "message": {"body": {"text": "ping", "attachments": [1, None, {"type": {}}, {"type": "x" * 9000}]}}
    },
    "odd characters": {"message": {"body": {"text": "\ufeff\u202e\u200dping\ud7ff" + "\u0301" * 3000}}},
    "endless words": {"message": {"body": {"text": "ping " * 50_000}}},
    "deep": json.loads('{"message":' * 400 + "1" + "}" * 400),
    "a huge number": {"message": {"body": {"text": "ping"}, "timestamp": 10**300}},
}


async def test_an_update_of_any_shape_ends_and_every_other_chat_is_answered(database: Database, shop: Shop) -> None:
    odd, other = (str(7_000 + number) for number in range(2))
    await shop.open(2)
    await shop.rule("ping", "pong")
    for name, body in BODIES.items():
        for kind in ("message_created", "message_callback", "bot_started"):
            await shop.bot.arrive(odd, key=f"{kind} {name}", body=body, kind=kind)

    async with running_bot(configured(database.url, shop.simulator)) as service:
        await shop.bot.arrive(other, text="ping")
        await shop.settle(1 + 3 * len(BODIES))
        is_running = not service.stopping.is_set()

    assert (await shop.said(other), is_running) == (["pong"], True)
    assert await shop.db.fetchval("SELECT count(*) FROM set_aside") == 0


async def test_an_odd_answer_ends_its_reply_and_takes_nobody_along(database: Database, shop: Shop) -> None:
    """Each in a workspace of its own: a wait that a platform names holds for all chats of a bot."""
    await shop.rule("ping", "pong")
    bots = {name: await Bot.create(await Tenant.create(shop.db)) for name in ODD_ANSWERS}
    chats = {name: str(8_000 + number) for number, name in enumerate(ODD_ANSWERS)}
    await shop.db.execute(
        "UPDATE bot_settings SET texts = (SELECT texts FROM bot_settings WHERE texts <> '{}' LIMIT 1)"
    )
    for name, bot in bots.items():
        await bot.arrive(chats[name], kind="bot_started")

    async with (
        odd_max({chats[name]: answer for name, answer in ODD_ANSWERS.items()}, TOKEN) as url,
        running_bot(configured(database.url, url)) as service,
    ):
        await eventually(lambda: _has_attempts(shop, len(bots)), within=PLENTY)
        await shop.bot.arrive("7", text="ping")
        await eventually(lambda: _is_sent(shop.bot, "7"), within=PLENTY)
        is_running = not service.stopping.is_set()

    replies = {name: await bot.reply(chats[name]) for name, bot in bots.items()}
    ends = {name: _end(reply) for name, reply in replies.items()}
    assert is_running
    assert ends == {
        "a NUL in the id": "sent",
        "a lone surrogate in the id": "sent",
        "an endless id": "sent",
        "an endless number": "sent",
        "a wait of 2e13 seconds": "waits",
        "a wait of nine digits": "waits",
        "900 KB of words": "failed",
        "NULs in words": "failed",
        "lists for words": "failed",
        "a deep answer": "waits",
    }
    assert await shop.db.fetchval("SELECT count(*) FROM set_aside") == 0


async def _has_attempts(shop: Shop, count: int) -> bool:
    query = (
        "SELECT count(*) FROM bot_outbox o JOIN bot_chats c USING (workspace_id, chat_id) "
        "WHERE (o.sent_at IS NOT NULL OR o.last_error IS NOT NULL) AND c.lease_token IS NULL"
    )
    return bool(await shop.db.fetchval(query) == count)


async def _is_sent(bot: Bot, chat: str) -> bool:
    query = "SELECT count(*) FROM bot_outbox WHERE (workspace_id, chat_id) = ($1, $2) AND sent_at IS NOT NULL"
    return bool(await bot.db.fetchval(query, bot.workspace, chat))


def _end(reply: Any) -> str:
    if reply["sent_at"] is not None:
        return "sent"
    return "failed" if reply["failed_at"] is not None else "waits"


async def _break(database: Database, table: str, event: str, when: str) -> None:
    """Something about these rows makes every write of them fail."""
    await database.pool.execute(
        f"CREATE FUNCTION trip() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF {when} THEN RAISE numeric_value_out_of_range; END IF; RETURN NEW; END $$; "
        f"CREATE TRIGGER trip BEFORE {event} ON {table} FOR EACH ROW EXECUTE FUNCTION trip()"
    )


async def test_a_turn_that_the_database_refuses_keeps_no_other_from_its_answer(database: Database, shop: Shop) -> None:
    odd, other = await shop.open(2)
    await shop.rule("ping", "pong")
    await _break(database, "bot_logs", "INSERT", f"NEW.chat_id = '{odd}'")
    await shop.bot.arrive(odd, text="ping")
    await shop.bot.arrive(other, text="ping")

    async with running_bot(configured(database.url, shop.simulator)) as service:
        await eventually(lambda: _is_sent(shop.bot, other), within=PLENTY)
        is_running = not service.stopping.is_set()

    assert (await shop.said(other), await shop.said(odd), is_running) == (["pong"], [], True)


async def test_a_reply_that_cannot_be_recorded_keeps_no_other_from_being_recorded(
    database: Database, shop: Shop
) -> None:
    odd, *others = await shop.open(4)
    await shop.rule("ping", "pong")
    await _break(database, "bot_outbox", "UPDATE", f"NEW.chat_id = '{odd}' AND NEW.sent_at IS NOT NULL")
    for chat in (odd, *others):
        await shop.bot.arrive(chat, text="ping")

    async with running_bot(configured(database.url, shop.simulator)) as service:
        for chat in others:
            await eventually(lambda chat=chat: _is_sent(shop.bot, chat), within=PLENTY)  # type: ignore[misc]
        is_running = not service.stopping.is_set()

    assert [await shop.said(chat) for chat in (odd, *others)] == [["pong"]] * 4
    assert is_running
    assert not await _is_sent(shop.bot, odd)


async def test_a_malformed_wakeup_keeps_no_other_from_being_heard(nats_url: str, nats_namespace: str) -> None:
    topology, schedule = Topology(nats_namespace), ChatSchedule()
    await ensure_streams(nats_url, topology)
    config = ServiceConfig(
        database_url="postgresql://nobody@127.0.0.1:1/none", nats_url=nats_url, nats_namespace=nats_namespace
    )
    workspace = WorkspaceId(uuid4())
    client = await nats.connect(nats_url)
    try:
        async with open_bus(config, "test") as bus:
            hearing = asyncio.create_task(bus.wakeups(topology.bot_wakeups, schedule.on_wakeup))
            for token in ("nobody", "0", "drop_table", "ы", uuid4().hex[:-1]):
                await client.publish(topology.subject(f"wakeup.bot.{token}"), b"\x00\xff not what anybody meant")
            await client.publish(topology.wakeup_bot(workspace), b"{" * 1000)
            async with asyncio.timeout(20):
                heard = await schedule.next_batch(1)
            is_hearing = not hearing.done()
    finally:
        await client.close()
    await asyncio.wait([hearing], timeout=5)

    assert (heard, is_hearing) == ([workspace], True)
