"""Retention of everything beside posts: the old and finished goes, in batches, and costs nothing of what stays."""

import json
from datetime import timedelta

import pytest
from db.support.builders import Tenant

MONTH = timedelta(days=30)

OLD = "now() - interval '31 days'"
NEW = "now() - interval '29 days'"
ROWS = {
    "ingest_runs": (
        "INSERT INTO ingest_runs (workspace_id, kind, started_at) SELECT $1, 'push', {at} FROM {count}",
        "retain_ingest_runs",
    ),
    "staged_posts": (
        "INSERT INTO staged_posts (workspace_id, endpoint_id, run_id, request, status, finished_at) "
        "SELECT $1, e.endpoint_id, new_id(), '{{}}', 'enqueued', {at} FROM workspace_endpoints e, {count}",
        "retain_staged_posts",
    ),
    "media_fetches": (
        "INSERT INTO media_fetches (workspace_id, url_hash, started_at) SELECT $1, new_id()::text, {at} FROM {count}",
        "retain_media_fetches",
    ),
    "bot_inbox": (
        "INSERT INTO bot_inbox (workspace_id, provider, chat_id, provider_message_id, ts, processed_at) "
        "SELECT $1, 'max', '1', new_id()::text, {at}, {at} FROM {count}",
        "retain_bot_inbox",
    ),
    "bot_outbox": (
        "INSERT INTO bot_outbox (workspace_id, chat_id, inbound_provider_message_id, response_hash, sent_at) "
        "SELECT $1, '1', new_id()::text, 'x', {at} FROM {count}",
        "retain_bot_outbox",
    ),
    "bot_logs": (
        "INSERT INTO bot_logs (workspace_id, ts, chat_id, message_text, state_before, state_after) "
        "SELECT $1, {at}, '1', 'hi', 'a', 'b' FROM {count}",
        "retain_bot_logs",
    ),
    "bot_rulesets": (
        "INSERT INTO bot_rulesets (workspace_id, ruleset_hash, rules, settings, first_used_at, last_loaded_at) "
        "SELECT $1, new_id()::text, '[]', '{{}}', {at} - n * interval '1 ms', {at} - n * interval '1 ms' "
        "FROM {count} AS n",
        "retain_bot_rulesets",
    ),
    "bot_state": (
        "INSERT INTO bot_state (workspace_id, chat_id, expires_at) SELECT $1, new_id()::text, {at} FROM {count}",
        "retain_bot_state",
    ),
    "bot_actions": (
        "WITH chat AS (INSERT INTO bot_chats (workspace_id, chat_id) VALUES ($1, '1') ON CONFLICT DO NOTHING) "
        "INSERT INTO bot_actions (workspace_id, chat_id, action_id, action_type, status, updated_at, seq) "
        "SELECT $1, '1', new_id()::text, 'x', 'done', {at}, 1 FROM {count}",
        "retain_bot_actions",
    ),
    "bot_chats": (
        "INSERT INTO bot_chats (workspace_id, chat_id, changed_at) SELECT $1, new_id()::text, {at} FROM {count}",
        "retain_bot_chats",
    ),
    "command_outbox": (
        "INSERT INTO command_outbox (workspace_id, msg_id, subject, payload, published_at) "
        "SELECT $1, new_id()::text, 's', '{{}}', {at} FROM {count}",
        "retain_commands",
    ),
    "alerts": (
        "INSERT INTO alerts (workspace_id, condition, recovered_at) SELECT $1, new_id()::text, {at} FROM {count}",
        "retain_alerts",
    ),
    "ingress_receipts": (
        "INSERT INTO ingress_receipts (workspace_id, endpoint_id, endpoint_kind, payload_hash, expires_at) "
        "SELECT $1, e.endpoint_id, 'webhook_push', 'x', {at} + interval '30 days' FROM workspace_endpoints e, {count}",
        "retain_receipts",
    ),
}


@pytest.fixture
async def endpoint(tenant: Tenant) -> None:
    await tenant.db.execute(
        "INSERT INTO workspace_endpoints (workspace_id, kind, secret_hash) VALUES ($1, 'webhook_push', $2)",
        *(tenant.workspace, "0" * 64),
    )


async def put(tenant: Tenant, table: str, at: str, count: int = 1) -> None:
    await tenant.db.execute(ROWS[table][0].format(at=at, count=f"generate_series(1, {count})"), tenant.workspace)


async def forget(tenant: Tenant, table: str, limit: int = 1000) -> int:
    function = ROWS[table][1]
    if function == "retain_receipts":
        gone: int = await tenant.db.fetchval("SELECT retain_receipts($1)", limit)
        return gone
    gone = await tenant.db.fetchval(f"SELECT {function}($1, $2)", MONTH, limit)
    return int(gone)


@pytest.mark.parametrize("table", ROWS)
async def test_the_old_goes_and_the_young_stays(tenant, endpoint, table):
    await put(tenant, table, OLD, 5)
    await put(tenant, table, NEW, 3)

    shares = [await forget(tenant, table, 2) for _ in range(4)]

    assert shares == [2, 2, 1, 0]
    assert await tenant.count(table) == 3


@pytest.mark.parametrize("table", ROWS)
async def test_a_batch_costs_what_it_takes_whatever_stays(tenant, endpoint, table):
    await put(tenant, table, NEW, 20_000)
    await put(tenant, table, OLD, 10)
    await tenant.db.execute(f"VACUUM ANALYZE {table}")
    await forget(tenant, table, 1)

    query = ROWS[table][1]
    call = f"{query}(4)" if query == "retain_receipts" else f"{query}('30 days', 4)"
    plan = json.loads(await tenant.db.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT {call}"))[0]["Plan"]

    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 130, plan
    assert await tenant.count(table) == 20_005


UNFINISHED = {
    "a post that waits for its media": (
        "staged_posts",
        "INSERT INTO staged_posts (workspace_id, endpoint_id, run_id, request, created_at) "
        f"SELECT $1, endpoint_id, new_id(), '{{}}', {OLD} FROM workspace_endpoints",
    ),
    "a run of such a post": (
        "ingest_runs",
        f"WITH r AS (INSERT INTO ingest_runs (workspace_id, kind, started_at) VALUES ($1, 'push', {OLD}) "
        "RETURNING run_id) INSERT INTO staged_posts (workspace_id, endpoint_id, run_id, request) "
        "SELECT $1, endpoint_id, run_id, '{}' FROM workspace_endpoints, r",
    ),
    "a fetch that may have left an object": (
        "media_fetches",
        f"INSERT INTO media_fetches (workspace_id, url_hash, puts, started_at) VALUES ($1, 'a', '{{sha256:1}}', {OLD})",
    ),
    "an update that nobody has answered": (
        "bot_inbox",
        "INSERT INTO bot_inbox (workspace_id, provider, chat_id, provider_message_id, ts) "
        f"VALUES ($1, 'max', '1', '1', {OLD})",
    ),
    "a reply that is not sent": (
        "bot_outbox",
        "INSERT INTO bot_outbox (workspace_id, chat_id, inbound_provider_message_id, response_hash, created_at) "
        f"VALUES ($1, '1', '1', 'x', {OLD})",
    ),
    "a reply to an update that is not done": (
        "bot_outbox",
        "WITH i AS (INSERT INTO bot_inbox (workspace_id, provider, chat_id, provider_message_id) "
        "VALUES ($1, 'max', '1', '1')) INSERT INTO bot_outbox (workspace_id, chat_id, inbound_provider_message_id, "
        f"response_hash, sent_at) VALUES ($1, '1', '1', 'x', {OLD})",
    ),
    "a chat in which the bot has something to do": (
        "bot_chats",
        f"INSERT INTO bot_chats (workspace_id, chat_id, changed_at, due_at) VALUES ($1, '1', {OLD}, now())",
    ),
    "a chat that has a reply": (
        "bot_chats",
        f"WITH c AS (INSERT INTO bot_chats (workspace_id, chat_id, changed_at) VALUES ($1, '1', {OLD})) "
        "INSERT INTO bot_outbox (workspace_id, chat_id, inbound_provider_message_id, response_hash) "
        "VALUES ($1, '1', '1', 'x')",
    ),
    "rules that the bot answers by": (
        "bot_rulesets",
        "INSERT INTO bot_rulesets (workspace_id, ruleset_hash, rules, settings, first_used_at) "
        f"VALUES ($1, 'a', '[]', '{{}}', {OLD})",
    ),
    "an action under way": (
        "bot_actions",
        "INSERT INTO bot_actions (workspace_id, chat_id, action_id, action_type, updated_at, seq) "
        f"VALUES ($1, '1', '1', 'x', {OLD}, 1)",
    ),
    "a state without an end": (
        "bot_state",
        f"INSERT INTO bot_state (workspace_id, chat_id, updated_at) VALUES ($1, '1', {OLD})",
    ),
    "a command that is not published": (
        "command_outbox",
        "INSERT INTO command_outbox (workspace_id, msg_id, subject, payload, created_at) "
        f"VALUES ($1, '1', 's', '{{}}', {OLD})",
    ),
    "an alert that is open": (
        "alerts",
        f"INSERT INTO alerts (workspace_id, condition, opened_at) VALUES ($1, 'dead', {OLD})",
    ),
    "an alert that a target has still to hear of": (
        "alerts",
        f"WITH a AS (INSERT INTO alerts (workspace_id, condition, recovered_at) VALUES ($1, 'dead', {OLD}) "
        "RETURNING alert_id) INSERT INTO alert_notices (workspace_id, alert_id, step, target, kind, notice) "
        "SELECT $1, alert_id, 1, 'smtp', 'recovered', '{}' FROM a",
    ),
}


@pytest.mark.parametrize("kind", UNFINISHED)
async def test_what_is_not_finished_stays_however_old_it_is(tenant, endpoint, kind):
    table, insert = UNFINISHED[kind]
    await tenant.db.execute(insert, tenant.workspace)

    assert await forget(tenant, table) == 0
    assert await tenant.count(table) == 1


async def test_a_reply_that_was_refused_for_good_goes_like_one_that_was_sent(tenant):
    await tenant.db.execute(
        "INSERT INTO bot_outbox (workspace_id, chat_id, inbound_provider_message_id, response_hash, failed_at) "
        f"VALUES ($1, '1', '1', 'x', {OLD}), ($1, '1', '2', 'x', {NEW})",
        tenant.workspace,
    )

    assert await forget(tenant, "bot_outbox") == 1
    assert await tenant.count("bot_outbox") == 1


@pytest.mark.parametrize(
    ("loaded", "replaced", "logged", "left"),
    [
        ("60 days", "50 days", "49 days", 1),  # lines of the time when it answered are forgotten
        ("60 days", "50 days", "55 days", 2),  # one is kept
        ("60 days", "50 days", "50 days", 2),  # a turn may have been committed after the change
        ("40 days", "50 days", "35 days", 2),  # it came back
        ("60 days", "1 minute", "1 second", 2),  # it was replaced just now
    ],
)
async def test_rules_stay_as_long_as_a_line_of_the_log_may_name_them(tenant, loaded, replaced, logged, left):
    await tenant.db.execute(
        "INSERT INTO bot_rulesets (workspace_id, ruleset_hash, rules, settings, first_used_at, last_loaded_at) "
        f"VALUES ($1, 'first', '[]', '{{}}', now() - interval '70 days', now() - interval '{loaded}'), "
        f"($1, 'second', '[]', '{{}}', now() - interval '{replaced}', now() - interval '{replaced}')",
        tenant.workspace,
    )
    await tenant.db.execute(
        "INSERT INTO bot_logs (workspace_id, ts, chat_id, message_text, state_before, state_after) "
        f"VALUES ($1, now() - interval '{logged}', '1', 'hi', 'default', 'default')",
        tenant.workspace,
    )

    await forget(tenant, "bot_rulesets")

    assert await tenant.count("bot_rulesets") == left


@pytest.mark.parametrize(
    ("enabled", "pulled", "left"),
    [(True, OLD, 3), (False, NEW, 3), (False, OLD, 0)],
    ids=["on", "just off", "long off"],
)
async def test_receipts_of_a_source_stay_as_long_as_it_is_on(tenant, enabled, pulled, left):
    await tenant.db.execute(
        "INSERT INTO pull_sources (workspace_id, source_id, kind, enabled, pulled_at) "
        f"VALUES ($1, 'news', 'rss', $2, {pulled})",
        *(tenant.workspace, enabled),
    )
    await tenant.db.execute(
        "INSERT INTO pull_receipts (workspace_id, source_id, source_ref, received_at) "
        f"SELECT $1, 'news', n::text, {OLD} FROM generate_series(1, 3) AS n",
        tenant.workspace,
    )

    for _ in range(2):
        await tenant.db.fetchval("SELECT retain_pull_receipts($1, 2)", MONTH)

    assert await tenant.count("pull_receipts") == left
