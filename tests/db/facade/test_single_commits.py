"""The functions that the source documents name: operators may call them, and every parameter counts."""

import json
from datetime import timedelta
from uuid import uuid4

import asyncpg
import pytest
from db.support.builders import Tenant
from db.support.senders import make_sender


@pytest.fixture
async def by_operator(database, tenant) -> Tenant:
    """The tenant, through a connection with the rights of an operator alone."""
    connection = await database.connect()
    await connection.execute("SET ROLE autopost_operator")
    return tenant.on(connection)


SINGLE = {
    "mark_sent": ("mark_sent($1, $2, $3, '17')", "sent"),
    "schedule_retry": ('schedule_retry($1, $2, $3, \'{"code": "503"}\')', "retry"),
    "fail_permanent": ('fail_permanent($1, $2, $3, \'{"code": "400"}\')', "failed_permanent"),
}


async def test_each_single_form_commits_once(tenant, by_operator):
    channel = await tenant.channel()
    for name, (call, status) in SINGLE.items():
        [delivery] = await tenant.backlog(channel, 1)
        [claim] = [each for each in await tenant.claim() if each["delivery_id"] == delivery]
        fence = (tenant.workspace, delivery, claim["claim_token"])

        verdicts = [await by_operator.db.fetchval(f"SELECT {call}", *fence) for _ in range(2)]

        assert verdicts == ["committed", "stale"], name
        assert (await tenant.delivery(delivery))["status"] == status


async def test_mark_sent_keeps_the_id_and_tells_the_facts(tenant, by_operator):
    [delivery] = await tenant.backlog(await tenant.channel(), 1)
    claim = await tenant.claim_one()

    await by_operator.db.fetchval(
        "SELECT mark_sent($1, $2, $3, '17', '{\"found\": \"by hand\"}')",
        *(tenant.workspace, delivery, claim["claim_token"]),
    )

    told = json.loads((await tenant.events("sent"))[-1]["meta"])
    assert (await tenant.delivery(delivery))["provider_message_id"] == "17"
    assert (told["provider_message_id"], told["found"]) == ("17", "by hand")


async def test_schedule_retry_waits_as_long_as_it_is_asked_to(tenant, by_operator):
    [delivery] = await tenant.backlog(await tenant.channel(), 1)
    claim = await tenant.claim_one()

    await by_operator.db.fetchval(
        'SELECT schedule_retry($1, $2, $3, \'{"code": "429", "retry_after_ms": 60000}\')',
        *(tenant.workspace, delivery, claim["claim_token"]),
    )

    row = await tenant.delivery(delivery)
    assert row["next_retry_at"] - row["updated_at"] >= timedelta(minutes=1)
    assert json.loads(row["last_error"])["code"] == "429"


async def test_fail_permanent_penalises_the_channel_that_it_names(tenant, by_operator):
    channel = await tenant.channel()
    [delivery] = await tenant.backlog(channel, 1)
    claim = await tenant.claim_one()

    await by_operator.db.fetchval(
        'SELECT fail_permanent($1, $2, $3, \'{"code": "403", "scope": "channel"}\')',
        *(tenant.workspace, delivery, claim["claim_token"]),
    )

    assert (await tenant.state(channel))["error_streak"] == 1


@pytest.mark.parametrize("own", [None, {"kind": "pull"}])
async def test_an_enqueued_post_names_its_endpoint_and_kind(tenant, by_operator, own):
    await tenant.channel()
    sender = await make_sender(tenant)
    post = json.dumps(await tenant.post(source=own))

    await by_operator.db.fetchval(
        "SELECT enqueue_messages_and_deliveries($1, $2, 'publish', $3)", tenant.workspace, sender.endpoint, post
    )

    [source] = [row["source"] for row in await tenant.db.fetch("SELECT source FROM messages")]
    assert json.loads(source) == {"kind": "publish", "endpoint_id": str(sender.endpoint)} | (own or {})


@pytest.mark.parametrize(("kind", "endpoint"), [("mail", None), ("push", uuid4())])
async def test_an_unknown_kind_or_endpoint_is_refused(tenant, by_operator, kind, endpoint):
    post = json.dumps(await tenant.post())

    with pytest.raises(asyncpg.PostgresError) as refused:
        await by_operator.db.fetchval(
            "SELECT enqueue_messages_and_deliveries($1, $2, $3, $4)", tenant.workspace, endpoint, kind, post
        )

    assert refused.value.sqlstate == "AP011"
