"""The bot of a token is stored with its binding; the bot of another workspace stops the channels that use it."""

import json
from datetime import timedelta
from uuid import UUID

import pytest
from db.credentials.test_bind_credential import bind, bound
from db.support.builders import NEVER, Tenant, is_waiting, running
from db.support.operators import Operator
from db.support.verified import differences
from harness.eventually import eventually


async def learn(tenant: Tenant, bot_id: str = "7", auth_ref: str = "bot") -> str:
    row = await bound(tenant, auth_ref)
    return await learn_of(tenant, row["rotated_at"], bot_id, auth_ref)


async def learn_of(tenant: Tenant, rotated_at, bot_id: str = "7", auth_ref: str = "bot") -> str:
    verdict: str = await tenant.db.fetchval(
        "SELECT learn_bot($1, 'telegram', $2, $3, $4)", tenant.workspace, auth_ref, rotated_at, bot_id
    )
    return verdict


@pytest.fixture
async def holder(database) -> Tenant:
    """Another workspace, whose bot is 7."""
    other = await Tenant.create(database.pool)
    await bind(other, "bot", bot_id="7")
    return other


async def test_a_bot_is_stored_with_the_binding_and_refused_to_others_from_then_on(database, tenant):
    other = await Tenant.create(database.pool)
    await bind(tenant, "bot")

    assert await learn(tenant) == "ours"

    assert (await bound(tenant, "bot"))["bot_id"] == "7"
    assert await bind(other, "bot", "env:THEIRS", bot_id="7") == {"verdict": "bot_taken"}


async def test_the_bot_of_another_workspace_pauses_every_channel_that_uses_the_token(database, tenant, holder):
    mine, rotated, elsewhere = await tenant.channels(3)
    await tenant.set_channel(rotated, "auth_ref = 'old'")
    await tenant.set_channel(elsewhere, "auth_ref = 'other'")
    await Operator(tenant).rotate(rotated, "bot")
    await bind(tenant, "bot")

    assert await learn(tenant) == "taken"
    assert await learn(tenant) == "taken"

    told = await tenant.events("channel_paused")
    assert {event["channel_id"] for event in told} == {mine, rotated}
    assert len(told) == 2
    assert {json.loads(event["error"])["code"] for event in told} == {"bot_taken"}
    assert str(holder.workspace) not in str([dict(event) for event in told])
    assert [(await tenant.state(one))["paused_until"] for one in (mine, rotated, elsewhere)] == [NEVER, NEVER, None]
    assert (await bound(tenant, "bot"))["bot_id"] is None
    assert await differences(database.pool, tenant.workspace) == []


async def test_after_another_token_is_bound_the_channels_can_be_resumed(tenant, holder, operator):
    channel = await tenant.channel()
    await tenant.backlog(channel, 1)
    await bind(tenant, "bot")
    await learn(tenant)
    assert await tenant.claim() == []

    await bind(tenant, "bot", "env:MINE")
    await operator.resume(channel)

    assert await learn(tenant, "8") == "ours"
    assert len(await tenant.claim()) == 1


async def test_two_names_of_one_bot_in_one_workspace_are_no_reason_to_stop(tenant):
    channel = await tenant.channel()
    await bind(tenant, "news", bot_id="7")
    await bind(tenant, "bot")

    assert await learn(tenant) == "ours"

    assert (await bound(tenant, "bot"))["bot_id"] is None
    assert (await tenant.state(channel))["paused_until"] is None


async def test_what_was_learnt_of_a_token_that_is_bound_no_longer_is_not_stored(tenant):
    await bind(tenant, "bot")
    before = (await bound(tenant, "bot"))["rotated_at"]
    await bind(tenant, "bot", "env:NEXT")

    assert await learn_of(tenant, before) == "changed"
    assert await learn_of(tenant, before - timedelta(days=1)) == "changed"

    assert (await bound(tenant, "bot"))["bot_id"] is None


async def test_of_two_workspaces_that_learn_one_bot_at_once_one_has_it(database, tenant):
    other = await Tenant.create(database.pool)
    channel = await tenant.channel()
    for one in (other, tenant):
        await bind(one, "bot")
    winning, losing = await database.connect(), await database.connect()

    async with winning.transaction():
        assert await learn(other.on(winning)) == "ours"
        second = running(learn(tenant.on(losing)))
        await eventually(lambda: is_waiting(tenant.db, losing.get_server_pid()))

    assert await second == "taken"
    assert (await tenant.state(channel))["paused_until"] == NEVER


INSERT = (
    "INSERT INTO channels (workspace_id, platform, target_id, auth_ref, rate_group) "
    "VALUES ($1, $2, gen_random_uuid()::text, 'bot', $3) RETURNING channel_id"
)


async def rate(tenant: Tenant, group: str) -> float | None:
    value = await tenant.db.fetchval(
        "SELECT rate_rps FROM platform_limits WHERE workspace_id = $1 AND rate_group = $2", tenant.workspace, group
    )
    return None if value is None else float(value)


@pytest.mark.parametrize("platform", ["telegram", "max"])
async def test_a_new_rate_group_has_the_ceiling_of_its_platform(tenant, platform):
    await tenant.db.fetchval(INSERT, tenant.workspace, platform, "fresh")

    assert await rate(tenant, "fresh") == 27


async def test_a_group_that_a_channel_is_moved_into_has_a_ceiling_too(tenant, operator):
    channel: UUID = await tenant.db.fetchval(INSERT, tenant.workspace, "telegram", "first")
    await tenant.set_channel(channel, "rate_group = 'second'")
    await tenant.db.execute("UPDATE platform_limits SET rate_rps = 0 WHERE rate_group = 'second'")
    await operator.rotate(channel, "other", "third")
    await operator.rotate(channel, "other", "fourth")

    assert [await rate(tenant, group) for group in ("second", "third", "fourth")] == [0, 27, 27]


@pytest.mark.parametrize("off", [None, 0])
async def test_a_limit_that_somebody_switched_off_stays_off(tenant, operator, off):
    channel: UUID = await tenant.db.fetchval(INSERT, tenant.workspace, "telegram", "group")
    await tenant.group(off, "group")

    await tenant.db.fetchval(INSERT, tenant.workspace, "telegram", "group")
    await operator.disable(channel)
    await operator.enable(channel)

    assert await rate(tenant, "group") == off
