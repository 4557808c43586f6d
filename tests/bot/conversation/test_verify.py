"""`autopost verify` decides the turns of a bot again: quiet on what the bot did, and each planted fault is named."""

import json
from datetime import timedelta
from typing import Any

import pytest
from autopost_contracts.ids import WorkspaceId, chat_token
from bot.support.answering import Shop, configured, running_bot
from bot.support.shop_chat import example_rules
from harness.autopost_command import Autopost, Ran
from harness.databases import Database

TABLES = ("bot_inbox", "bot_logs", "bot_outbox", "bot_state", "bot_rulesets", "bot_chats")
SIGNED = ("--operator", "ann", "--reason", "back from lunch")
PHONE, MAIL = "+79001234567", "ann@people.example"
RETURNS, FAQ, LOST, CANCELLED, HELD, LATE = (str(7_000 + number) for number in range(6))
HANDOFF = """{"mode": "handoff", "hold": "12 hours"}"""


class Told:
    """A shop with a day behind it, and the command."""

    def __init__(self, database: Database, shop: Shop) -> None:
        self.shop = shop
        self.db = shop.db
        self.autopost = Autopost(database.url)
        self.workspace = str(shop.bot.workspace)
        self.turns = 0

    async def verify(self, *words: str) -> Ran:
        return await self.autopost("verify", "--no-stream", "--json", "--workspace", self.workspace, *words)

    async def say(self, chat: str, *texts: str, **fields: Any) -> None:
        for text in texts:
            await self.shop.bot.arrive(chat, text=text, **fields)
        self.turns += len(texts)
        await self.shop.settle(self.turns)

    def token(self, chat: str) -> str:
        return chat_token(WorkspaceId(self.shop.bot.workspace), chat)


async def be_the_shop(shop: Shop) -> None:
    """With the rules and the texts of the seed."""
    document = example_rules()
    for rule in document["rules"]:
        given = {name: json.dumps(value) if isinstance(value, dict | list) else value for name, value in rule.items()}
        given["workspace_id"] = shop.bot.workspace
        places = ", ".join(f"${place}" for place in range(1, len(given) + 1))
        await shop.db.execute(f"INSERT INTO bot_rules ({', '.join(given)}) VALUES ({places})", *given.values())
    settings = document["settings"]
    await shop.db.execute(
        "UPDATE bot_settings SET texts = $1, menu = $2", json.dumps(settings["texts"]), json.dumps(settings["menu"])
    )


@pytest.fixture
async def told(database: Database, shop: Shop) -> Told:
    await shop.open(6)
    await be_the_shop(shop)
    made = Told(database, shop)
    async with running_bot(configured(database.url, shop.simulator)):
        await made.say(RETURNS, "", kind="bot_started")
        await made.say(RETURNS, "Хочу вернуть товар", "не помню", "а самовывоз есть?", "№12345")
        await made.say(RETURNS, f"брак, звоните {PHONE}, пишите {MAIL}")
        await made.say(FAQ, "доставка", "как оплатить?", "доставка")
        await made.say(LOST, "фывафыва", "ячсмячсм", "олджолдж")
        await made.say(CANCELLED, "возврат", "отмена")
        await shop.db.execute("UPDATE bot_settings SET escalation = $1", HANDOFF)
        await made.say(HELD, "фывафыва", "ячсмячсм", "есть кто?")
        released = await made.autopost(
            "bot", "release", made.token(HELD), "--workspace", made.workspace, *SIGNED, "--json"
        )
        assert released.json["verdict"] == "released", released
        made.turns += 1
        await made.say(HELD, "доставка")
        await made.say(LATE, "возврат", ms=1_800_000_000_000)
        await made.say(LATE, "доставка", ms=1_800_000_000_000 - 60_000)
        await made.say(LATE, "фывафыва", ms=1_800_000_000_000 - 50_000)
        await made.say(LATE, "12345", ms=1_800_000_001_000)
    return made


async def test_what_the_bot_did_has_no_differences_and_says_so(told: Told) -> None:
    ran = await told.verify()
    text = await told.autopost("verify", "--no-stream", "--workspace", told.workspace)

    assert (ran.code, ran.json["differences"]) == (0, [])
    assert ran.json["checked"]["turns"] == told.turns
    assert f"{told.turns} turns" in text.out
    [read, _] = await told.db.fetch("SELECT meta FROM events WHERE action = 'payload_accessed'")
    assert json.loads(read["meta"])["what"] == "verify_bot_turns"
    silent = await told.verify("--no-bot")
    assert "turns" not in silent.json["checked"]


LINE = "workspace_id = $1 AND chat_id = $2"
FAULTS: dict[str, tuple[str, str, set[str]]] = {
    "a changed state in the log": (
        RETURNS,
        f"UPDATE bot_logs SET state_after = 'default' WHERE {LINE} AND matched_rule_id = 'returns'",
        {"bot_state_after"},
    ),
    "a changed state before": (
        RETURNS,
        f"UPDATE bot_logs SET state_before = 'returns_reason' WHERE {LINE} AND matched_rule_id = 'returns_order'",
        {"bot_state_before"},
    ),
    "another rule in the log": (
        FAQ,
        f"UPDATE bot_logs SET matched_rule_id = 'contacts' WHERE {LINE} AND matched_rule_id = 'payment'",
        {"bot_rule"},
    ),
    "a changed preview": (
        FAQ,
        f"UPDATE bot_logs SET response_preview = 'Free!' WHERE {LINE} AND matched_rule_id = 'payment'",
        {"bot_response_preview"},
    ),
    "a changed text of a reply": (
        FAQ,
        "UPDATE bot_outbox SET response = jsonb_set(response, '{plan,parts,0,text}', '\"Free!\"') "
        f"WHERE {LINE} AND place = (SELECT min(place) FROM bot_outbox WHERE {LINE})",
        {"bot_response"},
    ),
    "a changed text with a hash of its own": (
        FAQ,
        f"UPDATE bot_outbox a SET (response, response_hash) = (SELECT b.response, b.response_hash FROM bot_outbox b "
        "WHERE b.chat_id <> $2 ORDER BY b.place LIMIT 1) WHERE workspace_id = $1 AND chat_id = $2 "
        f"AND place = (SELECT min(place) FROM bot_outbox WHERE {LINE})",
        {"bot_response_hash"},
    ),
    "a deleted reply": (
        FAQ,
        f"DELETE FROM bot_outbox WHERE {LINE} AND place = (SELECT min(place) FROM bot_outbox WHERE {LINE})",
        {"bot_response_hash"},
    ),
    "a skipped update": (
        RETURNS,
        f"DELETE FROM bot_logs WHERE {LINE} AND meta ->> 'outcome' = 'captured' AND state_before = 'returns_order'",
        {"bot_log_missing"},
    ),
    "an update that is gone": (
        CANCELLED,
        f"DELETE FROM bot_inbox WHERE {LINE} AND update #>> '{{message,body,text}}' = 'возврат'",
        {"bot_state_before"},
    ),
    "a turn out of order": (
        FAQ,
        "WITH two AS (SELECT provider_message_id, processed_at, row_number() OVER (ORDER BY processed_at) AS n, "
        f"processed_at + interval '1 second' AS later FROM bot_inbox WHERE {LINE}), "
        "moved AS (UPDATE bot_logs l SET ts = t.later FROM two t WHERE t.n = 1 AND l.meta ->> 'key' = "
        "t.provider_message_id RETURNING l.ts, l.meta ->> 'key' AS key) "
        "UPDATE bot_inbox i SET processed_at = m.ts FROM moved m WHERE i.provider_message_id = m.key",
        {"bot_order"},
    ),
    "an update that was overtaken": (
        FAQ,
        f"WITH first AS (SELECT provider_message_id AS key FROM bot_inbox WHERE {LINE} ORDER BY processed_at LIMIT 1), "
        "gone AS (DELETE FROM bot_logs l USING first f WHERE l.meta ->> 'key' = f.key) "
        "UPDATE bot_inbox i SET processed_at = NULL FROM first f WHERE i.provider_message_id = f.key",
        {"bot_overtaken"},
    ),
    "a state that is set by hand": (
        HELD,
        f"UPDATE bot_state SET state = 'operator' WHERE {LINE}",
        {"bot_stored_state"},
    ),
    "a captured value that is set by hand": (
        LATE,
        f"UPDATE bot_state SET context = jsonb_set(context, '{{order_number}}', '\"777\"') WHERE {LINE}",
        {"bot_stored_context"},
    ),
    "an expiry that is set by hand": (
        LATE,
        f"UPDATE bot_state SET expires_at = expires_at + interval '1 ms' WHERE {LINE}",
        {"bot_stored_expires_at"},
    ),
    "a conversation that is gone": (
        LATE,
        f"DELETE FROM bot_state WHERE {LINE}",
        {"bot_stored_state", "bot_stored_context", "bot_stored_expires_at"},
    ),
}


async def test_each_planted_fault_is_found_and_named_by_its_chat_and_by_nothing_of_the_customer(told: Told) -> None:
    for table in TABLES:
        await told.db.execute(f"CREATE TABLE kept_{table} AS TABLE {table}")
    for name, (chat, fault, kinds) in FAULTS.items():
        changed = await told.db.execute(fault, told.shop.bot.workspace, chat)
        assert not changed.endswith(" 0"), name

        ran = await told.verify()

        assert ran.code == 1, name
        assert {one["kind"] for one in ran.json["differences"]} == kinds, (name, ran.json["differences"])
        assert {one["chat"] for one in ran.json["differences"]} == {told.token(chat)}, name
        for word in (chat, PHONE, MAIL, "Free!", "товар", "777"):
            assert f'"{word}' not in ran.out and PHONE not in ran.out and MAIL not in ran.out, name
        await restore(told)
    assert (await told.verify()).code == 0


async def restore(told: Told) -> None:
    for table in TABLES:
        await told.db.execute(f"DELETE FROM {table}")
        await told.db.execute(f"INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM kept_{table}")


async def test_a_kept_ruleset_that_was_changed_proves_nothing(told: Told) -> None:
    await told.db.execute(
        "UPDATE bot_rulesets SET rules = jsonb_set(rules, '{0,priority}', '1') WHERE first_used_at = "
        "(SELECT min(first_used_at) FROM bot_rulesets)"
    )

    ran = await told.verify()

    assert ran.code == 1
    assert {one["kind"] for one in ran.json["differences"]} == {"bot_ruleset"}
    assert "were not decided again" in ran.json["notes"][-1]


async def test_what_retention_has_deleted_is_no_difference(told: Told) -> None:
    """The first half of every chat is gone; the fold goes on after the first turn that does not depend on it."""
    cut = await told.db.fetchval(
        f"SELECT ts FROM bot_logs WHERE {LINE} ORDER BY ts LIMIT 1 OFFSET 3", told.shop.bot.workspace, RETURNS
    )
    await told.db.execute(
        "UPDATE bot_inbox SET processed_at = processed_at - interval '60 days', ts = ts - interval '60 days' "
        "WHERE processed_at < $1",
        cut,
    )
    await told.db.execute("UPDATE bot_outbox SET sent_at = sent_at - interval '60 days' WHERE created_at < $1", cut)
    await told.db.execute("UPDATE bot_logs SET ts = ts - interval '60 days' WHERE ts < $1", cut)
    for call in ("retain_bot_outbox", "retain_bot_inbox"):
        assert await told.db.fetchval(f"SELECT {call}($1, 1000)", timedelta(days=30)) >= 3

    ran = await told.verify()

    assert (ran.code, ran.json["differences"]) == (0, [])
    assert ran.json["checked"]["turns"] == told.turns - 4 + 1
    assert "were not decided again" in ran.json["notes"][-1]
