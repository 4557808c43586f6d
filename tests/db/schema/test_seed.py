"""The demo workspaces: safe to put there twice, and exactly what the demo and the README promise of them."""

import json
from hashlib import sha256
from pathlib import Path
from uuid import UUID

import pytest
import yaml
from autopost_bot.engine.ruleset import load_ruleset
from autopost_cli.schema import catalog
from autopost_cli.schema.seed import seed
from db.support.builders import Tenant

SECRETS = {
    ("demo", "webhook_push"): "demo-push-secret-for-development",
    ("demo", "bot_webhook"): "demo-bot-secret-for-development",
    ("shop", "webhook_push"): "shop-push-secret-for-development",
    ("shop", "bot_webhook"): "shop-bot-secret-for-development",
    ("shop", "bot_api"): "shop-api-secret-for-development",
    ("demo", "publication_api"): "demo-publications-secret-for-development",
    ("shop", "publication_api"): "shop-publications-secret-for-development",
}


async def rows(database) -> dict[str, list[str]]:
    tables = await database.pool.fetch(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
    )
    return {
        row[0]: sorted(r[0] for r in await database.pool.fetch(f"SELECT t::text || xmin FROM {row[0]} AS t"))
        for row in tables
        if row[0] != "events"  # no system columns on a partitioned table; its partitions are here
    }


async def tenant_of(database, name: str) -> Tenant:
    return Tenant(
        database.pool, await database.pool.fetchval("SELECT workspace_id FROM workspaces WHERE name = $1", name)
    )


async def test_seeding_again_changes_nothing(seeded_database):
    async with seeded_database.pool.acquire() as connection:
        schema = await catalog.describe(connection)
    before = await rows(seeded_database)

    await seed(seeded_database.url)

    assert await rows(seeded_database) == before
    async with seeded_database.pool.acquire() as connection:
        assert await catalog.describe(connection) == schema


async def test_seeding_again_keeps_what_an_operator_changed(seeded_database):
    demo = await tenant_of(seeded_database, "demo")
    await demo.db.execute("UPDATE channels SET rate_rps = 0.5, title = 'Mine'")
    await demo.db.execute("UPDATE bot_rules SET response_template = 'Mine'")
    before = await rows(seeded_database)

    await seed(seeded_database.url)

    assert await rows(seeded_database) == before


@pytest.mark.parametrize("tags", [["demo"], [], ["anything"]])
async def test_all_forty_demo_channels_take_the_post(seeded_database, tags):
    demo = await tenant_of(seeded_database, "demo")

    answer = await demo.enqueue("hello", tags=tags)

    assert answer["enqueued"] == 40
    platforms = await demo.db.fetch(
        "SELECT platform, count(*) AS n FROM delivery_details WHERE workspace_id = $1 GROUP BY 1", demo.workspace
    )
    assert {row["platform"]: row["n"] for row in platforms} == {"telegram": 20, "max": 20}


async def test_the_documented_secrets_open_their_endpoints_and_no_other(seeded_database):
    names = await seeded_database.pool.fetch("SELECT workspace_id, name FROM workspaces")
    name_of = {row["workspace_id"]: row["name"] for row in names}

    for (name, kind), secret in SECRETS.items():
        found = await seeded_database.pool.fetch(
            "SELECT * FROM resolve_endpoint($1, $2)", kind, sha256(secret.encode()).hexdigest()
        )
        assert [name_of[row["workspace_id"]] for row in found] == [name]

    assert len(SECRETS) == await seeded_database.pool.fetchval(
        "SELECT count(*) FROM workspace_endpoints WHERE secret_hash IS NOT NULL"
    )


async def test_every_bot_rule_has_one_enabled_version(seeded_database):
    found = await seeded_database.pool.fetch(
        "SELECT workspace_id, rule_id, count(*) FILTER (WHERE enabled) AS n FROM bot_rules GROUP BY 1, 2"
    )

    assert {row["n"] for row in found} == {1}
    intents = await seeded_database.pool.fetch("SELECT DISTINCT workspace_id, intent FROM bot_rules WHERE enabled")
    for workspace in {row["workspace_id"] for row in intents}:
        own = {row["intent"] for row in intents if row["workspace_id"] == workspace}
        assert own >= {"contacts", "delivery", "payment", "returns", "warranty"}


async def test_both_workspaces_have_the_rules_and_settings_of_the_example(seeded_database):
    example = yaml.safe_load((Path(__file__).parents[3] / "examples/bot/rules.yaml").read_text())
    expected = load_ruleset(example["rules"], example["settings"])
    for row in await seeded_database.pool.fetch("SELECT to_jsonb(s) FROM bot_settings s"):
        settings = json.loads(row[0])
        rules = await seeded_database.pool.fetch(
            "SELECT to_jsonb(r) FROM bot_rules r WHERE enabled AND workspace_id = $1", UUID(settings["workspace_id"])
        )
        seeded = load_ruleset([json.loads(rule[0]) for rule in rules], settings)
        assert (seeded.refused, expected.refused) == ((), ())
        assert seeded.rules_document == expected.rules_document
        assert seeded.settings_document == expected.settings_document
        assert seeded.hash == expected.hash


async def test_rates_stay_at_nine_tenths_of_what_the_platforms_allow(seeded_database):
    too_fast = await seeded_database.pool.fetchval(
        """
        SELECT count(*) FROM channels c JOIN platform_limits g USING (workspace_id, platform, rate_group)
        WHERE c.rate_rps > CASE c.platform WHEN 'telegram' THEN 0.9 ELSE 1.8 END OR g.rate_rps > 27
           OR c.rate_rps IS NULL OR g.rate_rps IS NULL
        """
    )

    assert too_fast == 0


async def test_the_shop_differs_in_tags_filters_rates_windows_and_modes(seeded_database):
    shop = await tenant_of(seeded_database, "shop")

    row = await shop.db.fetchrow(
        """
        SELECT count(DISTINCT tags) AS tags, count(DISTINCT route_filter) AS filters, count(DISTINCT rate_rps) AS rates,
               count(DISTINCT posting_window) AS windows, count(DISTINCT send_mode) AS modes,
               count(DISTINCT timezone) AS zones, count(DISTINCT dedup_ttl_hours) AS ttls
        FROM channels WHERE workspace_id = $1
        """,
        shop.workspace,
    )

    assert row is not None
    assert min(row["tags"], row["filters"], row["rates"], row["modes"], row["ttls"]) >= 3
    assert min(row["windows"], row["zones"]) >= 2


SHOP_ROUTES = {
    (): ["c1", "c3", "c5"],
    ("sale",): ["c1", "c2", "c3", "c5", "c6"],
    ("sale", "draft"): ["c1", "c2", "c3", "c5"],
    ("news", "night"): ["c1", "c4", "c5"],
    ("promo",): ["c1", "c2", "c3", "c5"],
}


@pytest.mark.parametrize(("tags", "expected"), SHOP_ROUTES.items(), ids=[" ".join(t) or "none" for t in SHOP_ROUTES])
async def test_the_shop_routes_by_its_filters(seeded_database, tags, expected):
    shop = await tenant_of(seeded_database, "shop")

    await shop.enqueue("hello", tags=list(tags))

    assert sorted(str(row["channel_id"])[-2:] for row in await shop.deliveries()) == expected
