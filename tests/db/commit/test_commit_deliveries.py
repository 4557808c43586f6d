"""Commit: every ending moves its delivery once, under the token it was claimed with, and tells what happened."""

import json
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest
from db.support.builders import NEVER, Tenant, failed, permanent, released, sent, transient


@pytest.fixture
async def claim(tenant: Tenant) -> asyncpg.Record:
    await tenant.backlog(await tenant.channel(), 1)
    return await tenant.claim_one()


async def claim_again(tenant: Tenant, delivery: UUID) -> asyncpg.Record:
    await tenant.set_delivery(delivery, "next_retry_at = now()")
    return await tenant.claim_one()


async def test_sent(tenant, claim):
    [verdict] = await tenant.commit(sent(claim, provider_message_id="99", parts=[["99"]], meta={"ms": 5}))

    row = await tenant.delivery(claim["delivery_id"])
    event = (await tenant.events())[-1]
    meta = json.loads(event["meta"])
    assert (verdict["verdict"], verdict["status"], verdict["next_retry_at"]) == ("committed", "sent", None)
    assert (row["status"], row["provider_message_id"], row["attempt"]) == ("sent", "99", 1)
    assert row["sent_at"] is not None
    assert [row[name] for name in ("claim_token", "claimed_at", "sending_started_at", "sending_lease_until")] == [
        None
    ] * 4
    assert (event["what"], event["ended"], event["attempt"]) == ("sent", "ok", 1)
    assert (meta["provider_message_id"], meta["parts"], meta["ms"]) == ("99", [["99"]], 5)


async def test_a_transient_failure_is_tried_again_later(tenant, claim):
    [verdict] = await tenant.commit(transient(claim, code="503", message="busy", payload_ref="s3://x"), jitter=0.5)

    row = await tenant.delivery(claim["delivery_id"])
    event = (await tenant.events())[-1]
    assert (row["status"], row["attempt"], row["next_retry_at"]) == ("retry", 1, verdict["next_retry_at"])
    assert row["next_retry_at"] - row["updated_at"] == timedelta(seconds=2)
    assert json.loads(row["last_error"]) == {
        "category": "TRANSIENT",
        "scope": "delivery",
        "code": "503",
        "message": "busy",
    }
    assert (event["what"], event["ended"], event["payload_ref"]) == ("retry_scheduled", "error", "s3://x")
    assert datetime.fromisoformat(json.loads(event["meta"])["next_retry_at"]) == row["next_retry_at"]
    assert await tenant.history(claim["delivery_id"]) == ["send_attempt", "retry_scheduled"]


@pytest.mark.parametrize("scope", ["delivery", "channel", "platform"])
async def test_every_permanent_failure_is_final(tenant, claim, scope):
    await tenant.commit(permanent(claim, scope, code="403"))

    row = await tenant.delivery(claim["delivery_id"])
    assert (row["status"], row["next_retry_at"]) == ("failed_permanent", None)
    assert json.loads(row["last_error"])["scope"] == scope
    assert (await tenant.history(claim["delivery_id"]))[:2] == ["send_attempt", "failed_permanent"]


async def test_the_last_attempt_that_fails_is_the_end(tenant, claim):
    delivery = claim["delivery_id"]
    for _ in range(4):
        await tenant.commit(transient(claim))
        claim = await claim_again(tenant, delivery)

    [verdict] = await tenant.commit(transient(claim))

    row = await tenant.delivery(delivery)
    assert (verdict["status"], row["status"], row["attempt"]) == ("dead", "dead", 5)
    assert (await tenant.history(delivery))[-2:] == ["send_attempt", "dead_letter"]


async def test_an_ambiguous_ending_is_held_where_the_channel_says_so(tenant):
    await tenant.backlog(await tenant.channel(on_ambiguous="hold"), 1)
    claim = await tenant.claim_one()

    await tenant.commit(transient(claim, ambiguous=True))

    row = await tenant.delivery(claim["delivery_id"])
    assert (row["status"], row["next_retry_at"], row["hold_reason"]) == ("retry", NEVER, "ambiguous")
    assert await tenant.history(claim["delivery_id"]) == ["send_attempt", "held"]
    assert await tenant.claim() == []
    assert await tenant.next_due_at() == NEVER


async def test_an_ambiguous_ending_is_sent_again_elsewhere_and_says_so(tenant, claim):
    await tenant.commit(transient(claim, ambiguous=True))

    row = await tenant.delivery(claim["delivery_id"])
    assert (row["status"], row["hold_reason"]) == ("retry", None)
    assert json.loads(row["last_error"])["ambiguous"] is True


async def test_a_certain_failure_is_not_held(tenant):
    await tenant.backlog(await tenant.channel(on_ambiguous="hold"), 1)

    await tenant.commit(transient(await tenant.claim_one()))

    assert (await tenant.only_delivery())["hold_reason"] is None


async def test_what_is_released_is_due_at_once_and_no_error(tenant, claim):
    await tenant.commit(released(claim))

    row = await tenant.delivery(claim["delivery_id"])
    assert (row["status"], row["last_error"]) == ("retry", None)
    assert (await tenant.events())[-1]["ended"] == "ok"
    assert (await tenant.claim_one())["delivery_id"] == claim["delivery_id"]


async def test_a_stale_token_changes_nothing_but_leaves_a_word(tenant, claim):
    await tenant.recover(now=datetime.now(UTC) + timedelta(hours=1))
    before = await tenant.delivery(claim["delivery_id"])

    [verdict] = await tenant.commit(sent(claim, provider_message_id="late"))

    event = (await tenant.events())[-1]
    assert (verdict["verdict"], verdict["status"]) == ("stale", None)
    assert await tenant.delivery(claim["delivery_id"]) == before
    assert event["what"] == "stale_commit"
    assert json.loads(event["meta"])["provider_message_id"] == "late"


@pytest.mark.parametrize("scope", ["channel", "platform"])
async def test_a_stale_failure_punishes_nobody(tenant, claim, scope):
    await tenant.commit(sent(claim))

    await tenant.commit(permanent(claim, scope))

    channel = await tenant.state(claim["channel_id"])
    assert (channel["error_streak"], channel["paused_until"], channel["enabled"]) == (0, None, True)
    assert await tenant.db.fetchval("SELECT next_allowed_at FROM platform_limits") is None


async def test_a_commit_that_is_repeated_is_stale(tenant, claim):
    verdicts = [(await tenant.commit(sent(claim)))[0]["verdict"] for _ in range(2)]

    assert verdicts == ["committed", "stale"]


async def test_an_outcome_for_nothing_is_stale(tenant, claim):
    [verdict] = await tenant.commit({**sent(claim), "delivery_id": str(uuid4())})

    assert verdict["verdict"] == "stale"


async def test_a_late_result_beside_the_current_one_stays_late(tenant, claim):
    """Both may sit in one batch of a worker that lost its lease and got the delivery again."""
    await tenant.commit(transient(claim))
    current = await claim_again(tenant, claim["delivery_id"])

    verdicts = await tenant.commit(sent(claim, provider_message_id="late"), transient(current))

    row = await tenant.delivery(claim["delivery_id"])
    assert [verdict["verdict"] for verdict in verdicts] == ["stale", "committed"]
    assert (row["status"], row["provider_message_id"]) == ("retry", None)
    assert (await tenant.history(row["delivery_id"]))[-3:].count("stale_commit") == 1


async def test_the_same_outcome_twice_in_a_batch_counts_once(tenant, claim):
    verdicts = await tenant.commit(sent(claim), sent(claim))

    assert [verdict["verdict"] for verdict in verdicts] == ["committed", "stale"]
    assert (await tenant.history(claim["delivery_id"])).count("sent") == 1


UNKNOWN = {
    "no such result": {"result": "maybe"},
    "no result": {"result": None},
    "a failure without a category": {"result": "failed", "scope": "delivery"},
    "a failure without a scope": {"result": "failed", "category": "TRANSIENT"},
    "no such category": {"result": "failed", "category": "STRANGE", "scope": "delivery"},
    "no such scope": {"result": "failed", "category": "TRANSIENT", "scope": "galaxy"},
}


async def test_an_unknown_outcome_is_refused_and_takes_its_batch_along(tenant):
    await tenant.backlog(await tenant.channel(), 2)
    good, bad = await tenant.claim()

    for name, fields in UNKNOWN.items():
        with pytest.raises(asyncpg.PostgresError) as refusal:
            await tenant.commit(sent(good), {**sent(bad), **fields})
        assert refusal.value.sqlstate == "AP001", name

    assert {row["status"] for row in await tenant.deliveries()} == {"sending"}


async def test_a_batch_settles_every_kind_of_ending_at_once(tenant):
    await tenant.backlog(await tenant.channel(), 6)
    claims = await tenant.claim()
    endings = [sent, transient, permanent, released, lambda c: failed(c, "TRANSIENT", "platform"), sent]

    await tenant.commit(*(end(claim) for end, claim in zip(endings, claims, strict=True)))

    statuses = [(await tenant.delivery(claim["delivery_id"]))["status"] for claim in claims]
    assert statuses == ["sent", "retry", "failed_permanent", "retry", "retry", "sent"]


async def test_what_happened_is_cut_to_a_snippet(tenant, claim):
    await tenant.commit(transient(claim, message="x" * 2000, snippet="y" * 2000))

    error = json.loads((await tenant.events())[-1]["error"])
    assert (len(error["message"]), len(error["snippet"])) == (500, 500)


async def test_a_lost_answer_can_be_asked_for(tenant):
    await tenant.backlog(await tenant.channel(), 2)
    done, still_open = await tenant.claim()
    await tenant.commit(sent(done))

    rows = await tenant.db.fetch(
        "SELECT * FROM read_outcomes($1, $2, $3)",
        tenant.workspace,
        [done["delivery_id"], still_open["delivery_id"]],
        [done["claim_token"], still_open["claim_token"]],
    )

    assert {row["delivery_id"]: row["verdict"] for row in rows} == {
        done["delivery_id"]: "sent",
        still_open["delivery_id"]: "open",
    }
