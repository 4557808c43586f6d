"""Taking back what workers hold, and deciding what nobody knows."""

import json
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import asyncpg
import pytest
from db.support.builders import NEVER, is_waiting, running, sent, transient
from db.support.operators import Operator, held, meta
from harness.eventually import eventually

EXPIRED = timedelta(microseconds=1)


async def test_only_what_no_lease_covers_is_released(tenant, operator):
    channel = await tenant.channel(max_parallel=2)
    first, second, by_hand, fresh = await tenant.backlog(channel, 4)
    await tenant.claim(1, lease=EXPIRED)
    await tenant.claim(1)
    await tenant.set_delivery(by_hand, "status = 'claimed', claimed_at = now() - interval '6 minutes'")
    await tenant.set_delivery(fresh, "status = 'claimed', claimed_at = now() - interval '4 minutes'")

    began = datetime.now(UTC)
    assert await operator.release() == {first: "released", by_hand: "released"}
    ended = datetime.now(UTC)

    row = await tenant.delivery(first)
    assert (row["status"], row["attempt"], row["claim_token"], row["event_count"]) == ("retry", 1, None, 2)
    assert began < row["next_retry_at"] - timedelta(seconds=15) < ended
    assert json.loads(row["last_error"])["ambiguous"] is True
    assert (await tenant.delivery(by_hand))["last_error"] is None
    assert [(await tenant.delivery(each))["status"] for each in (second, fresh)] == ["sending", "claimed"]


async def test_the_event_names_the_release_and_keeps_the_operators_words(tenant, operator):
    await tenant.backlog(await tenant.channel(), 1)
    await tenant.claim(lease=EXPIRED)

    await operator.release()

    event = (await tenant.events())[-1]
    assert (event["what"], event["attempt"]) == ("manual_requeue", 1)
    assert (
        meta(event).items()
        >= {
            "operator": "ann",
            "reason": "manual_stuck_release",
            "note": "because",
            "from_status": "sending",
            "ambiguous": True,
        }.items()
    )


async def test_what_is_released_frees_its_place_comes_back_and_its_worker_is_stale(tenant, operator):
    channel = await tenant.channel(max_parallel=1)
    first, second = await tenant.backlog(channel, 2)
    lost = await tenant.claim_one()

    assert await operator.release() == {}
    assert await operator.release(force=True) == {first: "released"}

    assert (await tenant.claim_one())["delivery_id"] == second
    assert [verdict["verdict"] for verdict in await tenant.commit(sent(lost))] == ["stale"]
    await operator.release(force=True)
    tenant.now = datetime.now(UTC) + timedelta(seconds=16)
    assert (await tenant.claim(now=tenant.now))[0]["delivery_id"] == first


async def test_a_released_delivery_has_an_attempt_left(tenant, operator):
    [delivery] = await tenant.backlog(await tenant.channel(), 1)
    await tenant.set_delivery(delivery, "max_attempts = 1")
    await tenant.claim(lease=EXPIRED)

    await operator.release()

    row = await tenant.delivery(delivery)
    assert (row["attempt"], row["max_attempts"]) == (1, 2)


async def test_what_may_have_been_sent_is_held_where_the_channel_says_so(tenant, operator):
    [delivery] = await tenant.backlog(await tenant.channel(on_ambiguous="hold"), 1)
    await tenant.claim(lease=EXPIRED)

    assert await operator.release() == {delivery: "held"}

    row = await tenant.delivery(delivery)
    assert (row["next_retry_at"], row["hold_reason"]) == (NEVER, "manual_stuck_release")
    assert (await tenant.history(delivery))[-2:] == ["manual_requeue", "held"]
    assert row["event_count"] == 3
    assert await operator.resolve(delivery, "resend") == "resent"


async def test_a_commit_that_has_begun_wins(database, tenant):
    await tenant.backlog(await tenant.channel(), 1)
    [claim] = await tenant.claim(lease=EXPIRED)
    committer, releaser = await database.connect(), await database.connect()

    async with committer.transaction():
        await tenant.on(committer).commit(sent(claim))
        release = running(Operator(tenant.on(releaser)).release())
        await eventually(lambda: is_waiting(tenant.db, releaser.get_server_pid()))

    assert await release == {}
    assert (await tenant.only_delivery())["status"] == "sent"


async def test_what_was_found_in_the_channel_is_sent_without_another_attempt(tenant, operator):
    claim = await held(tenant)
    [other] = await tenant.backlog(claim["channel_id"], 1)

    assert await operator.resolve(claim["delivery_id"], "sent", "42") == "sent"

    row = await tenant.delivery(claim["delivery_id"])
    event = (await tenant.events())[-1]
    assert (row["status"], row["attempt"], row["provider_message_id"]) == ("sent", 1, "42")
    assert (row["claim_token"], row["next_retry_at"], row["hold_reason"]) == (None, None, None)
    assert row["sent_at"] <= datetime.now(UTC)
    assert await tenant.history(claim["delivery_id"]) == ["send_attempt", "held", "sent"]
    assert (event["attempt"], row["event_count"]) == (1, 3)
    assert meta(event).items() >= {"operator": "ann", "manual": True, "resolved": "sent"}.items()
    assert (await tenant.claim_one())["delivery_id"] == other


async def test_what_is_resolved_as_sent_counts_for_dedup(tenant, operator):
    await tenant.channel(on_ambiguous="hold")
    await tenant.enqueue("same")
    claim = await tenant.claim_one()
    await tenant.commit(transient(claim, ambiguous=True))

    await operator.resolve(claim["delivery_id"], "sent")

    assert (await tenant.enqueue("same"))["deduped"] == 1


async def test_what_was_not_found_goes_out_again_even_after_the_last_attempt(tenant, operator):
    claim = await held(tenant)
    await tenant.set_delivery(claim["delivery_id"], "max_attempts = 1")

    assert await operator.resolve(claim["delivery_id"], "resend") == "resent"

    again = await tenant.claim_one()
    assert (again["delivery_id"], again["attempt"]) == (claim["delivery_id"], 2)
    assert (await tenant.delivery(claim["delivery_id"]))["max_attempts"] == 2
    history = await tenant.history(claim["delivery_id"])
    assert history == ["send_attempt", "held", "manual_requeue", "send_attempt"]


async def test_of_several_parts_the_doubtful_one_is_recorded_and_the_rest_goes_out(tenant, operator):
    claim = await held(tenant, calls=2)

    assert await operator.resolve(claim["delivery_id"], "sent", "42") == "continues"

    again = await tenant.claim_one()
    progress = json.loads(again["render_meta"])["series_progress"]
    assert progress == {"sent_items": [0], "provider_message_ids": [["42"]]}
    await tenant.commit(transient(again, ambiguous=True))
    assert await operator.resolve(claim["delivery_id"], "sent", "43") == "sent"
    assert (await tenant.delivery(claim["delivery_id"]))["provider_message_id"] == "42"


async def test_only_what_is_held_is_resolved(tenant, operator):
    claim = await held(tenant)
    [queued] = await tenant.backlog(await tenant.channel(), 1)

    assert await operator.resolve(queued, "sent") == "not_held"
    assert await operator.resolve(uuid4(), "sent") == "not_found"
    assert await operator.resolve(claim["delivery_id"], "resend") == "resent"
    assert await operator.resolve(claim["delivery_id"], "sent") == "not_held"
    with pytest.raises(asyncpg.PostgresError) as raised:
        await operator.resolve(claim["delivery_id"], "perhaps")
    assert raised.value.sqlstate == "AP011"
