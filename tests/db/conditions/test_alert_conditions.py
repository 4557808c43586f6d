"""Every condition of an alert: not there just below its threshold, there from it on, and with its first causes."""

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from db.support.bots import Bot
from db.support.builders import Tenant, permanent, sent, transient
from db.support.circuits import no_answer
from db.support.hot_calls import unshowable
from db.support.operators import Operator, dead, refused
from db.support.operators import held as held_by_doubt
from db.support.publications import Publisher
from db.support.shop_bot import make_bot
from harness.databases import Database
from harness.eventually import eventually

INSTALLATION = UUID(int=0)
MINUTE = 60

Arrange = Callable[[Tenant, int], Awaitable[None]]


async def conditions(tenant: Tenant, **thresholds: Any) -> dict[str, dict[str, Any]]:
    """What holds in the tenant's workspace, or in the installation itself."""
    rows = await tenant.db.fetch("SELECT * FROM alert_conditions($1)", json.dumps(thresholds))
    ours = [dict(row) for row in rows if row["workspace_id"] in (tenant.workspace, INSTALLATION)]
    return {row["condition"]: row | {"causes": json.loads(row["causes"])} for row in ours}


async def dead_ones(tenant: Tenant, count: int) -> None:
    if count:
        await dead(tenant, await tenant.channel(title="Lost"), count)


async def refused_ones(tenant: Tenant, count: int) -> None:
    channel = await tenant.channel(title="Shut")
    await tenant.backlog(channel, count)
    await tenant.commit(*(permanent(claim, code="chat_not_found") for claim in await tenant.claim()))


async def paused_channels(tenant: Tenant, count: int) -> None:
    for channel in await tenant.channels(count):
        await tenant.set_channel(channel, "paused_until = now() + interval '1 hour'")


async def disabled_channels(tenant: Tenant, count: int) -> None:
    """Those that an operator disabled, without a failure, do not count."""
    await tenant.channel(enabled=False)
    for channel in await tenant.channels(count, title="Gone"):
        await tenant.set_channel(channel, "error_streak = 2")
        await tenant.backlog(channel, 1)
    await tenant.commit(*(permanent(claim, "channel", code="chat_not_found") for claim in await tenant.claim()))


async def held_ones(tenant: Tenant, count: int) -> None:
    channel = await tenant.channel(title="Doubt", on_ambiguous="hold", max_parallel=9)
    await tenant.backlog(channel, count + 1)
    claims = await tenant.claim()
    await tenant.commit(sent(claims[0]), *(transient(claim, ambiguous=True) for claim in claims[1:]))


async def test_a_share_of_paused_channels_is_an_alert_and_a_refused_post_is_none(tenant: Tenant) -> None:
    """Of nine channels one is a ninth, two are more than a fifth."""
    channels = await tenant.channels(9)
    await tenant.set_channel(channels[0], "paused_until = now() + interval '1 hour'")
    few = await conditions(tenant, paused_channels=10, paused_share=0.2)
    await tenant.set_channel(channels[1], "paused_until = now() + interval '1 hour'")

    assert few == {}
    assert (await conditions(tenant, paused_channels=10, paused_share=0.2))["paused_channels"]["found"] == 2
    assert await conditions(tenant, paused_channels=10) == {}


async def test_what_no_plan_could_be_made_for_is_the_senders(tenant: Tenant) -> None:
    await tenant.channel()
    for _ in range(2):
        await tenant.put(unshowable(await tenant.post()))

    assert [row["status"] for row in await tenant.deliveries()] == ["failed_permanent"] * 2
    assert await conditions(tenant, failed_permanent=0) == {}


async def cooled_groups(tenant: Tenant, count: int) -> None:
    """Three channels of one token are told that it is worth nothing: the storm of commit_deliveries."""
    for number in range(count):
        group = f"bot-{number}"
        await tenant.group(None, name=group)
        for channel in await tenant.channels(3, rate_group=group, title=f"Of {group}"):
            await tenant.backlog(channel, 1)
        claims = await tenant.claim()
        await tenant.commit(*(permanent(claim, "channel", code="unauthorized") for claim in claims))


async def outages(tenant: Tenant, count: int) -> None:
    """One delivery on hold in each, two that wait, and one more that has been sent."""
    for number in range(count):
        group = f"away-{number}"
        await tenant.group(None, name=group)
        holds = await tenant.channel(rate_group=group, on_ambiguous="hold")
        waits = await tenant.channel(rate_group=group)
        await tenant.backlog(holds, 1)
        await tenant.backlog(waits, 3)
        first, *rest = sorted(await tenant.claim(), key=lambda claim: claim["channel_id"] == waits)
        await tenant.commit(sent(rest[0]), *(no_answer(claim) for claim in (first, *rest[1:])))


async def overdue(tenant: Tenant, seconds: int) -> None:
    await due_since(tenant, timedelta(seconds=seconds))


async def due_since(tenant: Tenant, age: timedelta, scheduled: timedelta | None = None) -> UUID:
    """Queued so long ago, and due since then, or since ``scheduled`` ago."""
    return await tenant.db.fetchval(
        """
        WITH message AS (
            INSERT INTO messages (workspace_id, content_hash, payload)
            VALUES ($1, gen_random_uuid()::text, '{}')
            RETURNING message_id, content_hash
        )
        INSERT INTO deliveries (workspace_id, message_id, channel_id, hash_version, content_hash, not_before,
                                created_at, scheduled_for)
        SELECT $1, message_id, $2, 1, content_hash, clock_timestamp() - $3::interval, clock_timestamp() - $3::interval,
               clock_timestamp() - $4::interval
        FROM message
        RETURNING channel_id
        """,
        *(tenant.workspace, await tenant.channel(title="Slow"), age, scheduled),
    )


async def failing_source(tenant: Tenant, failures: int) -> None:
    await tenant.db.execute(
        "INSERT INTO pull_sources (workspace_id, source_id, kind, failures, last_error) "
        "VALUES ($1, 'feed', 'rss', $2, $3)",
        *(tenant.workspace, failures, json.dumps({"code": "http_500"})),
    )


async def staged(tenant: Tenant, seconds: int) -> None:
    endpoint = await tenant.db.fetchval(
        "INSERT INTO workspace_endpoints (workspace_id, kind, secret_hash) "
        "VALUES ($1, 'webhook_push', $2) RETURNING endpoint_id",
        *(tenant.workspace, uuid4().hex * 2),
    )
    await tenant.db.execute(
        "INSERT INTO staged_posts (workspace_id, endpoint_id, run_id, request, next_attempt_at, created_at) "
        "VALUES ($1, $2, $3, '{}', clock_timestamp() - $4::interval, clock_timestamp() - $4::interval)",
        *(tenant.workspace, endpoint, uuid4(), timedelta(seconds=seconds)),
    )


async def unsent_reply(tenant: Tenant, seconds: int) -> None:
    await tenant.db.execute(
        "INSERT INTO bot_outbox (workspace_id, chat_id, inbound_provider_message_id, response_hash, created_at, "
        "last_error) VALUES ($1, '79991234567', 'm1', 'h', clock_timestamp() - $2::interval, $3)",
        *(tenant.workspace, timedelta(seconds=seconds), json.dumps({"code": "timeout"})),
    )


async def test_a_reply_that_was_refused_for_good_alerts_nobody(tenant: Tenant) -> None:
    """The first customer who blocks the bot would alert for ever."""
    await unsent_reply(tenant, 6 * MINUTE)
    await tenant.db.execute("UPDATE bot_outbox SET failed_at = now()")

    assert await conditions(tenant, bot_outbox=5 * MINUTE) == {}


async def bot_errors(tenant: Tenant, count: int) -> None:
    await tenant.db.executemany(
        "INSERT INTO events (workspace_id, action, result, error) VALUES ($1, 'bot_reply_failed', 'error', $2)",
        [(tenant.workspace, json.dumps({"code": "forbidden"}))] * count,
    )


async def expired_actions(tenant: Tenant, count: int) -> None:
    await tenant.db.executemany(
        "INSERT INTO events (workspace_id, action, result, error, meta) "
        "VALUES ($1, 'bot_action_expired', 'error', $2, event_meta(NULL, NULL, $3))",
        [(tenant.workspace, json.dumps({"code": "timeout"}), json.dumps({"action_type": "summarize"}))] * count,
    )


async def failed_publications(tenant: Tenant, count: int) -> None:
    for nth in range(count):
        publisher = await Publisher.create(tenant)
        await publisher.begun(f"ad {nth}", owner="ann")
        await tenant.commit(permanent(await tenant.claim_one(), code="message_too_long"))


async def paused_publications(tenant: Tenant, count: int) -> None:
    for nth in range(count):
        publisher = await Publisher.create(tenant)
        await publisher.begun(f"ad {nth}", owner="ann")
        await tenant.commit(transient(await tenant.claim_one(), ambiguous=True))


async def late_publication(tenant: Tenant, seconds: int) -> None:
    publisher = await Publisher.create(tenant)
    await publisher.begun()
    await tenant.db.execute(
        "UPDATE publications SET scheduled_at = clock_timestamp() - make_interval(secs => $1)", seconds
    )


async def lost_webhook(tenant: Tenant, seconds: int) -> None:
    """The last update came so long ago."""
    await make_bot(tenant)
    await tenant.db.execute("SELECT note_webhooks($1, '[]')", tenant.workspace)
    await tenant.db.execute(
        "INSERT INTO bot_chats (workspace_id, chat_id, changed_at, minute_started_at) "
        "SELECT $1, '7', t.at, t.at FROM (SELECT clock_timestamp() - $2::interval) AS t (at)",
        *(tenant.workspace, timedelta(seconds=seconds)),
    )


async def unanswered_update(tenant: Tenant, seconds: int) -> None:
    await (await Bot.create(tenant)).arrive()
    await tenant.db.execute("UPDATE bot_inbox SET ts = ts - $1::interval", timedelta(seconds=seconds))


async def not_understood(tenant: Tenant, count: int) -> None:
    """So many of 24 messages."""
    await log_turns(tenant, clarified=count, matched=24 - count)


async def log_turns(tenant: Tenant, **outcomes: int) -> None:
    await tenant.db.executemany(
        "INSERT INTO bot_logs (workspace_id, chat_id, message_text, state_before, state_after, meta) "
        "VALUES ($1, '7', 'text', 'default', 'default', $2)",
        [(tenant.workspace, json.dumps({"outcome": one})) for one, count in outcomes.items() for _ in range(count)],
    )


async def test_a_bot_that_understands_nothing_of_a_few_messages_is_no_alert(tenant: Tenant) -> None:
    await log_turns(tenant, clarified=19, silent=50)

    assert await conditions(tenant, bot_fallback=0.5) == {}


async def test_one_reply_that_is_sent_ends_a_row_of_failures(tenant: Tenant) -> None:
    await bot_errors(tenant, 5)
    await tenant.db.execute(
        "INSERT INTO bot_outbox (workspace_id, chat_id, inbound_provider_message_id, response_hash, sent_at) "
        "VALUES ($1, '7', 'mid', '', clock_timestamp())",
        tenant.workspace,
    )

    assert await conditions(tenant, bot_adapter=5) == {}


async def test_an_unanswered_update_says_what_it_waits_for(tenant: Tenant) -> None:
    await unanswered_update(tenant, 2 * MINUTE)
    causes = []
    for change in (
        "UPDATE bot_settings SET enabled = false",
        "UPDATE bot_settings SET enabled = true",
        "UPDATE platform_limits SET circuit = 'open', opened_at = now(), probe_at = now()",
    ):
        await tenant.db.execute(change)
        causes.append((await conditions(tenant, bot_inbox=MINUTE))["bot_inbox"]["causes"][0]["code"])

    assert causes == ["bot_off", "unanswered", "platform_away"]


async def orphans(tenant: Tenant, count: int) -> None:
    await tenant.db.executemany(
        "INSERT INTO missing_references (workspace_id, what, ref, events, first_event_id, first_event_at) "
        "VALUES ($1, 'delivery', $2, 1, $3, now())",
        [(tenant.workspace, uuid4(), uuid4()) for _ in range(count)],
    )


async def set_aside(tenant: Tenant, failures: int) -> None:
    await tenant.db.execute(
        "SELECT set_aside($1, 'claim', $2, interval '1 minute', 'NumericValueOutOfRangeError 22003')",
        *(tenant.workspace, failures),
    )


async def silenced(tenant: Tenant, seconds: int) -> None:
    await tenant.group(1)
    await tenant.channel()
    await tenant.db.execute(
        "UPDATE platform_limits SET next_allowed_at = clock_timestamp() + $1::interval", timedelta(seconds=seconds)
    )


ALL: dict[str, tuple[Arrange, Any, int, int, int, dict[str, Any]]] = {
    # condition: how it comes about, threshold, just not, just so, what is then found, its first cause
    "dead": (dead_ones, 3, 2, 3, 3, {"name": "Lost", "code": "boom", "count": 3}),
    "failed_permanent": (refused_ones, 4, 4, 5, 5, {"name": "Shut", "code": "chat_not_found", "count": 5}),
    "paused_channels": (paused_channels, 2, 2, 3, 3, {}),
    "disabled_channels": (disabled_channels, 2, 1, 2, 2, {"name": "Gone", "code": "chat_not_found"}),
    "held_deliveries": (held_ones, 2, 1, 2, 2, {"name": "Doubt", "code": "boom", "count": 2}),
    "cooled_groups": (cooled_groups, 1, 0, 1, 1, {"name": "telegram bot-0", "code": "unauthorized", "count": 3}),
    "open_circuits": (outages, 2, 1, 2, 2, {"code": "http_502"}),
    "oldest_due": (overdue, 10 * MINUTE, 9 * MINUTE, 11 * MINUTE, 1, {"name": "Slow", "count": 1}),
    "pull_sources": (failing_source, 5, 4, 5, 1, {"name": "feed", "code": "http_500", "count": 5}),
    "staged_posts": (staged, 15 * MINUTE, 14 * MINUTE, 16 * MINUTE, 1, {"name": "untaken", "count": 1}),
    "bot_outbox": (unsent_reply, 5 * MINUTE, 4 * MINUTE, 6 * MINUTE, 1, {"name": "reply", "code": "timeout"}),
    "bot_errors": (bot_errors, 3, 3, 4, 4, {"name": "reply", "code": "forbidden", "count": 4}),
    "bot_actions_expired": (expired_actions, 5, 5, 6, 6, {"name": "summarize", "code": "timeout", "count": 6}),
    "bot_inbox": (unanswered_update, MINUTE, 50, 70, 1, {"name": "update", "code": "unanswered"}),
    "bot_fallback": (not_understood, 0.5, 12, 13, 13, {"name": "message", "code": "clarified", "count": 13}),
    "bot_adapter": (bot_errors, 5, 4, 5, 5, {"name": "reply", "code": "forbidden", "count": 5}),
    "bot_webhook": (
        lost_webhook,
        *(60 * MINUTE, 59 * MINUTE, 61 * MINUTE, 1),
        {"name": "webhook", "code": "not_subscribed"},
    ),
    "publications_failed": (failed_publications, 2, 1, 2, 2, {"name": "ann", "code": "content"}),
    "publications_paused": (paused_publications, 2, 1, 2, 2, {"name": "ann", "code": "unconfirmed"}),
    "publications_late": (late_publication, 5 * MINUTE, 4 * MINUTE, 6 * MINUTE, 1, {"code": "late"}),
    "set_aside": (set_aside, 3, 2, 3, 1, {"name": "claim", "code": "NumericValueOutOfRangeError 22003", "count": 3}),
    "provider_waits": (silenced, 60 * MINUTE, 59 * MINUTE, 61 * MINUTE, 1, {"name": "telegram bot"}),
    "orphan_events": (orphans, 2, 1, 2, 2, {"name": "missing delivery", "count": 1}),
}


@pytest.mark.parametrize("condition", ALL)
async def test_just_below_its_threshold_a_condition_does_not_hold(tenant: Tenant, condition: str) -> None:
    arrange, threshold, below, *_ = ALL[condition]
    await arrange(tenant, below)

    assert await conditions(tenant, **{condition: threshold}) == {}


@pytest.mark.parametrize("condition", ALL)
async def test_from_its_threshold_on_a_condition_holds_and_names_its_first_cause(
    tenant: Tenant, condition: str
) -> None:
    arrange, threshold, _, enough, found, cause = ALL[condition]
    await arrange(tenant, enough)

    held = await conditions(tenant, **{condition: threshold})

    assert set(held) == {condition}
    assert (held[condition]["workspace_id"], held[condition]["found"]) == (tenant.workspace, found)
    assert held[condition]["threshold"] == threshold
    assert cause.items() <= held[condition]["causes"][0].items()


@pytest.mark.parametrize("condition", ALL)
async def test_a_condition_that_is_switched_off_never_holds(tenant: Tenant, condition: str) -> None:
    arrange, _, _, enough, *_ = ALL[condition]
    await arrange(tenant, enough)

    assert await conditions(tenant, **{condition: None}) == {}
    assert await conditions(tenant) == {}


async def test_an_outage_says_since_when_and_what_is_held(tenant: Tenant) -> None:
    await outages(tenant, 1)
    row = await tenant.db.fetchrow("SELECT opened_at FROM platform_limits WHERE workspace_id = $1", tenant.workspace)
    assert row

    held = (await conditions(tenant, open_circuits=1))["open_circuits"]

    since = row["opened_at"]
    assert held["since"] == since
    assert held["causes"] == [
        {"name": f"telegram away-0 (since {since.astimezone(UTC):%H:%M}, 2 waiting, 1 on hold)", "code": "http_502"}
    ]


async def test_a_group_without_channels_is_no_outage(tenant: Tenant) -> None:
    await outages(tenant, 1)
    await tenant.db.execute("UPDATE channels SET rate_group = 'bot' WHERE workspace_id = $1", tenant.workspace)

    assert await conditions(tenant, open_circuits=1) == {}


async def test_a_post_that_is_tried_again_and_again_is_stuck_at_the_deadline_that_is_configured(tenant: Tenant) -> None:
    await staged(tenant, 61 * MINUTE)
    await tenant.db.execute("UPDATE staged_posts SET next_attempt_at = clock_timestamp()")

    held = await conditions(tenant, staged_posts=15 * MINUTE, staged_deadline=60 * MINUTE)

    assert held["staged_posts"]["causes"][0]["name"] == "late"
    assert await conditions(tenant, staged_posts=15 * MINUTE) == {}
    assert await conditions(tenant, staged_posts=None, staged_deadline=60 * MINUTE) == {}


async def test_switched_off_not_even_a_post_beyond_every_deadline_counts(tenant: Tenant) -> None:
    await staged(tenant, 7 * 60 * MINUTE)

    assert await conditions(tenant, staged_posts=None) == {}
    assert set(await conditions(tenant, staged_posts=MINUTE)) == {"staged_posts"}


async def test_what_holds_in_one_workspace_is_not_told_of_another(database: Database, tenant: Tenant) -> None:
    other = await Tenant.create(database.pool)
    await dead_ones(tenant, 2)

    rows = await database.pool.fetch("SELECT workspace_id, found FROM alert_conditions('{\"dead\": 1}')")

    assert [tuple(row) for row in rows] == [(tenant.workspace, 2)]
    assert await conditions(other, dead=1) == {}


async def test_a_dead_delivery_that_was_skipped_is_no_longer_counted(tenant: Tenant, operator: Operator) -> None:
    [one, two] = await dead(tenant, await tenant.channel(), 2)
    await operator.skip(one)

    assert (await conditions(tenant, dead=1))["dead"]["found"] == 1

    await operator.skip(two)
    assert await conditions(tenant, dead=1) == {}


async def test_what_a_catch_up_policy_dropped_is_no_failure(tenant: Tenant, operator: Operator) -> None:
    channel = await tenant.channel(catch_up={"policy": "newest", "keep": 0})
    await operator.disable(channel)
    await tenant.backlog(channel, 3)
    await operator.enable(channel)

    statuses = {row["status"] for row in await tenant.deliveries()}
    assert statuses == {"failed_permanent"}
    assert await conditions(tenant, failed_permanent=0) == {}


async def test_a_refusal_of_more_than_ten_minutes_ago_is_history(tenant: Tenant) -> None:
    await refused(tenant, await tenant.channel())
    await tenant.db.execute("UPDATE dead_letters SET given_up_at = now() - interval '11 minutes'")

    assert await conditions(tenant, failed_permanent=0) == {}


async def test_a_paused_channel_is_named_with_what_closed_it(tenant: Tenant, operator: Operator) -> None:
    await operator.pause(await tenant.channel(title="Quiet"))

    held = (await conditions(tenant, paused_channels=0))["paused_channels"]

    assert [(cause["name"], cause["code"]) for cause in held["causes"]] == [("Quiet", "because")]
    assert held["since"] < datetime.now(UTC)


async def test_a_pause_that_is_over_does_not_count(tenant: Tenant) -> None:
    await tenant.set_channel(await tenant.channel(), "paused_until = now() - interval '1 second'")

    assert await conditions(tenant, paused_channels=0) == {}


@pytest.mark.parametrize("closing", ["enabled = false", "paused_until = now() + interval '1 hour'"])
async def test_a_closed_channel_holds_back_what_it_should(tenant: Tenant, closing: str) -> None:
    channel = await due_since(tenant, timedelta(hours=1))
    await tenant.set_channel(channel, closing)

    assert await conditions(tenant, oldest_due=MINUTE) == {}


async def test_what_was_queued_long_ago_for_just_now_is_not_overdue(tenant: Tenant) -> None:
    """Awake rows are sorted by when they were queued, which is not when they were due."""
    await due_since(tenant, timedelta(hours=1), scheduled=timedelta(seconds=1))

    assert await conditions(tenant, oldest_due=MINUTE) == {}


async def test_what_sleeps_although_its_time_has_come_is_overdue(tenant: Tenant) -> None:
    """Nobody claims: then nobody wakes it either."""
    await due_since(tenant, timedelta(seconds=-4))
    assert await tenant.db.fetchval("SELECT asleep FROM delivery_queue")
    assert await conditions(tenant, oldest_due=0.05) == {}

    held = await eventually(lambda: conditions(tenant, oldest_due=0.05))

    assert held["oldest_due"]["found"] == 1


async def test_what_waits_for_a_human_is_not_overdue(tenant: Tenant) -> None:
    await held_by_doubt(tenant)

    assert await conditions(tenant, oldest_due=0.001) == {}


async def test_a_workspace_that_is_disabled_is_left_in_peace(tenant: Tenant) -> None:
    await dead_ones(tenant, 1)
    await refused_ones(tenant, 1)
    await overdue(tenant, 3600)
    await tenant.db.execute("UPDATE workspaces SET status = 'disabled'")

    assert await conditions(tenant, dead=1, failed_permanent=0, oldest_due=MINUTE) == {}


async def test_the_causes_of_a_bot_name_no_chat(tenant: Tenant) -> None:
    await unsent_reply(tenant, 3600)

    held = await conditions(tenant, bot_outbox=MINUTE)

    assert "79991234567" not in json.dumps(held["bot_outbox"]["causes"])


async def test_partitions_that_end_too_soon_are_the_installations_trouble(tenant: Tenant) -> None:
    day = 86400
    assert await conditions(tenant, event_partitions=14 * day) == {}

    held = await conditions(tenant, event_partitions=365 * day)

    assert held["event_partitions"]["workspace_id"] == INSTALLATION
    assert 28 <= held["event_partitions"]["found"] <= 50


async def test_a_late_audit_stream_is_the_installations_trouble(tenant: Tenant) -> None:
    await tenant.db.execute(
        "INSERT INTO relay_state (relay, system_identifier) "
        "SELECT 'audit', system_identifier FROM pg_control_system() ON CONFLICT DO NOTHING"
    )
    old = datetime.now(UTC) - timedelta(minutes=3)
    await tenant.db.execute(
        "INSERT INTO events (workspace_id, action, ts) VALUES ($1, 'enqueue', $2)", tenant.workspace, old
    )

    assert await conditions(tenant, relay_lag=4 * MINUTE) == {}
    held = (await conditions(tenant, relay_lag=2 * MINUTE))["relay_lag"]

    assert (held["workspace_id"], held["found"]) == (INSTALLATION, 1)
    assert abs(held["since"] - old) < timedelta(seconds=5)


async def test_only_the_five_worst_causes_are_named(tenant: Tenant) -> None:
    for number in range(7):
        await dead(tenant, await tenant.channel(title=f"Channel {number}"), 1 + number % 3)

    causes = (await conditions(tenant, dead=1))["dead"]["causes"]

    assert [cause["count"] for cause in causes] == [3, 3, 2, 2, 1]
