"""What arrived goes a short way, and what cannot go it is left as it was."""

import json
from datetime import timedelta

from db.support.builders import Tenant, is_waiting, permanent, running, sent, transient
from harness.databases import Database
from harness.eventually import eventually


async def claimed(tenant: Tenant, count: int) -> list[dict]:
    await tenant.backlog(await tenant.channel(max_parallel=count), count)
    return await tenant.claim(count)


async def test_it_leaves_nothing_while_all_goes_well(tenant):
    claims = await claimed(tenant, 3)

    assert await tenant.commit_sent(*(sent(one, provider_message_id=str(nth)) for nth, one in enumerate(claims))) == []

    rows = [await tenant.delivery(one["delivery_id"]) for one in claims]
    assert [(row["status"], row["provider_message_id"], row["claim_token"]) for row in rows] == [
        ("sent", str(nth), None) for nth in range(3)
    ]
    assert await tenant.history(claims[0]["delivery_id"]) == ["send_attempt", "sent"]


async def test_its_event_names_the_key_under_which_the_platform_was_called(tenant):
    """With the id that the platform gave or without one."""
    claims = await claimed(tenant, 2)

    await tenant.commit_sent(sent(claims[0], provider_message_id="7"), sent(claims[1], provider_message_id=None))

    told = {event["delivery_id"]: json.loads(event["meta"]) for event in await tenant.events("sent")}
    assert {delivery: meta["idempotency_key"] for delivery, meta in told.items()} == {
        claim["delivery_id"]: str(claim["delivery_id"]) for claim in claims
    }
    assert [told[claim["delivery_id"]].get("provider_message_id") for claim in claims] == ["7", None]


async def test_what_goes_the_long_way_names_that_key_too_however_it_ended(tenant):
    arrived, failed, refused = claims = await claimed(tenant, 3)

    await tenant.commit(sent(arrived), transient(failed), permanent(refused))

    told = [event for name in ("sent", "retry_scheduled", "failed_permanent") for event in await tenant.events(name)]
    assert [(event["delivery_id"], json.loads(event["meta"])["idempotency_key"]) for event in told] == [
        (claim["delivery_id"], str(claim["delivery_id"])) for claim in claims
    ]


async def test_what_is_stale_is_left_and_nothing_is_told_of_it(tenant):
    first, late, last = await claimed(tenant, 3)
    await tenant.commit(transient(late))

    left = await tenant.commit_sent(sent(first), sent(late), sent(last), sent(first))

    assert left == [2, 4]
    assert (await tenant.delivery(late["delivery_id"]))["status"] == "retry"
    assert (await tenant.history(first["delivery_id"])).count("sent") == 1
    assert await tenant.events("stale_commit") == []


async def test_a_streak_leaves_everything(tenant):
    """It is reset by an arrival, and for that the channel must be locked first."""
    first, second = await claimed(tenant, 2)
    await tenant.commit(permanent(first, "channel"))

    assert await tenant.commit_sent(sent(second)) == [1]

    assert (await tenant.delivery(second["delivery_id"]))["status"] == "sending"
    [verdict] = await tenant.commit(sent(second))
    assert (verdict["verdict"], (await tenant.state(second["channel_id"]))["error_streak"]) == ("committed", 0)


async def test_a_lease_that_is_renewed_meanwhile_loses_no_outcome(database: Database, tenant: Tenant) -> None:
    renewing, committing = await database.connect(), await database.connect()
    [claim] = await claimed(tenant, 1)
    async with renewing.transaction():
        await renewing.fetch(
            "SELECT renew_leases($1, $2, $3, $4)",
            *(tenant.workspace, [claim["delivery_id"]], [claim["claim_token"]], timedelta(minutes=9)),
        )
        commit = running(tenant.on(committing).commit(sent(claim)))
        await eventually(lambda: is_waiting(tenant.db, committing.get_server_pid()))

    [verdict] = await commit

    assert verdict["verdict"] == "committed"
    assert (await tenant.delivery(claim["delivery_id"]))["status"] == "sent"


async def test_a_claim_that_passes_on_meanwhile_is_left(database: Database, tenant: Tenant) -> None:
    recovering, committing = await database.connect(), await database.connect()
    [claim] = await claimed(tenant, 1)
    async with recovering.transaction():
        await recovering.fetch(
            "SELECT recover_sending_leases($1, clock_timestamp() + interval '1 hour', 10, 0.5)", tenant.workspace
        )
        commit = running(tenant.on(committing).commit_sent(sent(claim)))
        await eventually(lambda: is_waiting(tenant.db, committing.get_server_pid()))

    assert await commit == [1]

    assert (await tenant.delivery(claim["delivery_id"]))["status"] == "retry"
    assert (await tenant.history(claim["delivery_id"])).count("sent") == 0
