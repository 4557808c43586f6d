"""`autopost bot log | why | unmatched | chats | release | retry | skip | diff`: over turns that the engine decided."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import yaml
from autopost_bot.engine.next_turns import next_turns
from autopost_bot.engine.replay import apply
from autopost_bot.engine.ruleset import Ruleset, load_ruleset
from autopost_bot.engine.turn import Conversation, Update
from autopost_contracts.ids import WorkspaceId, chat_token
from bot.support.shop_chat import EXAMPLES
from db.support.bots import Bot
from db.support.builders import Tenant
from harness.autopost_command import Autopost, Ran
from harness.databases import Database
from msgspec.structs import replace

SIGNED = ("--operator", "ann", "--reason", "complaint 12")
SHOP = ("--workspace", "shop")
CHAT = "79261234567"


class Shop:
    """What its customers write is stored, decided and committed as by the service; nothing is sent."""

    def __init__(self, database: Database, workspace: UUID, endpoint: UUID, ruleset: Ruleset) -> None:
        self.bot = Bot(Tenant(database.pool, workspace), endpoint)
        self.db = database.pool
        self.workspace = workspace
        self.ruleset = ruleset
        self._autopost = Autopost(database.url)
        self._conversations: dict[str, Conversation] = {}

    async def __call__(self, *words: object) -> Ran:
        return await self._autopost("bot", *words, *SHOP)

    async def say(self, text: str, chat: str = CHAT) -> str:
        key = await self._store(text, chat)
        [taken] = await self.bot.take()
        update = Update(key=key, kind="message", at=datetime.now(UTC), text=text)
        before = self._conversations.get(chat, Conversation())
        [turn] = next_turns(self.ruleset, before, [update])
        self._conversations[chat] = apply(before, update, turn, update.at)
        log = {name: getattr(turn.log, name) for name in turn.log.__struct_fields__}
        left = turn.next and {
            "state": turn.next.state,
            "context": turn.next.context,
            "expires_in": turn.next.expires_in and turn.next.expires_in.total_seconds(),
        }
        reply = turn.reply and {"key": key, "plan": {}, "plan_hash": "h", "response_hash": turn.response_hash}
        given = {
            "chat_id": chat,
            "lease_token": str(taken["lease_token"]),
            "updates": [{"key": key, "log": log}],
            "next": left,
            "reply": reply,
            "escalation": None,
            "trace_id": None,
            "traceparent": None,
        }
        await self.bot.commit(given)
        return key

    async def _store(self, text: str, chat: str) -> str:
        at = next(self.bot._times)
        update: dict[str, Any] = {
            **{"provider": "max", "chat_id": chat, "key": f"mid.{at}", "kind": "message_created", "answer": True},
            **{"chat_type": "dialog", "provider_ts": at, "provider_seq": 0, "trace_id": "trace"},
            "body": {"message": {"body": {"text": text}}},
        }
        query = "SELECT store_bot_update($1, $2, $3)"
        await self.db.fetchval(query, self.workspace, self.bot.endpoint, json.dumps(update))
        return str(update["key"])

    async def sent(self) -> None:
        """All replies, as if the provider had taken them."""
        await self.db.execute("UPDATE bot_outbox SET sent_at = now(), slot_at = NULL WHERE failed_at IS NULL")
        await self.db.execute("UPDATE bot_chats SET lease_token = NULL, lease_until = NULL, due_at = NULL")

    async def events(self, action: str) -> list[dict[str, Any]]:
        rows = await self.db.fetch("SELECT meta FROM events WHERE action = $1::text::event_action ORDER BY ts", action)
        return [json.loads(row["meta"]) for row in rows]

    @property
    def token(self) -> str:
        return chat_token(WorkspaceId(self.workspace), CHAT)


@pytest.fixture
async def shop(seeded_database: Database) -> Shop:
    pool = seeded_database.pool
    workspace = await pool.fetchval("SELECT workspace_id FROM workspaces WHERE name = 'shop'")
    endpoint = await pool.fetchval(
        "SELECT endpoint_id FROM workspace_endpoints WHERE workspace_id = $1 AND kind = 'bot_webhook'", workspace
    )
    row = await pool.fetchrow("SELECT settings, rules FROM read_ruleset($1)", workspace)
    return Shop(
        seeded_database, workspace, endpoint, load_ruleset(json.loads(row["rules"]), json.loads(row["settings"]))
    )


async def talk(shop: Shop, *texts: str) -> list[str]:
    keys = []
    for text in texts:
        keys.append(await shop.say(text))
        await shop.sent()
    return keys


async def test_the_log_shows_what_was_written_and_answered_and_says_who_looked(shop: Shop):
    await talk(shop, "Хочу вернуть товар", "12345")

    ran = await shop("log", "--chat", shop.token, *SIGNED)

    assert "Хочу вернуть товар" in ran.out and "default → returns_order" in ran.out and "returns_order v1" in ran.out
    assert CHAT not in ran.out
    [event] = await shop.events("payload_accessed")
    assert (event["operator"], event["what"]) == ("ann", "bot_turns")
    assert (await shop("log", "--chat", "another", *SIGNED, "--json")).json == {"turns": []}


async def test_why_names_the_rule_and_those_that_came_later(shop: Shop):
    [key] = await talk(shop, "Как оплатить и сколько стоит доставка?")
    await keep_ruleset(shop)

    ran = await shop("why", key, *SIGNED)

    assert "outcome matched, state default → default" in ran.out
    assert "delivery: wins: priority 50, доставк*" in ran.out
    assert "payment: matches, but comes later" in ran.out
    assert "returns_order: answers only in state returns_order" in ran.out
    assert ": sent " in ran.out
    assert (await shop("why", "mid.0", *SIGNED)).code == 1


async def keep_ruleset(shop: Shop) -> None:
    await shop.db.execute(
        "SELECT keep_ruleset($1, $2, $3, $4)",
        *(shop.workspace, shop.ruleset.hash, json.dumps(shop.ruleset.rules_document)),
        json.dumps(shop.ruleset.settings_document),
    )


async def test_why_judges_by_no_state_that_had_expired(shop: Shop):
    await talk(shop, "Хочу вернуть товар")
    shop._conversations[CHAT] = replace(shop._conversations[CHAT], expires_at=datetime(2020, 1, 1, tzinfo=UTC))
    [key] = await talk(shop, "12345")
    await keep_ruleset(shop)

    ran = await shop("why", key, *SIGNED)

    assert "«12345» in state default" in ran.out
    assert "returns_order: answers only in state returns_order" in ran.out


async def test_why_shows_what_a_press_said(shop: Shop):
    [key] = await talk(shop, "доставка")
    await shop.db.execute(
        "UPDATE bot_inbox SET kind = 'message_callback', update = $1", json.dumps({"callback": {"payload": "a.1.b.0"}})
    )
    await keep_ruleset(shop)

    ran = await shop("why", key, *SIGNED)

    assert "«доставка» in state default" in ran.out
    assert "delivery: wins" in ran.out


async def test_unmatched_texts_are_counted_and_masked_and_have_a_nearest_rule(shop: Shop):
    await talk(shop, "Гарнитура есть?", "доставка", "гарнитура ЕСТЬ", "доставка", "мой номер 8 926 123-45-67, ау")

    rows = (await shop("unmatched", "--json")).json["unmatched"]

    assert [(row["times"], row["text"]) for row in rows] == [(2, "гарнитура есть"), (1, "мой номер # ау")]
    assert "926" not in json.dumps(rows)


async def test_a_chat_that_was_handed_over_is_given_back(shop: Shop):
    await talk(shop, "доставка")
    await shop.db.execute("UPDATE bot_state SET state = 'operator', expires_at = now() + interval '1 hour'")
    [held] = (await shop("chats", "--json")).json["chats"]
    assert (held["chat"], held["status"]) == (shop.token, "held")

    assert (await shop("release", shop.token, *SIGNED)).code == 0

    assert (await shop("chats", "--json")).json["chats"] == []
    assert await shop.db.fetchval("SELECT state FROM bot_state") == "default"
    assert (await shop.bot.logs())[-1]["meta"]["outcome"] == "released"
    assert (await shop("release", shop.token, *SIGNED)).code == 1
    assert [event["what"] for event in await shop.events("config_changed")] == ["bot_state.state"]


async def test_a_failed_reply_is_sent_again_and_a_waiting_one_given_up(shop: Shop):
    await shop.say("доставка")
    reply = str((await shop.bot.reply(CHAT))["reply_id"])
    assert "under_way" in (await shop("skip", reply, *SIGNED)).out
    await shop.bot.expire()

    assert "skipped" in (await shop("skip", reply, *SIGNED)).out
    assert (await shop.bot.reply(CHAT))["failed_at"] is not None
    assert [event["code"] for event in await shop.events("bot_reply_failed")] == ["manual_skip"]
    assert await shop.db.fetchval("SELECT count(*) FROM condition_bot_errors(0)") == 0
    assert await shop.db.fetchval("SELECT count(*) FROM condition_bot_adapter(1)") == 0

    assert "retried" in (await shop("retry", reply, *SIGNED)).out
    again = await shop.bot.reply(CHAT)
    assert (again["failed_at"], again["attempt"]) == (None, 0)
    assert (await shop.bot.chat(CHAT))["due_at"] is not None
    assert "waiting" in (await shop("retry", reply, *SIGNED)).out


async def test_new_rules_are_compared_over_what_customers_wrote(shop: Shop, tmp_path: Path):
    await talk(shop, "доставка", "Хочу вернуть товар", "12345", "брак", "чехол есть?", "оплата", "до свидания")
    document = yaml.safe_load((EXAMPLES / "rules.yaml").read_text())
    document["rules"][0]["response_template"] = "Доставим завтра."
    document["rules"].append(
        {
            "rule_id": "case",
            "intent": "goods",
            "pattern": {"mode": "words", "keywords": ["чехол"]},
            "response_template": "Есть.",
        }
    )
    better, worse = tmp_path / "better.yaml", tmp_path / "worse.yaml"
    better.write_text(yaml.safe_dump(document, allow_unicode=True))
    document["rules"] = [rule for rule in document["rules"] if rule["rule_id"] not in ("payment", "case")]
    worse.write_text(yaml.safe_dump(document, allow_unicode=True))

    ran = await shop("diff", "--rules", better, *SIGNED, "--json")

    assert ran.code == 0
    report = ran.json
    assert (report["turns"], report["decided_otherwise_then"]) == (7, 0)
    assert report["changes"] == {"fallback_to_answered": 1, "other_text": 1, "same": 5}
    assert report["fallback"] == {"observed": 2, "today": 2, "new": 1}
    assert report["texts"]["fallback_to_answered"][0]["text"] == "чехол есть"

    ran = await shop("diff", "--rules", worse, *SIGNED)
    assert ran.code == 2
    assert "answered_to_fallback" in ran.out


async def test_rules_that_changed_since_are_told_apart_from_the_new_ones(shop: Shop):
    await talk(shop, "доставка", "спасибо")
    await shop.db.execute("UPDATE bot_rules SET enabled = false WHERE rule_id = 'thanks'")
    report = (await shop("diff", "--rules", EXAMPLES / "rules.yaml", *SIGNED, "--json")).json
    assert report["decided_otherwise_then"] == 1
    assert report["changes"] == {"fallback_to_answered": 1, "same": 1}


async def test_enable_shows_what_the_versions_change_and_asks_before(shop: Shop, tmp_path: Path):
    await talk(shop, "доставка", "чехол есть?")
    document = yaml.safe_load((EXAMPLES / "rules.yaml").read_text())
    file = tmp_path / "rules.yaml"

    async def release(keywords: list[str], *words: str, says: str = "") -> Ran:
        document["rules"][0]["pattern"] = {"mode": "words", "keywords": keywords}
        file.write_text(yaml.safe_dump(document, allow_unicode=True))
        assert (await shop("rules", "import", file, *SIGNED)).code == 0
        enable = ("bot", "rules", "enable", "--newest", "--diff", *words, *SIGNED, *SHOP)
        return await shop._autopost(*enable, stdin=says)

    refused = await release(["самолет"], says="n\n")
    assert (refused.code, "answered_to_fallback" in refused.err, "Nothing was changed." in refused.err) == (
        1,
        True,
        True,
    )
    assert (await release(["корабль"], "--yes", says="n\n")).code == 1  # worse, so it asks all the same
    assert await shop.db.fetchval("SELECT max(version) FROM bot_rules WHERE enabled") == 1

    better = await release(["доставк*", "чехол"], "--yes", "--json")

    assert (better.code, "fallback_to_answered" in better.err) == (0, True)
    [moved] = [row for row in better.json["results"] if row["verdict"] == "enabled"]
    assert (moved["rule_id"], moved["was"], moved["is"]) == (document["rules"][0]["rule_id"], 1, 4)
    assert await shop.db.fetchval("SELECT max(version) FROM bot_rules WHERE enabled") == 4
