"""A blob is brought to a platform by one claim at a time, and is known there ever after, per bot and kind."""

import asyncio
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from db.support.builders import Tenant, permanent, sent

CAT, DOG = "sha256:cat", "sha256:dog"


async def stored(tenant: Tenant, *refs: str) -> None:
    for ref in refs:
        await tenant.db.execute(
            "INSERT INTO media_origin (workspace_id, blob_ref, origin_url, sha256, size_bytes) "
            "VALUES ($1, $2, $3, $4, 3)",
            *(tenant.workspace, ref, f"s3://bucket/{ref}", ref.removeprefix("sha256:")),
        )


async def claims(tenant: Tenant, count: int, lease: timedelta = timedelta(minutes=5)) -> list[asyncpg.Record]:
    await tenant.channels(count)
    await tenant.enqueue()
    return await tenant.claim(lease=lease)


async def take(tenant: Tenant, claim: Any, *refs: str, kind: str = "image", bot: str = "77") -> dict[str, str]:
    rows = await tenant.db.fetch(
        "SELECT * FROM take_uploads($1, $2, $3, 'telegram', $4, $5, $6)",
        *(tenant.workspace, claim["delivery_id"], claim["claim_token"], bot, list(refs), [kind] * len(refs)),
    )
    return {row["blob_ref"]: row["provider_id"] or row["verdict"] for row in rows}


async def keep(
    tenant: Tenant, ref: str, provider_id: str, *, kind: str = "image", lifetime: timedelta | None = None
) -> None:
    await tenant.db.execute(
        "SELECT keep_uploads($1, 'telegram', '77', $2, $3, $4, $5)",
        *(tenant.workspace, [ref], [kind], [provider_id], [lifetime]),
    )


async def test_of_many_claims_one_brings_a_blob_and_the_others_wait_for_its_id(tenant: Tenant) -> None:
    await stored(tenant, CAT)
    many = await claims(tenant, 8)

    told = await asyncio.gather(*(take(tenant, claim, CAT) for claim in many))
    assert sorted(one[CAT] for one in told) == ["busy"] * 7 + ["ours"]

    await keep(tenant, CAT, "id")
    assert await take(tenant, many[0], CAT) == {CAT: "id"}


async def test_asking_again_leaves_it_ours(tenant: Tenant) -> None:
    await stored(tenant, CAT)
    [claim] = await claims(tenant, 1)

    assert [await take(tenant, claim, CAT) for _ in range(2)] == [{CAT: "ours"}] * 2


async def test_all_that_is_missing_is_taken_or_nothing(tenant: Tenant) -> None:
    """Else two albums that share pictures in another order would wait for each other."""
    await stored(tenant, CAT, DOG)
    first, second, third = await claims(tenant, 3)
    await take(tenant, first, CAT)

    assert await take(tenant, second, DOG, CAT) == {DOG: "ours", CAT: "busy"}
    assert await take(tenant, third, DOG) == {DOG: "ours"}


@pytest.mark.parametrize("how", ["sent", "failed", "lease"])
async def test_an_upload_is_over_with_its_claim_however_that_ends(tenant: Tenant, how: str) -> None:
    await stored(tenant, CAT)
    lease = timedelta(milliseconds=1) if how == "lease" else timedelta(minutes=5)
    first, second = await claims(tenant, 2, lease)
    await take(tenant, first, CAT)

    if how != "lease":
        await tenant.commit(sent(first) if how == "sent" else permanent(first))

    assert await take(tenant, second, CAT) == {CAT: "ours"}


@pytest.mark.parametrize(("seconds", "verdict"), [(6, "busy"), (9, "ours")])
async def test_an_upload_that_takes_too_long_for_its_size_is_begun_by_another(
    tenant: Tenant, seconds: int, verdict: str
) -> None:
    await stored(tenant, CAT)
    await tenant.db.execute("UPDATE media_origin SET size_bytes = 3000000")
    first, second, third = await claims(tenant, 3)
    await take(tenant, first, CAT)

    await tenant.db.execute("UPDATE media_blobs SET updated_at = now() - $1::interval", timedelta(seconds=seconds))

    assert await take(tenant, second, CAT) == {CAT: verdict}
    assert await take(tenant, third, CAT) == {CAT: "busy"}


async def test_another_bot_another_kind_and_another_workspace_need_their_own(tenant: Tenant) -> None:
    await stored(tenant, CAT)
    [claim] = await claims(tenant, 1)
    await keep(tenant, CAT, "id")
    other = await Tenant.create(tenant.db)
    await stored(other, CAT)
    [elsewhere] = await claims(other, 1)

    assert await take(tenant, claim, CAT) == {CAT: "id"}
    assert await take(tenant, claim, CAT, bot="78") == {CAT: "ours"}
    assert await take(tenant, claim, CAT, kind="file") == {CAT: "ours"}
    assert await take(other, elsewhere, CAT) == {CAT: "ours"}


async def test_what_has_expired_is_brought_again(tenant: Tenant) -> None:
    await stored(tenant, CAT)
    [claim] = await claims(tenant, 1)
    await keep(tenant, CAT, "old", lifetime=timedelta(seconds=-1))

    assert await take(tenant, claim, CAT) == {CAT: "ours"}


async def test_an_id_is_forgotten_unless_it_was_replaced_meanwhile(tenant: Tenant) -> None:
    await stored(tenant, CAT, DOG)
    [claim] = await claims(tenant, 1)
    await keep(tenant, CAT, "old")
    await keep(tenant, DOG, "new")

    await tenant.db.execute(
        "SELECT forget_uploads($1, 'telegram', '77', $2, $3)", tenant.workspace, [CAT, DOG], ["old", "old"]
    )

    assert await take(tenant, claim, CAT, DOG) == {CAT: "ours", DOG: "new"}


async def test_a_blob_without_an_origin_is_missing_unless_the_platform_holds_it(tenant: Tenant) -> None:
    [claim] = await claims(tenant, 1)

    assert await take(tenant, claim, CAT) == {CAT: "missing"}

    await keep(tenant, CAT, "id")
    assert await take(tenant, claim, CAT) == {CAT: "id"}


async def test_concurrent_albums_of_the_same_blobs_in_any_order_never_deadlock(tenant: Tenant) -> None:
    refs = [f"sha256:{number}" for number in range(10)]
    await stored(tenant, *refs)
    many = await claims(tenant, 16)

    for _ in range(20):
        told = await asyncio.gather(
            *(take(tenant, claim, *(refs if place % 2 else refs[::-1])) for place, claim in enumerate(many))
        )

        assert sum("ours" in one.values() for one in told) == 1
