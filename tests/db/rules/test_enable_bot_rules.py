"""Rules are imported as new versions and enabled as one release."""

import asyncio
import json

import asyncpg
import pytest
from db.support.bots import Bot

SIGNED = ("ann", "because")
DELIVERY = {
    "rule_id": "delivery",
    "intent": "delivery",
    "pattern": {"mode": "words", "keywords": ["доставк*"], "stop": [], "fuzzy": False},
    "response_template": "Доставляем.",
}
RETURNS = {**DELIVERY, "rule_id": "returns", "intent": "returns", "response_template": "Вернём."}


async def import_rules(bot, *rules):
    query = "SELECT * FROM import_bot_rules($1, $2, $3, $4)"
    rows = await bot.db.fetch(query, bot.workspace, json.dumps(rules), *SIGNED)
    return [(row["rule_id"], row["version"], row["verdict"]) for row in rows]


async def enable(bot, *release, **lint):
    query = "SELECT * FROM enable_bot_rules($1, $2, $3, $4, $5)"
    given = json.dumps([{"rule_id": rule, "version": version} for rule, version in release])
    rows = await bot.db.fetch(query, bot.workspace, given, *SIGNED, json.dumps(lint))
    return [(row["rule_id"], row["was"], row["is"], row["verdict"]) for row in rows]


async def enabled(bot):
    rows = await bot.db.fetch("SELECT rule_id, version FROM bot_rules WHERE enabled ORDER BY rule_id")
    return {row["rule_id"]: row["version"] for row in rows}


async def events(bot):
    rows = await bot.db.fetch("SELECT meta FROM events WHERE action = 'bot_rules_changed' ORDER BY ts, id")
    return [json.loads(row["meta"]) for row in rows]


async def test_an_import_adds_versions_that_answer_nobody_yet(bot: Bot):
    assert await import_rules(bot, DELIVERY, RETURNS) == [("delivery", 1, "added"), ("returns", 1, "added")]
    assert await enabled(bot) == {}
    assert [(event["what"], event["operator"], len(event["rules"])) for event in await events(bot)] == [
        ("imported", "ann", 2)
    ]


async def test_a_rule_that_says_the_same_gets_no_new_version(bot: Bot):
    await import_rules(bot, DELIVERY)
    same = {
        **DELIVERY,
        "pattern": {"keywords": ["доставк*"], "mode": "words"},
        "priority": 0,
        "buttons": [],
        "accept": None,
    }
    assert await import_rules(bot, same) == [("delivery", 1, "unchanged")]
    assert await import_rules(bot, {**same, "priority": 1}) == [("delivery", 2, "added")]
    assert await import_rules(bot, same) == [("delivery", 3, "added")]  # an old text is the newest again
    assert await import_rules(bot, same) == [("delivery", 3, "unchanged")]
    assert len(await events(bot)) == 3


async def test_a_release_switches_all_its_rules_at_once(bot: Bot):
    await import_rules(bot, DELIVERY, RETURNS)
    await enable(bot, ("delivery", 1), ("returns", 1))
    await import_rules(bot, {**DELIVERY, "response_template": "Быстро."})

    switched = await enable(bot, ("delivery", 2), ("returns", None), was="aaa", **{"is": "bbb"})

    assert switched == [("delivery", 1, 2, "enabled"), ("returns", 1, None, "disabled")]
    assert await enabled(bot) == {"delivery": 2}
    event = (await events(bot))[-1]
    assert (event["was"], event["is"], event["what"]) == ("aaa", "bbb", "enabled")
    assert await enable(bot, ("delivery", 2)) == [("delivery", 2, 2, "unchanged")]
    assert len(await events(bot)) == 4


@pytest.mark.parametrize("wrong", [("delivery", 7), ("unknown", 1), ("unknown", None)])
async def test_a_release_with_a_version_that_is_not_there_changes_nothing(bot: Bot, wrong):
    await import_rules(bot, DELIVERY, RETURNS)
    with pytest.raises(asyncpg.PostgresError) as refused:
        await enable(bot, ("returns", 1), wrong)
    assert refused.value.sqlstate == "AP014"
    assert await enabled(bot) == {}


async def test_a_release_names_each_rule_once(bot: Bot):
    await import_rules(bot, DELIVERY)
    await import_rules(bot, {**DELIVERY, "priority": 1})
    with pytest.raises(asyncpg.PostgresError, match="delivery is there twice") as refused:
        await enable(bot, ("delivery", 2), ("delivery", 1))
    assert refused.value.sqlstate == "AP014"
    assert await enabled(bot) == {}


async def test_errors_are_refused_unless_forced(bot: Bot):
    await import_rules(bot, DELIVERY)
    with pytest.raises(asyncpg.PostgresError, match="2 errors") as refused:
        await enable(bot, ("delivery", 1), errors=2)
    assert refused.value.sqlstate == "AP014"
    await enable(bot, ("delivery", 1), errors=2, forced=True)
    assert (await events(bot))[-1]["forced"] is True


async def test_rules_that_were_changed_meanwhile_are_not_released(bot: Bot):
    await import_rules(bot, DELIVERY)
    seen = await bot.db.fetchval("SELECT rules_seq FROM bot_settings")
    await import_rules(bot, RETURNS)
    with pytest.raises(asyncpg.PostgresError, match="changed meanwhile"):
        await enable(bot, ("delivery", 1), rules_seq=seen)


async def test_of_two_releases_at_once_no_mixture_is_ever_seen(bot: Bot):
    for text in ("one", "two"):
        await import_rules(bot, {**DELIVERY, "response_template": text}, {**RETURNS, "response_template": text})
    await enable(bot, ("delivery", 1), ("returns", 1))
    seen = set()

    async def read():
        for _ in range(40):
            rules = await bot.db.fetchval("SELECT rules FROM read_ruleset($1)", bot.workspace)
            seen.add(tuple(rule["version"] for rule in json.loads(rules)))

    async def release(first):
        for n in range(10):
            version = 1 + (first + n) % 2
            await enable(bot, ("delivery", version), ("returns", version))

    await asyncio.gather(read(), read(), release(0), release(1))
    assert seen <= {(1, 1), (2, 2)}


async def test_a_workspace_without_a_bot_has_no_rules(tenant):
    with pytest.raises(asyncpg.PostgresError, match="no bot"):
        await tenant.db.fetch("SELECT * FROM import_bot_rules($1, '[]', 'ann', 'because')", tenant.workspace)
