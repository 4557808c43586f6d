"""The fold of `autopost verify`: what was doctored, deleted or cut off is found, and named for what it is."""

import json
from uuid import UUID

import pytest
from db.support.builders import Tenant, permanent, sent, transient
from db.support.by_hand import REQUEUE_DEAD
from db.support.verified import differences, kinds, tamper

DELETE = "DELETE FROM events WHERE delivery_id = $1 AND action = $2"


@pytest.fixture
async def retried(database, tenant: Tenant) -> UUID:
    """Enqueued, tried, tried again, sent."""
    await tenant.channel()
    await tenant.enqueue()
    await tenant.commit(transient(await tenant.claim_one(), retry_after_ms=0))
    await tenant.commit(sent(await tenant.claim_one()))
    delivery: UUID = (await tenant.only_delivery())["delivery_id"]
    assert await kinds(database.pool, tenant.workspace) == set()
    return delivery


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        ("status = 'dead'", {"status", "dead_letters"}),
        ("status = 'queued'", {"status", "queue"}),
        ("attempt = 5", {"attempt"}),
        ("max_attempts = 6", {"max_attempts"}),
        ("provider_message_id = '18'", {"provider_message_id"}),
        ("provider_message_id = NULL", {"provider_message_id"}),
        ("sent_at = sent_at - interval '2 minutes'", {"sent_at"}),
        ("sent_at = sent_at + interval '1 millisecond'", {"sent_at"}),
        ("sent_at = NULL", {"sent_at"}),
        ("slot_at = slot_at + interval '1 millisecond'", {"slot_at"}),
        ("created_at = created_at - interval '1 day'", {"created_at"}),
        ("event_count = event_count + 1", {"event_count"}),
        ("message_id = gen_random_uuid()", {"message", "rendering"}),
        ("channel_id = gen_random_uuid()", {"channel"}),
        ("rendering_id = gen_random_uuid()", {"rendering"}),
    ],
)
async def test_a_doctored_row_is_found(database, tenant, retried, assignment, expected):
    await tamper(database.pool, f"UPDATE deliveries SET {assignment} WHERE delivery_id = $1", retried)

    found = await differences(database.pool, tenant.workspace)

    assert {one.kind for one in found} == expected
    assert {one.delivery for one in found} == {str(retried)}
    await tamper(database.pool, "DELETE FROM deliveries WHERE delivery_id = $1", retried)


async def test_a_difference_says_what_the_events_say_and_what_the_row_says(database, tenant, retried):
    await tamper(database.pool, "UPDATE deliveries SET attempt = 5 WHERE delivery_id = $1", retried)

    [difference] = await differences(database.pool, tenant.workspace)

    assert difference == ("attempt", str(retried), "2", "5")


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("enqueue", {"order", "event_count"}),
        ("retry_scheduled", {"order", "event_count"}),
        ("sent", {"status", "event_count", "provider_message_id", "sent_at"}),
    ],
    ids=["the first", "one in between", "the last"],
)
async def test_a_deleted_event_is_found(database, tenant, retried, action, expected):
    await tamper(database.pool, DELETE, retried, action)

    assert await kinds(database.pool, tenant.workspace) == expected


async def test_a_deleted_last_event_that_changed_nothing_is_found_too(database, tenant, operator):
    """Of a skip the row looks as before: only the count knows, and the mark that is left behind."""
    await tenant.channel()
    await tenant.enqueue(max_attempts=1)
    await tenant.commit(transient(await tenant.claim_one()))
    delivery = (await tenant.only_delivery())["delivery_id"]
    await operator.skip(delivery)
    assert await kinds(database.pool, tenant.workspace) == set()

    await tamper(database.pool, DELETE, delivery, "manual_skip")

    assert await kinds(database.pool, tenant.workspace) == {"event_count", "skipped"}


async def test_a_deleted_requeue_by_hand_is_found_though_nobody_counted_it(database, tenant):
    await tenant.channel()
    await tenant.enqueue(max_attempts=1)
    await tenant.commit(transient(await tenant.claim_one()))
    delivery = (await tenant.only_delivery())["delivery_id"]
    await tenant.db.execute(REQUEUE_DEAD, tenant.workspace, [delivery])
    assert await kinds(database.pool, tenant.workspace) == set()

    await tamper(database.pool, DELETE, delivery, "manual_requeue")

    assert await kinds(database.pool, tenant.workspace) == {"status", "max_attempts"}


async def test_a_log_that_was_emptied_is_found(database, tenant, retried):
    await tamper(database.pool, "DELETE FROM events WHERE delivery_id = $1", retried)

    assert [one.kind for one in await differences(database.pool, tenant.workspace)] == ["no_events"]


async def test_a_gap_is_found_even_when_the_count_was_doctored_with_it(database, tenant, retried):
    await tamper(database.pool, DELETE, retried, "retry_scheduled")
    await tamper(database.pool, "UPDATE deliveries SET event_count = event_count - 1 WHERE delivery_id = $1", retried)

    [difference] = await differences(database.pool, tenant.workspace)

    assert (difference.kind, difference.told) == ("order", "send_attempt when it was sending")


async def test_a_lost_attempt_is_found_in_what_the_later_events_say(database, tenant, retried):
    await tamper(
        database.pool, "DELETE FROM events WHERE delivery_id = $1 AND action = 'send_attempt' AND attempt = 1", retried
    )

    found = {one.kind: one.told for one in await differences(database.pool, tenant.workspace)}

    assert found["attempt"] == "1"
    assert "retry_scheduled when it was queued" in str(found["order"])


async def test_an_event_of_another_attempt_is_found(database, tenant, retried):
    await tamper(database.pool, "UPDATE events SET attempt = 7 WHERE delivery_id = $1 AND action = 'sent'", retried)

    [difference] = await differences(database.pool, tenant.workspace)

    assert (difference.kind, difference.told) == ("order", "sent of attempt 7, not 2")


async def test_two_events_with_one_seq_are_found(database, tenant, retried):
    await tamper(database.pool, "UPDATE events SET seq = (SELECT min(seq) FROM events) WHERE delivery_id = $1", retried)

    assert "order" in await kinds(database.pool, tenant.workspace)


async def test_that_somebody_looked_at_a_payload_moves_nothing(database, tenant, retried):
    await tenant.db.execute(
        "INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt) "
        "SELECT workspace_id, delivery_id, message_id, channel_id, 'payload_accessed', attempt FROM deliveries"
    )

    assert await kinds(database.pool, tenant.workspace) == set()


async def test_an_event_of_another_message_is_found(database, tenant, retried):
    await tamper(
        database.pool,
        "UPDATE events SET message_id = gen_random_uuid() WHERE delivery_id = $1 AND action = 'sent'",
        retried,
    )

    assert await kinds(database.pool, tenant.workspace) == {"order"}


async def test_an_event_written_past_the_row_is_found(database, tenant, retried):
    await tenant.db.execute(
        "INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt) "
        "SELECT workspace_id, delivery_id, message_id, channel_id, 'dead_letter', attempt FROM deliveries"
    )

    assert {"status", "order", "event_count"} <= await kinds(database.pool, tenant.workspace)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            "UPDATE events SET ts = ts - interval '2 minutes' WHERE delivery_id = $1 AND action = 'sent'",
            "before the event",
        ),
        (
            "UPDATE events SET meta = meta || '{\"run_id\": \"another\"}' WHERE delivery_id = $1 AND action = 'sent'",
            "by another run",
        ),
        (
            "UPDATE events SET meta = meta || '{\"max_attempts\": 1}' WHERE delivery_id = $1 AND action = 'enqueue'",
            "a retry after attempt 1 of 1",
        ),
        (
            "UPDATE events SET meta = jsonb_set(meta, '{next_retry_at}', to_jsonb(now() + interval '1 hour')) "
            "WHERE delivery_id = $1 AND action = 'retry_scheduled'",
            "send_attempt before",
        ),
        (
            "UPDATE events SET error = error || '{\"retry_after_ms\": 60000}' "
            "WHERE delivery_id = $1 AND action = 'retry_scheduled'",
            "60000 ms were asked for",
        ),
    ],
)
async def test_what_must_not_have_happened_is_found_in_the_log(database, tenant, retried, statement, expected):
    await tamper(database.pool, statement, retried)

    [order] = [one for one in await differences(database.pool, tenant.workspace) if one.kind == "order"]

    assert expected in str(order.told)


async def test_a_part_that_went_out_twice_is_found(database, tenant, retried):
    await tamper(
        database.pool,
        "UPDATE deliveries SET render_meta = jsonb_set(render_meta, '{series_progress}', "
        '\'{"sent_items": [0], "provider_message_ids": [["16"]]}\') WHERE delivery_id = $1',
        retried,
    )
    assert await kinds(database.pool, tenant.workspace) == set()

    await tamper(
        database.pool,
        "UPDATE events SET meta = meta || '{\"parts\": [[\"17\"]]}' WHERE delivery_id = $1 AND action = 'sent'",
        retried,
    )

    assert [one[:3] for one in await differences(database.pool, tenant.workspace)] == [
        ("progress", str(retried), "a part was sent twice")
    ]


async def test_slots_are_judged_from_the_last_change_of_their_rate_on(database, tenant):
    """Of the slots before nobody knows by which rate they were given."""
    channel = await tenant.channel(rate_rps=None)
    await tenant.backlog(channel, 3)
    await tenant.commit(*(sent(claim) for claim in await tenant.claim()))
    await tenant.set_channel(channel, "rate_rps = 0.001")
    assert "slots" not in await kinds(database.pool, tenant.workspace)

    await tamper(database.pool, "UPDATE channels SET rate_since = '-infinity'")

    assert "slots" in await kinds(database.pool, tenant.workspace)
    await tenant.set_channel(channel, "next_allowed_at = NULL")


async def test_a_stale_commit_is_told_and_moves_nothing(database, tenant, retried):
    [verdict] = await tenant.commit({"delivery_id": retried, "claim_token": UUID(int=1), "result": "sent"})

    assert verdict["verdict"] == "stale"
    assert await kinds(database.pool, tenant.workspace) == set()


async def test_a_retry_at_another_time_than_was_told_is_found(database, tenant):
    await tenant.channel()
    await tenant.enqueue()
    claim = await tenant.claim_one()
    await tenant.commit(transient(claim))
    await tenant.set_delivery(claim["delivery_id"], "next_retry_at = next_retry_at + interval '1 millisecond'")

    assert await kinds(database.pool, tenant.workspace) == {"next_retry_at"}


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("DELETE FROM delivery_queue", {"queue"}),
        ("UPDATE delivery_queue SET claim_token = gen_random_uuid()", {"queue"}),
        ("DELETE FROM dead_letters", {"dead_letters"}),
        ("UPDATE dead_letters SET skipped_at = now() WHERE status = 'dead'", {"skipped"}),
        (
            "INSERT INTO delivery_queue SELECT workspace_id, gen_random_uuid(), channel_id, false, now() FROM channels",
            {"queue"},
        ),
        (
            "INSERT INTO dead_letters SELECT workspace_id, gen_random_uuid(), channel_id, 'dead', now() FROM channels",
            {"dead_letters"},
        ),
        ("UPDATE channel_counters SET total = total + 1 WHERE side = 'started'", {"in_flight"}),
    ],
)
async def test_narrow_tables_that_say_something_else_are_found(database, tenant, statement, expected):
    await tenant.channel()
    await tenant.enqueue(max_attempts=1)
    await tenant.commit(transient(await tenant.claim_one()))
    await tenant.enqueue()
    assert await kinds(database.pool, tenant.workspace) == set()

    async with database.pool.acquire() as own:
        await own.execute("BEGIN")
        await own.execute("SET LOCAL session_replication_role = replica")
        await own.execute(statement)
        found = await kinds(own, tenant.workspace)
        await own.execute("ROLLBACK")

    assert found == expected


async def test_a_checkpoint_starts_the_fold(database, tenant, retried):
    """The events before it have left with their partition."""
    await _checkpoint(tenant)
    await tamper(database.pool, "DELETE FROM events WHERE action <> 'checkpoint'")
    assert await kinds(database.pool, tenant.workspace) == set()

    await tamper(database.pool, "UPDATE deliveries SET sent_at = sent_at - interval '1 hour', attempt = 3")

    assert await kinds(database.pool, tenant.workspace) == {"attempt", "sent_at"}


async def test_what_happens_after_a_checkpoint_is_folded_on(database, tenant, operator):
    await tenant.channel()
    await tenant.enqueue(max_attempts=1)
    await tenant.commit(transient(await tenant.claim_one()))
    delivery = (await tenant.only_delivery())["delivery_id"]
    await _checkpoint(tenant)
    assert await operator.requeue_one(delivery) == "requeued"
    await tenant.commit(permanent(await tenant.claim_one()))
    assert await kinds(database.pool, tenant.workspace) == set()

    await tamper(database.pool, DELETE, delivery, "failed_permanent")

    assert await kinds(database.pool, tenant.workspace) == {"status", "event_count"}


async def test_an_orphan_is_an_event_whose_delivery_is_gone_without_being_forgotten(database, tenant, retried):
    await tamper(database.pool, "DELETE FROM deliveries WHERE delivery_id = $1", retried)
    query = "SELECT found FROM verify_events($1, '-infinity', $2)"

    lost = await database.pool.fetchval(query, tenant.workspace, UUID(int=0))
    await database.pool.execute("INSERT INTO retention_marks VALUES ('deliveries', now() + interval '1 minute')")
    forgotten = await database.pool.fetchval(query, tenant.workspace, UUID(int=0))

    assert (lost, forgotten) == (5, 0)


@pytest.mark.parametrize("what", ["message", "channel"])
async def test_an_event_whose_message_or_channel_is_gone_is_an_orphan(database, tenant, retried, what):
    await tamper(database.pool, "DELETE FROM deliveries WHERE delivery_id = $1", retried)
    await tamper(database.pool, "UPDATE events SET delivery_id = NULL")
    assert await orphans(database.pool, tenant) == []
    await tamper(database.pool, f"DELETE FROM {what}s WHERE workspace_id = $1", tenant.workspace)

    found = await orphans(database.pool, tenant)
    await database.pool.execute("INSERT INTO retention_marks VALUES ('messages', now() + interval '1 minute')")
    forgotten = await orphans(database.pool, tenant)

    assert len(found) == 5
    assert all(f"{what}_id" in one for one in found)
    assert len(forgotten) == (0 if what == "message" else 5)


async def orphans(executor, tenant: Tenant) -> list[dict]:
    query = "SELECT differences FROM verify_events($1, '-infinity', $2)"
    found: list[dict] = json.loads(await executor.fetchval(query, tenant.workspace, UUID(int=0)))
    return found


async def test_how_often_it_may_be_tried_is_what_was_given_and_what_hands_have_added(database, tenant, operator):
    await tenant.channel()
    await tenant.enqueue(max_attempts=2)
    await tenant.commit(permanent(await tenant.claim_one()))
    delivery = (await tenant.only_delivery())["delivery_id"]
    assert await kinds(database.pool, tenant.workspace) == set()
    assert await operator.requeue_one(delivery) == "requeued"
    assert await kinds(database.pool, tenant.workspace) == set()

    await tamper(database.pool, "UPDATE deliveries SET max_attempts = 2")

    assert await differences(database.pool, tenant.workspace) == [("max_attempts", str(delivery), "6", "2")]


async def test_a_row_that_is_not_the_workspaces_own_is_not_looked_at(database, tenant, retried):
    other = await Tenant.create(database.pool)

    await tamper(database.pool, "UPDATE deliveries SET attempt = 7")

    assert await kinds(database.pool, other.workspace) == set()


async def _checkpoint(tenant: Tenant) -> None:
    """As retention does before it drops a partition."""
    partition = await tenant.db.fetchval("SELECT DISTINCT tableoid::regclass::text FROM events")
    await tenant.db.fetchval("SELECT checkpoint_deliveries($1, 100)", partition)
