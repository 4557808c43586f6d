"""Those who fetch for staged posts: any number, stopped, killed, robbed of a lease, and in nobody's way."""

import asyncio
from datetime import timedelta
from hashlib import sha256
from typing import Any

import asyncpg
from aiohttp import web
from autopost_ingest.staging.gateway import StagedGateway, StagedPost
from autopost_ingest.staging.staging import ATTEMPTS
from harness.buckets import Bucket
from harness.databases import Database
from harness.eventually import eventually
from harness.telegram_media import png
from ingest.support.ingest_client import SHOP, SHOP_WORKSPACE
from ingest.support.pictures import PNG, Handler, Pictures
from ingest.support.small_disk import small_disk
from ingest.support.staging_ingest import Workshop, keys, workshop

DIGEST = sha256(PNG).hexdigest()


def hanging(begun: asyncio.Event) -> Handler:
    async def hang(_: web.Request) -> web.StreamResponse:
        begun.set()
        await asyncio.Event().wait()
        return web.Response()

    return hang


async def test_a_stop_gives_the_leases_back_and_the_next_replica_goes_on(
    seeded_database: Database, s3: Bucket, site: Pictures
) -> None:
    begun = asyncio.Event()
    async with workshop(seeded_database, s3) as shop:
        post = await shop.stage(site.answer("/cat.png", hanging(begun)))
        await begun.wait()
        meanwhile = await shop.status(post)

    row = await seeded_database.pool.fetchrow("SELECT status, attempt, lease_token, lease_until FROM staged_posts")
    site.put("/cat.png", PNG)
    async with workshop(seeded_database, s3) as shop:
        told = await shop.became(post, "enqueued")

    assert (meanwhile, tuple(row)) == ("fetching", ("staged", 0, None, None))
    assert told["attempt"] == 1


async def test_a_worker_whose_lease_passed_on_drops_what_it_has(
    seeded_database: Database, s3: Bucket, site: Pictures
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: web.Request) -> web.StreamResponse:
        begun.set()
        await go_on.wait()
        return web.Response(body=PNG)

    async with workshop(seeded_database, s3, fetch_lease=timedelta(seconds=60)) as shop:
        post = await shop.stage(site.answer("/cat.png", slow))
        await begun.wait()
        await shop.sql("UPDATE staged_posts SET lease_token = gen_random_uuid()")
        go_on.set()

        async def dropped() -> bool:
            return site.hits["/cat.png"] == 1 and not await shop.sql("SELECT puts <> '{}' FROM media_fetches")

        await eventually(dropped)
        await shop.sql("UPDATE staged_posts SET lease_until = now(), next_attempt_at = now()")
        told = await shop.became(post, "enqueued")

    assert told["attempt"] == 2
    assert len(await keys(s3)) == 1


async def test_a_long_fetch_keeps_its_lease(seeded_database: Database, s3: Bucket, site: Pictures) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: web.Request) -> web.StreamResponse:
        begun.set()
        await go_on.wait()
        return web.Response(body=PNG)

    async with workshop(seeded_database, s3, fetch_lease=timedelta(seconds=4)) as shop:
        post = await shop.stage(site.answer("/cat.png", slow))
        await begun.wait()
        first = await shop.sql("SELECT lease_until FROM staged_posts")

        async def renewed_past_it() -> bool:
            return bool(await shop.sql("SELECT clock_timestamp() > $1::timestamptz + interval '0.5 s'", first))

        await eventually(renewed_past_it, within=timedelta(seconds=30))
        go_on.set()
        told = await shop.became(post, "enqueued")

    assert (told["attempt"], site.hits["/cat.png"]) == (1, 1)


async def test_replicas_share_the_work_and_fetch_everything_once(
    seeded_database: Database, s3: Bucket, site: Pictures
) -> None:
    urls = [site.put(f"/{number}.png", png(number + 1, 1)) for number in range(12)]
    settings = {"fetch_per_workspace": 6, "fetch_concurrency": 3}
    async with (
        workshop(seeded_database, s3, **settings) as one,
        workshop(seeded_database, s3, **settings),
        workshop(seeded_database, s3, **settings),
    ):
        posts = await asyncio.gather(*(one.stage(url) for url in urls))
        for post in posts:
            await one.became(post, "enqueued")

    assert set(site.hits.values()) == {1}
    assert await one.sql("SELECT count(*) FROM deliveries") == 12 * 40


async def test_one_tenant_with_a_server_that_hangs_keeps_no_other_waiting(
    seeded_database: Database, s3: Bucket, site: Pictures
) -> None:
    begun = asyncio.Event()
    async with workshop(seeded_database, s3, fetch_concurrency=3, fetch_per_workspace=2) as shop:
        for number in range(6):
            await shop.stage(site.answer(f"/{number}.png", hanging(begun)))
        await begun.wait()

        post = await shop.stage(site.put("/cat.png", PNG), secret=SHOP)

        async def enqueued() -> bool:
            return await shop.status(post) == "enqueued"

        await eventually(enqueued)
        assert await shop.sql("SELECT count(*) FROM staged_posts WHERE status = 'fetching'") == 2
    assert await keys(s3) == {f"{SHOP_WORKSPACE}/media/{DIGEST}"}


async def test_whoever_stages_a_post_starts_with_it_at_once(
    seeded_database: Database, s3: Bucket, site: Pictures
) -> None:
    async with workshop(seeded_database, s3, poll_interval=timedelta(minutes=5)) as shop:
        await shop.became(await shop.stage(site.put("/cat.png", PNG)), "enqueued")


class NotYet(StagedGateway):
    """The first lease meets an error of the database that nobody expects to pass."""

    asked = False

    async def lease_staged_posts(self, *args: Any) -> list[StagedPost]:
        if not self.asked:
            self.asked = True
            raise asyncpg.InsufficientPrivilegeError("not yet")
        return await super().lease_staged_posts(*args)


async def test_one_error_of_the_database_does_not_end_staging(
    seeded_database: Database, s3: Bucket, site: Pictures
) -> None:
    async with workshop(seeded_database, s3, staged_of=NotYet) as shop:
        await shop.became(await shop.stage(site.put("/cat.png", PNG)), "enqueued")


async def tried_more_often_than_senders_are_worth(shop: Workshop) -> None:
    for attempt in range(1, ATTEMPTS + 2):

        async def tried(wanted: int = attempt) -> bool:
            query = "SELECT attempt = $1 AND status = 'staged' FROM staged_posts"
            return bool(await shop.sql(query, wanted))

        await eventually(tried)
        await shop.hurry()


async def test_a_store_that_is_away_is_not_the_senders_fault(
    seeded_database: Database, s3: Bucket, site: Pictures
) -> None:
    async with workshop(seeded_database, s3, s3_bucket="nowhere-to-be-found") as shop:
        post = await shop.stage(site.put("/cat.png", PNG))
        await tried_more_often_than_senders_are_worth(shop)

    async with workshop(seeded_database, s3) as shop:
        await shop.hurry()
        await shop.became(post, "enqueued")

    assert await shop.sql("SELECT puts FROM media_fetches") == []


async def test_a_full_disk_is_not_the_senders_fault(seeded_database: Database, s3: Bucket, site: Pictures) -> None:
    async with workshop(seeded_database, s3) as shop:
        with small_disk(100_000):
            post = await shop.stage(site.put("/cat.png", PNG.ljust(1_000_000, b"\0")))
            await tried_more_often_than_senders_are_worth(shop)
            error = (await shop.told(post["post_id"])).json()["error"]
        await shop.hurry()
        await shop.became(post, "enqueued")

    assert error == {"code": "store_away"}


async def test_a_request_that_this_version_cannot_read_waits_and_keeps_nobody_else_waiting(
    seeded_database: Database, s3: Bucket, site: Pictures
) -> None:
    url = site.put("/cat.png", PNG)
    async with workshop(seeded_database, s3, resting=True) as shop:
        strange = await shop.stage(url, text="strange")
        await shop.sql("UPDATE staged_posts SET request = request || '{\"of_tomorrow\": 1}'")
        plain = await shop.stage(url, text="plain")
    async with workshop(seeded_database, s3) as shop:
        await shop.became(plain, "enqueued")

        async def tried() -> bool:
            return bool(await shop.sql("SELECT bool_or(last_error IS NOT NULL) FROM staged_posts"))

        await eventually(tried)
        told = await shop.became(strange, "staged")

    assert told["error"] == {"code": "internal", "message": "ValidationError"}


async def test_a_post_that_kills_its_workers_is_given_up_in_the_end(
    seeded_database: Database, s3: Bucket, site: Pictures
) -> None:
    async with workshop(seeded_database, s3, resting=True) as shop:
        post = await shop.stage(site.put("/cat.png", PNG))
        await shop.sql("UPDATE staged_posts SET attempt = 20")
    async with workshop(seeded_database, s3) as shop:
        told = await shop.became(post, "failed")

    assert (told["error"]["code"], site.hits["/cat.png"]) == ("worker_lost", 0)
