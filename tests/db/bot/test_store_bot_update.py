"""An update goes into the inbox once, within the rate of its endpoint, unless the workspace is disabled."""

import asyncio
import json
from typing import Any

from db.support.builders import Tenant
from db.support.senders import Sender, make_sender


async def store(sender: Sender, key: str = "mid.1", **fields: Any) -> dict[str, Any]:
    update = {"provider": "max", "chat_id": "7", "key": key, "kind": "message_created", "answer": True, "body": {}}
    query = "SELECT store_bot_update($1, $2, $3)"
    given = json.dumps({**update, "trace_id": "t", **fields})
    answer: dict[str, Any] = json.loads(
        await sender.tenant.db.fetchval(query, sender.tenant.workspace, sender.endpoint, given)
    )
    return answer


async def test_of_twenty_copies_one_is_stored(tenant: Tenant) -> None:
    sender = await make_sender(tenant)

    verdicts = [answer["verdict"] for answer in await asyncio.gather(*(store(sender) for _ in range(20)))]

    assert (verdicts.count("stored"), verdicts.count("duplicate")) == (1, 19)
    assert await tenant.count("bot_inbox") == 1
    assert {event["what"] for event in await tenant.events()} == {"ingress_dedup_dropped"}


async def test_the_same_key_in_another_chat_is_another_update(tenant: Tenant) -> None:
    sender = await make_sender(tenant)

    verdicts = [(await store(sender, chat_id=chat))["verdict"] for chat in ("7", "8")]

    assert verdicts == ["stored", "stored"]


async def test_an_endpoint_that_is_gone_stores_nothing(tenant: Tenant) -> None:
    sender = await make_sender(tenant)
    await tenant.db.execute("DELETE FROM workspace_endpoints WHERE endpoint_id = $1", sender.endpoint)

    assert (await store(sender))["verdict"] == "endpoint_disabled"
    assert await tenant.count("bot_inbox") == 0


async def test_what_is_over_the_rate_is_not_stored_and_told_how_long_to_wait(tenant: Tenant) -> None:
    sender = await make_sender(tenant, rate=0.01)
    await store(sender, "mid.1")

    refused = await store(sender, "mid.2")

    assert refused["verdict"] == "rate_limited"
    assert 0 < refused["retry_after_ms"] <= 100_000
    assert await tenant.count("bot_inbox") == 1
    assert [event["what"] for event in await tenant.events()] == ["ingress_rate_limited"]
    assert await sender.runs() == [{"rate_limited": 1}]


async def test_a_paused_workspace_stores_and_a_disabled_one_does_not(tenant: Tenant) -> None:
    sender = await make_sender(tenant)
    verdicts = []
    for status in ("paused", "disabled"):
        await tenant.db.execute("UPDATE workspaces SET status = $1", status)
        verdicts.append((await store(sender, status))["verdict"])

    assert verdicts == ["stored", "workspace_disabled"]
    assert await tenant.count("bot_inbox") == 1


async def test_what_nobody_answers_is_stored_as_done(tenant: Tenant) -> None:
    sender = await make_sender(tenant)

    await store(sender, "mid.1")
    await store(sender, "gone:1", kind="bot_stopped", answer=False)

    assert await tenant.db.fetchval("SELECT unanswered FROM bot_backlog()") == 1
