"""Every event says of which trace and which run it is, or that there is none: the fixture ``tenant`` asks it of all."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from db.support.builders import permanent, released, sent, transient
from db.support.consistency import anonymous
from db.support.operators import meta

PAST = datetime.now(UTC) + timedelta(hours=1)
ENDINGS = {
    "sent": sent,
    "sent without an id": lambda claim: sent(claim, provider_message_id=None),
    "sent in parts": lambda claim: sent(claim, parts=[["17"], ["18"]]),
    "retry_scheduled": transient,
    "retry_scheduled, released": released,
    "failed_permanent": permanent,
    "failed_permanent, channel_paused, channel_disabled": lambda claim: permanent(claim, "channel"),
    "dead_letter": transient,
    "held": lambda claim: transient(claim, ambiguous=True, hold=True),
    "channel_migrated": lambda claim: transient(claim, "channel", code="chat_migrated", migrated_to="-100"),
    "stale_commit": lambda claim: transient({**claim, "claim_token": uuid4()}),
}


@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_commit_tells_whose_it_is(tenant, ending):
    await tenant.channel()
    await tenant.enqueue(max_attempts=1 if ending == "dead_letter" else 5)
    before = {event["id"] for event in await tenant.events()}
    claim = await tenant.claim_one()

    await tenant.commit(ENDINGS[ending](claim), streak=1)

    told = [event for event in await tenant.events() if event["id"] not in before]
    assert {(meta(event)["trace_id"], meta(event)["run_id"]) for event in told} == {("trace", str(tenant.run_id))}
    assert {event["what"] for event in told} > set(ending.split(",")[0].split(" ")[:1])


async def test_what_is_not_of_a_run_says_so(tenant, operator):
    channel = await tenant.channel()
    await tenant.enqueue()
    await tenant.claim()

    await tenant.recover(now=PAST)
    await operator.pause(channel)

    expired, paused = (await tenant.events())[-2:]
    assert (meta(expired)["trace_id"], meta(expired)["run_id"]) == ("trace", None)
    assert meta(paused).items() >= {"trace_id": None, "run_id": None}.items()


async def test_an_event_without_them_would_be_seen(tenant, database):
    insert = "INSERT INTO events (workspace_id, action, meta) VALUES ($1, 'sent', $2::text::jsonb)"
    other = await tenant.db.fetchval("INSERT INTO workspaces (name) VALUES ('other') RETURNING workspace_id")
    for said in ('{"trace_id": "t"}', '{"run_id": null}', '{"trace_id": null, "run_id": null}'):
        await tenant.db.execute(insert, other, said)

    assert len(await anonymous(database.pool, other)) == 2
