"""What a bot answers by: constraints that refuse nonsense, and a number that rises with every change."""

import json

import asyncpg
import pytest
from db.support.builders import Tenant

SETTINGS = "INSERT INTO bot_settings (workspace_id, auth_ref, rate_group) VALUES ($1, 'bot', 'bot')"
RULE = "INSERT INTO bot_rules (workspace_id, rule_id, intent, pattern, response_template) VALUES ($1, $2, 'x', $3, 'x')"
CONTAINS = json.dumps({"mode": "contains", "keywords": ["a"]})


@pytest.fixture
async def bot(tenant: Tenant) -> Tenant:
    await tenant.db.execute(
        "INSERT INTO credential_bindings (workspace_id, auth_ref, platform, secret_ref) "
        "VALUES ($1, 'bot', 'max', 'env:TOKEN')",
        tenant.workspace,
    )
    await tenant.db.execute(SETTINGS, tenant.workspace)
    return tenant


async def seq(bot: Tenant) -> int:
    found: int = await bot.db.fetchval("SELECT rules_seq FROM bot_settings")
    return found


async def test_a_workspace_has_one_bot(bot: Tenant) -> None:
    with pytest.raises(asyncpg.UniqueViolationError):
        await bot.db.execute(SETTINGS, bot.workspace)


async def test_a_bot_needs_a_credential_of_its_workspace(tenant: Tenant) -> None:
    with pytest.raises(asyncpg.ForeignKeyViolationError):
        await tenant.db.execute(SETTINGS, tenant.workspace)


async def test_a_new_rate_group_gets_the_rate_of_the_platform(bot: Tenant) -> None:
    assert await bot.db.fetchval("SELECT rate_rps FROM platform_limits WHERE rate_group = 'bot'") == 27


async def test_the_rate_group_of_a_bot_cannot_be_deleted(bot: Tenant) -> None:
    with pytest.raises(asyncpg.ForeignKeyViolationError):
        await bot.db.execute("DELETE FROM platform_limits")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE bot_rules SET response_template = 'y'",
        "UPDATE bot_rules SET enabled = false",
        "DELETE FROM bot_rules",
        "INSERT INTO bot_rules (workspace_id, rule_id, intent, pattern, response_template) "
        """SELECT workspace_id, 'b', 'x', '{"mode": "any"}', 'x' FROM bot_settings""",
        "UPDATE bot_settings SET late_after = '1 minute'",
        "UPDATE bot_settings SET enabled = false",
    ],
)
async def test_each_change_is_noticed_once(bot: Tenant, change: str) -> None:
    await bot.db.execute(RULE, bot.workspace, "a", CONTAINS)
    before = await seq(bot)

    await bot.db.execute(change)

    assert await seq(bot) == before + 1


async def test_a_change_of_another_workspace_is_not_noticed(bot: Tenant) -> None:
    other = await Tenant.create(bot.db)
    before = await seq(bot)

    await other.db.execute(RULE, other.workspace, "a", CONTAINS)

    assert await seq(bot) == before


@pytest.mark.parametrize(
    ("pattern", "constraint"),
    [
        ({"keywords": ["a"]}, "pattern_mode_is_known"),
        ({"mode": "regex", "keywords": ["a"]}, "pattern_mode_is_known"),
        ({"mode": "contains"}, "pattern_has_keywords"),
        ({"mode": "words", "keywords": "a"}, "pattern_has_keywords"),
        ({"mode": "choice"}, "choice_has_options"),
    ],
)
async def test_a_pattern_that_no_matcher_reads_is_refused(bot: Tenant, pattern: object, constraint: str) -> None:
    with pytest.raises(asyncpg.CheckViolationError) as refused:
        await bot.db.execute(RULE, bot.workspace, "a", json.dumps(pattern))

    assert refused.value.constraint_name == constraint


async def test_each_mode_has_its_pattern(bot: Tenant) -> None:
    patterns = [
        {"mode": "contains", "keywords": ["a"]},
        {"mode": "words", "keywords": ["a*"]},
        {"mode": "choice", "options": ["a"]},
        {"mode": "any"},
    ]
    for place, pattern in enumerate(patterns):
        await bot.db.execute(RULE, bot.workspace, str(place), json.dumps(pattern))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("fallback", "{}"),
        ("fallback", '{"escalate_after": 0}'),
        ("escalation", '{"mode": "shout"}'),
        ("answer_in", "{dialog,everywhere}"),
        ("chat_rps", "0"),
        ("state_ttl", "0 seconds"),
        ("max_turns", "0"),
        ("chat_per_minute", "0"),
        ("texts", "[]"),
    ],
)
async def test_settings_that_make_no_sense_are_refused(bot: Tenant, column: str, value: str) -> None:
    with pytest.raises(asyncpg.CheckViolationError):
        await bot.db.execute(f"UPDATE bot_settings SET {column} = '{value}'")
