"""What a tenant's row may hold is bounded: no value that is accepted makes a claim, an enqueue or a poll fail."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from db.support.builders import Tenant, permanent, sent, transient
from harness.databases import Database

RATES = ["NaN", "Infinity", "-Infinity", "-1", "1e-15", "0.0000009", "1000001", "1e100"]
DAY = timedelta(days=1)


@pytest.fixture
async def tenant(database: Database) -> Tenant:
    return await Tenant.create(database.pool)


@pytest.mark.parametrize("rate", RATES)
async def test_a_rate_that_no_claim_could_keep_is_refused(tenant: Tenant, rate: str) -> None:
    channel = await tenant.channel()
    await tenant.group(1)
    endpoint = (
        "INSERT INTO workspace_endpoints (workspace_id, kind, secret_hash, ingress_rps) "
        "VALUES ($1, 'webhook_push', encode(sha256('x'), 'hex'), $2)"
    )

    for statement, values in (
        ("UPDATE channels SET rate_rps = $2 WHERE channel_id = $1", (channel, Decimal(rate))),
        ("UPDATE platform_limits SET rate_rps = $2 WHERE workspace_id = $1", (tenant.workspace, Decimal(rate))),
        (endpoint, (tenant.workspace, Decimal(rate))),
    ):
        with pytest.raises(asyncpg.CheckViolationError):
            await tenant.db.execute(statement, *values)


@pytest.mark.parametrize("rate", [None, "0", "0.000001", "1", "1000000"])
async def test_with_every_rate_that_is_accepted_a_post_goes_out(tenant: Tenant, rate: str | None) -> None:
    given = None if rate is None else Decimal(rate)
    channel = await tenant.channel(rate_rps=given)
    await tenant.db.execute("UPDATE platform_limits SET rate_rps = $1", given)
    await tenant.backlog(channel, 2)

    [claim] = await tenant.claim(1)
    await tenant.commit(sent(claim))

    assert await tenant.db.fetchval("SELECT next_due_at($1)", tenant.workspace) is not None
    assert await tenant.db.fetchval("SELECT count(*) FROM due_workspaces()") == 1


ABSURD: dict[str, tuple[str, Any]] = {
    "dedup_ttl_hours": ("dedup_ttl_hours", 2_147_483_647),
    "negative dedup_ttl_hours": ("dedup_ttl_hours", -1),
    "max_parallel": ("max_parallel", 2_147_483_647),
    "no max_parallel": ("max_parallel", 0),
    "paused_until": ("paused_until", "99999-01-01"),
    "catch_up weeks": ("catch_up", '{"policy": "drop_older", "older_than": "999999 weeks"}'),
    "catch_up days": ("catch_up", '{"policy": "drop_older", "older_than": "100000 days"}'),
    "catch_up infinity": ("catch_up", '{"policy": "drop_older", "older_than": "infinity"}'),
    "huge number in settings": ("settings", '{"message_thread_id": 1e400}'),
    "deep settings": ("settings", '{"a":' + "[" * 1000 + "]" * 1000 + "}"),
    "settings of a megabyte": ("settings", json.dumps({"a": "x" * 1_000_000})),
    "huge number deep in settings": ("settings", '{"a": [{"b": -1e400}]}'),
    "timezone": ("timezone", "Mars/Olympus"),
    "posting_window": ("posting_window", '{"mon": [["25:00", "26:00"]]}'),
    "posting_window of text": ("posting_window", '{"mon": "always"}'),
    "posting_window of nothing": ("posting_window", "null"),
    "posting_window of 1000 spans": ("posting_window", json.dumps({"mon": [["09:00", "10:00"]] * 1000})),
    "10000 holidays": ("posting_window", json.dumps({"holidays": ["2026-01-01"] * 10_000})),
    "route_filter": ("route_filter", '{"include_any": {"a": 1}}'),
}


@pytest.mark.parametrize("what", ABSURD)
async def test_a_value_that_would_make_functions_fail_is_refused(tenant: Tenant, what: str) -> None:
    column, value = ABSURD[what]
    channel = await tenant.channel()
    cast = "" if isinstance(value, int) else "::text::timestamptz" if column == "paused_until" else "::text"
    cast = "::text::jsonb" if column in ("catch_up", "settings", "posting_window", "route_filter") else cast

    with pytest.raises((asyncpg.CheckViolationError, asyncpg.PostgresError)) as refused:
        await tenant.set_channel(channel, f"{column} = $3{cast}", value)

    assert refused.value.sqlstate in ("23514", "AP009")


DEFAULTS = {
    "deep": '{"a":' + "[" * 1000 + "]" * 1000 + "}",
    "huge": '{"a": 1e400}',
    "a list": "[]",
    "null": "null",
    "a megabyte": json.dumps({"a": "x" * 1_000_000}),
}


@pytest.mark.parametrize("defaults", DEFAULTS)
async def test_defaults_of_a_template_that_no_post_could_be_compiled_with_are_refused(
    tenant: Tenant, defaults: str
) -> None:
    with pytest.raises(asyncpg.CheckViolationError):
        await tenant.db.execute(
            "INSERT INTO templates (workspace_id, template_id, body, defaults) VALUES ($1, 'a', 'x', $2::text::jsonb)",
            *(tenant.workspace, DEFAULTS[defaults]),
        )


async def test_a_template_longer_than_any_post_is_refused(tenant: Tenant) -> None:
    statement = "INSERT INTO templates (workspace_id, template_id, body) VALUES ($1, 'a', repeat('x', $2))"

    await tenant.db.execute(statement, tenant.workspace, 65_536)

    with pytest.raises(asyncpg.CheckViolationError):
        await tenant.db.execute(statement.replace("'a'", "'b'"), tenant.workspace, 65_537)


async def test_with_the_largest_values_that_are_accepted_posts_are_queued_claimed_and_caught_up(tenant: Tenant) -> None:
    columns = {
        "dedup_ttl_hours": 876_000,
        "max_parallel": 1_000_000,
        "catch_up": {"policy": "drop_older", "older_than": "9999 weeks"},
        "settings": {"message_thread_id": 10**15},
    }
    channel = await tenant.channel(**columns)
    await tenant.set_channel(channel, "paused_until = now() - interval '1 second'")

    await tenant.enqueue("one")
    await tenant.commit(sent(await tenant.claim_one()))
    again = await tenant.enqueue("one")

    assert again["deduped"] == 1


@pytest.mark.parametrize("asked", [86_400_001, 999_999_999_000, 2 * 10**16, 10**30])
@pytest.mark.parametrize("scope", ["platform", "channel", "delivery"])
async def test_a_wait_of_more_than_a_day_is_a_day_whoever_writes_it(tenant: Tenant, scope: str, asked: int) -> None:
    await tenant.group(1)
    channel = await tenant.channel()
    [delivery] = await tenant.backlog(channel, 1)
    claim = await tenant.claim_one()

    await tenant.commit(transient(claim, scope, code="rate_limited", retry_after_ms=asked))

    latest = datetime.now(UTC) + DAY
    retry_at = await tenant.db.fetchval("SELECT next_retry_at FROM deliveries WHERE delivery_id = $1", delivery)
    gates = await tenant.db.fetch(
        "SELECT next_allowed_at FROM platform_limits UNION ALL SELECT next_allowed_at FROM channels"
    )
    error = await tenant.db.fetchval("SELECT error ->> 'retry_after_ms' FROM events WHERE result = 'error'")
    assert latest - timedelta(hours=1) < retry_at <= latest
    assert all(row["next_allowed_at"] is None or row["next_allowed_at"] <= latest for row in gates)
    assert int(error) == min(asked, 10**15)


async def test_two_channels_that_moved_to_one_chat_are_told_one_after_the_other(tenant: Tenant) -> None:
    """Together they break a key. One by one, which is how a refused batch is committed, both are recorded."""
    channels = [await tenant.channel(), await tenant.channel()]
    for channel in channels:
        await tenant.backlog(channel, 1)
    moved = [transient(claim, code="chat_migrated", migrated_to="-100200") for claim in await tenant.claim()]

    with pytest.raises(asyncpg.UniqueViolationError):
        await tenant.commit(*moved)
    for one in moved:
        await tenant.commit(one)

    targets = [(await tenant.state(channel))["target_id"] for channel in channels]
    assert targets.count("-100200") == 1
    assert {row["status"] for row in await tenant.deliveries()} == {"retry"}


async def test_what_was_set_aside_is_told_by_why_until_it_works_again(tenant: Tenant) -> None:
    channel = await tenant.channel()
    [delivery] = await tenant.backlog(channel, 1)

    async def gate() -> dict[str, Any]:
        rows = await tenant.db.fetch("SELECT * FROM why_delivery($1, $2)", tenant.workspace, [delivery])
        return dict(rows[0])

    await _set_aside(tenant, 1)
    first = await gate()
    await _set_aside(tenant, 2)
    second = await gate()
    await _set_aside(tenant, 0)
    third = await gate()

    assert (first["gate"], second["gate"], third["gate"]) == ("set_aside", "set_aside", "queued_behind")
    assert second["since"] == first["since"]
    assert second["until"] > first["until"]
    assert '"code": "KeyError"' in second["cause"]


async def test_an_entry_that_nobody_renews_is_no_longer_told(tenant: Tenant) -> None:
    channel = await tenant.channel()
    await tenant.backlog(channel, 1)
    await _set_aside(tenant, 5)
    await tenant.db.execute("UPDATE set_aside SET until = clock_timestamp() - interval '6 minutes'")

    gates = await tenant.db.fetch("SELECT gate FROM why_channel($1, $2)", tenant.workspace, [channel])
    found = await tenant.db.fetch("SELECT * FROM alert_conditions('{\"set_aside\": 1}')")

    assert (gates, found) == ([], [])


async def test_one_condition_that_fails_does_not_silence_the_others(tenant: Tenant) -> None:
    channel = await tenant.channel()
    await tenant.backlog(channel, 1)
    await tenant.commit(permanent(await tenant.claim_one()))
    await tenant.db.execute(
        "CREATE OR REPLACE FUNCTION condition_dead(p_at_least bigint) "
        "RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb) LANGUAGE sql STABLE "
        "AS $$ SELECT w.workspace_id, 1 / (p_at_least - p_at_least), now(), '[]'::jsonb FROM workspaces w "
        "WHERE p_at_least IS NOT NULL $$"
    )
    thresholds = '{"dead": 1, "failed_permanent": 0}'

    with pytest.raises(asyncpg.DivisionByZeroError):
        await tenant.db.fetch("SELECT * FROM evaluate_alerts($1)", thresholds)
    told = await tenant.db.fetchrow("SELECT * FROM working_conditions($1)", thresholds)
    moved = await tenant.db.fetch("SELECT condition FROM evaluate_alerts($1)", told["sound"])

    assert told["broken"] == '{"dead": "22012"}'
    assert [row["condition"] for row in moved] == ["failed_permanent"]


async def test_a_claim_whose_answer_was_lost_is_given_back_and_nobody_elses(tenant: Tenant) -> None:
    channel = await tenant.channel()
    await tenant.backlog(channel, 4)
    [known] = await tenant.claim(1)
    [lost] = await tenant.claim(1)
    [others] = await tenant.claim(1, run_id=uuid4())

    given_back = await tenant.db.fetchval(
        "SELECT give_back_claims($1, $2, $3, interval '1 minute')",
        *(tenant.workspace, tenant.run_id, [known["claim_token"]]),
    )

    statuses = {row["delivery_id"]: row["status"] for row in await tenant.deliveries()}
    assert given_back == 1
    assert [statuses[one["delivery_id"]] for one in (known, lost, others)] == ["sending", "retry", "sending"]
    last_error: UUID | None = await tenant.db.fetchval(
        "SELECT last_error FROM deliveries WHERE delivery_id = $1", lost["delivery_id"]
    )
    assert last_error is None  # nothing is in doubt


async def _set_aside(tenant: Tenant, failures: int) -> None:
    await tenant.db.execute(
        "SELECT set_aside($1, 'claim', $2, $3, 'KeyError')",
        *(tenant.workspace, failures, timedelta(seconds=10 * failures)),
    )


async def test_failures_of_many_under_one_name_are_counted_on(tenant: Tenant) -> None:
    """Outcomes that fail once each must alert as well as one that fails often."""
    for _ in range(3):
        await _set_aside(tenant, 1)

    assert await tenant.db.fetchval("SELECT failures FROM set_aside") == 3
