"""Where a credential's secret lies: said by a human, told without the secret, and one tenant per bot."""

import json

import asyncpg
import pytest
from db.support.builders import Tenant, is_waiting, running
from db.support.operators import BY_HAND, SIGNED, meta
from harness.eventually import eventually

SEALED = b"\x01 sealed-canary"


async def bind(tenant, auth_ref="news", secret_ref="env:TOKEN", sealed=None, bot_id=None, platform="telegram"):  # noqa: S107  a place
    answer = await tenant.db.fetchval(
        "SELECT bind_credential($1, $2, $3, $4, $5, $6, $7, $8)",
        *(tenant.workspace, platform, auth_ref, secret_ref, sealed, bot_id, *SIGNED),
    )
    return json.loads(answer)


async def bound(tenant, auth_ref="news", platform="telegram"):
    [row] = await tenant.db.fetch("SELECT * FROM read_credentials($1, $2, $3)", tenant.workspace, platform, [auth_ref])
    return row


async def test_a_new_name_is_bound_and_an_old_one_rotated(tenant):
    first = await bind(tenant, secret_ref="env:TOKEN")
    before = await bound(tenant)
    second = await bind(tenant, secret_ref="sealed", sealed=SEALED, bot_id="7")
    after = await bound(tenant)

    assert first == {"verdict": "bound"}
    assert second == {"verdict": "rotated", "old_secret_ref": "env:TOKEN"}
    assert (before["secret_ref"], before["sealed"], before["bot_id"]) == ("env:TOKEN", None, None)
    assert (after["secret_ref"], after["sealed"], after["bot_id"]) == ("sealed", SEALED, "7")
    assert after["rotated_at"] > before["rotated_at"]


async def test_it_is_told_with_places_and_never_with_what_is_sealed(tenant):
    await bind(tenant, secret_ref="file:/run/token")
    await bind(tenant, secret_ref="sealed", sealed=SEALED)

    told = [meta(event) for event in await tenant.events("auth_rotated")]

    signed = {**BY_HAND, "platform": "telegram", "auth_ref": "news"}
    assert told == [
        {**signed, "new_secret_ref": "file:/run/token"},
        {**signed, "old_secret_ref": "file:/run/token", "new_secret_ref": "sealed"},
    ]


async def test_what_was_known_of_the_old_bot_is_not_kept_for_the_new_secret(tenant):
    await bind(tenant, secret_ref="sealed", sealed=SEALED, bot_id="7")

    await bind(tenant, secret_ref="env:TOKEN")

    row = await bound(tenant)
    assert (row["sealed"], row["bot_id"]) == (None, None)


async def test_a_bot_of_another_workspace_is_refused_and_nothing_is_changed_or_told(database, tenant):
    other = await Tenant.create(database.pool)
    await bind(other, bot_id="7")
    await bind(tenant, secret_ref="env:MINE")

    answer = await bind(tenant, secret_ref="env:THEIRS", bot_id="7")

    assert answer == {"verdict": "bot_taken"}
    assert (await bound(tenant))["secret_ref"] == "env:MINE"
    assert len(await tenant.events("auth_rotated")) == 1


async def test_a_bot_bound_under_another_name_here_is_refused_with_that_name(tenant):
    await bind(tenant, "news", bot_id="7")

    assert await bind(tenant, "other", bot_id="7") == {"verdict": "bot_bound", "auth_ref": "news"}
    assert (await bind(tenant, "news", bot_id="7"))["verdict"] == "rotated"
    assert (await bind(tenant, "other", bot_id="7", platform="max"))["verdict"] == "bound"


async def test_of_two_workspaces_that_bind_a_bot_at_once_one_wins(database, tenant):
    other = await Tenant.create(database.pool)
    winning, losing = await database.connect(), await database.connect()

    async with winning.transaction():
        await bind(other.on(winning), bot_id="7")
        second = running(bind(tenant.on(losing), bot_id="7"))
        await eventually(lambda: is_waiting(tenant.db, losing.get_server_pid()))

    assert await second == {"verdict": "bot_taken"}


async def test_an_unknown_workspace_is_not_found(tenant):
    nobody = Tenant(tenant.db, (await tenant.db.fetchval("SELECT new_id()")))

    assert await bind(nobody) == {"verdict": "not_found"}


@pytest.mark.parametrize(
    "given",
    [
        {"auth_ref": ""},
        {"platform": None},
        {"bot_id": ""},
        {"secret_ref": None},
        {"secret_ref": "123456:a-token-in-the-wrong-place"},
        {"secret_ref": "env:lower"},
        {"secret_ref": "sealed"},
        {"secret_ref": "env:TOKEN", "sealed": SEALED},
    ],
)
async def test_what_cannot_be_meant_is_refused_without_repeating_it(tenant, given):
    with pytest.raises(asyncpg.PostgresError) as raised:
        await bind(tenant, **given)

    assert raised.value.sqlstate == "AP011"
    assert "wrong-place" not in f"{raised.value} {raised.value.detail}"


async def test_without_an_operator_or_a_reason_nothing_is_bound(tenant):
    for signature in (("", "because"), ("ann", " ")):
        with pytest.raises(asyncpg.PostgresError) as raised:
            await tenant.db.fetchval(
                "SELECT bind_credential($1, 'telegram', 'news', 'env:TOKEN', NULL, NULL, $2, $3)",
                *(tenant.workspace, *signature),
            )
        assert raised.value.sqlstate == "AP010"


async def test_the_list_shows_a_workspaces_own_credentials_without_what_is_sealed(database, tenant):
    other = await Tenant.create(database.pool)
    await bind(other, "theirs")
    await bind(tenant, "news", "sealed", SEALED, "7")
    await bind(tenant, "alerts", "env:TOKEN")
    await bind(tenant, "news", "file:/run/token", platform="max")

    rows = await tenant.db.fetch("SELECT * FROM list_credentials($1)", tenant.workspace)

    assert [tuple(row)[:4] for row in rows] == [
        ("max", "news", "file:/run/token", None),
        ("telegram", "alerts", "env:TOKEN", None),
        ("telegram", "news", "sealed", "7"),
    ]
    assert SEALED.hex() not in str(rows)
    assert set(rows[0].keys()) == {"platform", "auth_ref", "secret_ref", "bot_id", "rotated_at"}
