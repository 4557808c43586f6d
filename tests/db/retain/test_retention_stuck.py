"""Posts and replies that nobody gets done with: named with their reason, and taken back where that helps."""

from datetime import timedelta

import pytest
from db.support.builders import Tenant
from db.support.senders import make_sender
from db.support.staging import Staging

OLDER = timedelta(minutes=10)


@pytest.fixture
async def staging(tenant: Tenant) -> Staging:
    await tenant.channel()
    return Staging(tenant, await make_sender(tenant))


async def stuck(tenant: Tenant) -> list[str]:
    return [row["why"] for row in await tenant.db.fetch("SELECT * FROM stuck_staged_posts($1)", OLDER)]


async def recover(tenant: Tenant, workers: int = 20) -> int:
    recovered: int = await tenant.db.fetchval("SELECT recover_staged_posts($1, $2, 100)", OLDER, workers)
    return recovered


async def age(tenant: Tenant, by: timedelta) -> None:
    await tenant.db.execute(
        "UPDATE staged_posts SET next_attempt_at = next_attempt_at - $1::interval, "
        "lease_until = lease_until - $1::interval",
        by,
    )


async def test_a_post_that_nobody_takes_is_stuck(tenant, staging):
    await staging.stage()
    assert await stuck(tenant) == []

    await age(tenant, timedelta(minutes=11))

    assert await stuck(tenant) == ["untaken"]


async def test_a_post_of_a_paused_workspace_is_not(tenant, staging):
    await staging.stage()
    await age(tenant, timedelta(days=11))
    await tenant.db.execute("UPDATE workspaces SET status = 'paused'")

    assert await stuck(tenant) == []


async def test_a_post_that_was_tried_for_hours_is_late(tenant, staging):
    await staging.stage()
    await tenant.db.execute("UPDATE staged_posts SET created_at = now() - interval '7 hours'")

    assert await stuck(tenant) == ["late"]


async def test_a_post_whose_worker_never_came_back_waits_again(tenant, staging):
    await staging.stage()
    post = await staging.leased()
    await age(tenant, timedelta(minutes=12))
    assert await stuck(tenant) == ["lost"]

    assert await recover(tenant) == 1

    row = await staging.row()
    assert (row["status"], row["attempt"], row["lease_token"]) == ("staged", 1, None)
    assert (await staging.finish(post))["verdict"] == "stale"
    assert await stuck(tenant) == []


async def test_a_post_that_cost_too_many_workers_is_given_up_with_an_event(tenant, staging):
    await staging.stage()
    await staging.leased()
    await age(tenant, timedelta(minutes=12))

    assert await recover(tenant, workers=1) == 1

    assert (await staging.row())["status"] == "failed"
    assert [event["what"] for event in await tenant.events()] == ["media_failed"]
    assert await tenant.count("ingress_receipts") == 0


async def test_a_post_that_is_being_fetched_is_left_alone(tenant, staging):
    await staging.stage()
    await staging.leased()

    assert await recover(tenant) == 0
    assert (await staging.row())["status"] == "fetching"


async def test_a_reply_that_is_not_sent_for_long_is_stuck(tenant):
    for chat, minutes, sent in (("new", 5, None), ("old", 15, None), ("sent", 15, 14)):
        await tenant.db.execute(
            "INSERT INTO bot_outbox (workspace_id, chat_id, inbound_provider_message_id, response_hash, created_at, "
            "sent_at) VALUES ($1, $2, '1', 'x', now() - make_interval(mins => $3), now() - make_interval(mins => $4))",
            *(tenant.workspace, chat, minutes, sent),
        )

    rows = await tenant.db.fetch("SELECT * FROM stuck_bot_replies($1)", OLDER)

    assert [(row["chat_id"], row["held"]) for row in rows] == [("old", False)]
