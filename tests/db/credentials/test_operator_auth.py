"""Another credential for a channel: never under a send that has begun, and told with both names."""

import asyncpg
import pytest
from db.support.builders import is_waiting, running, sent
from db.support.operators import BY_HAND, Operator, meta
from harness.eventually import eventually


async def test_a_rotated_channel_is_claimed_with_the_new_credential_and_group(tenant, operator):
    await tenant.group(27)
    channel = await tenant.channel()
    await tenant.backlog(channel, 1)

    answer = await operator.rotate(channel, "second", "second-group")

    claim = await tenant.claim_one()
    [event] = await tenant.events("auth_rotated")
    limit = await tenant.db.fetchval("SELECT rate_rps FROM platform_limits WHERE rate_group = 'second-group'")
    assert answer == {"verdict": "rotated", "old_auth_ref": "bot", "rate_group": "second-group", "bound": False}
    assert (claim["auth_ref"], claim["rate_group"]) == ("second", "second-group")
    assert ((await tenant.state(channel))["auth_ref"], limit) == ("second", 27)
    assert meta(event) == {
        **BY_HAND,
        "old_auth_ref": "bot",
        "new_auth_ref": "second",
        "old_rate_group": "bot",
        "new_rate_group": "second-group",
    }


async def test_without_a_new_group_the_old_one_stays(tenant, operator):
    channel = await tenant.channel()
    await tenant.db.execute(
        "INSERT INTO credential_bindings (workspace_id, auth_ref, platform, secret_ref) "
        "VALUES ($1, 'second', 'telegram', 'env:TOKEN')",
        tenant.workspace,
    )

    first = await operator.rotate(channel, "second")
    again = await operator.rotate(channel, "third")

    assert first == {"verdict": "rotated", "old_auth_ref": "bot", "rate_group": "bot", "bound": True}
    assert again["old_auth_ref"] == "second"


async def test_while_something_is_sending_it_is_refused_unless_forced(tenant, operator):
    channel = await tenant.channel()
    await tenant.backlog(channel, 2)
    claims = await tenant.claim()

    assert await operator.rotate(channel, "second") == {"verdict": "sending", "sending": 2}
    assert (await tenant.state(channel))["auth_ref"] == "bot"
    assert await tenant.events("auth_rotated") == []
    assert (await operator.rotate(channel, "second", force=True))["verdict"] == "rotated"
    await tenant.commit(*(sent(claim) for claim in claims))
    assert (await operator.rotate(channel, "third"))["verdict"] == "rotated"


async def test_no_claim_slips_in_between_the_look_and_the_switch(database, tenant):
    channel = await tenant.channel()
    await tenant.backlog(channel, 1)
    rotating, claiming = await database.connect(), await database.connect()

    async with rotating.transaction():
        await Operator(tenant.on(rotating)).rotate(channel, "second")
        assert await tenant.on(claiming).claim() == []

    assert (await tenant.claim_one())["auth_ref"] == "second"


async def test_a_rotation_waits_for_a_claim_that_has_begun_and_sees_it(database, tenant):
    channel = await tenant.channel()
    await tenant.backlog(channel, 1)
    claiming, rotating = await database.connect(), await database.connect()

    async with claiming.transaction():
        await tenant.on(claiming).claim()
        rotation = running(Operator(tenant.on(rotating)).rotate(channel, "second"))
        await eventually(lambda: is_waiting(tenant.db, rotating.get_server_pid()))

    assert await rotation == {"verdict": "sending", "sending": 1}


async def test_nobody_and_nothing(tenant, operator):
    assert await operator.rotate(tenant.workspace, "second") == {"verdict": "not_found"}
    for auth_ref, group in (("", None), (None, None), ("second", "")):
        with pytest.raises(asyncpg.PostgresError) as raised:
            await operator.rotate(await tenant.channel(), auth_ref, group)
        assert raised.value.sqlstate == "AP011"


async def test_an_auth_ref_that_is_written_by_hand_after_a_rotation_takes_effect(tenant, operator):
    channel = await tenant.channel()
    await tenant.backlog(channel, 1)
    await operator.rotate(channel, "second")

    await tenant.set_channel(channel, "auth_ref = 'by hand'")

    assert (await tenant.claim_one())["auth_ref"] == "by hand"


async def test_an_auth_ref_written_by_hand_wins_although_the_channel_had_it_before(tenant):
    channel = await tenant.channel()
    await tenant.backlog(channel, 1)
    await tenant.db.execute(
        "INSERT INTO channel_auth (workspace_id, channel_id, auth_ref) VALUES ($1, $2, 'second')",
        *(tenant.workspace, channel),
    )

    await tenant.set_channel(channel, "auth_ref = 'bot'")

    assert (await tenant.claim_one())["auth_ref"] == "bot"
