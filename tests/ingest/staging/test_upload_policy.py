"""`upload_policy`: an image that a channel takes by URL is passed on and not fetched, and the dry run says so."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from autopost_ingest.staging.assembly import downloader_of
from autopost_runtime.fetch.addresses import Guard
from autopost_runtime.fetch.dns import Names
from autopost_runtime.fetch.fetch import Fetcher
from harness.buckets import Bucket
from harness.databases import Database
from harness.http_client import http_client
from ingest.support.ingest_client import DEMO, Ear
from ingest.support.pictures import HERE, MP4, PNG, Pictures, pictures
from ingest.support.staging_ingest import Workshop, configured, ingesting, keys

ALLOWED = '{"upload_policy": {"image": "url_allowed"}}'
REQUIRED = '{"upload_policy": {"image": "upload_required"}}'
FAR = "https://pictures.example/cat.png"
"""Nothing here can fetch it."""
PLANS = """
SELECT jsonb_object_agg(c.title, jsonb_build_object('status', d.status, 'plan_hash', d.plan_hash, 'error', d.last_error,
           'url', r.plan #> '{parts,0,media,0,url}', 'blob_ref', r.plan #> '{parts,0,media,0,blob_ref}'))
FROM deliveries d
JOIN channels c USING (workspace_id, channel_id)
LEFT JOIN renderings r USING (workspace_id, rendering_id)
"""


def ask_here(host: str) -> Sequence[str]:
    if host not in ("near.example", "127.0.0.1"):
        raise OSError("no such name")
    return ["127.0.0.1"]


@asynccontextmanager
async def opened(database: Database, bucket: Bucket, **settings: Any) -> AsyncIterator[Workshop]:
    """The name near.example leads to this machine, and no other name anywhere."""
    await database.pool.execute("UPDATE workspace_endpoints SET ingress_rps = NULL")
    config = configured(database.url, bucket, **settings)
    downloader = downloader_of(config, Fetcher(Guard(HERE), names=Names(ask_here)))
    async with ingesting(config, downloader=downloader) as site, http_client(timeout=10) as http:
        yield Workshop(site.url, http, database, Ear())


@pytest.fixture
async def shop(seeded_database: Database, s3: Bucket) -> AsyncIterator[Workshop]:
    async with opened(seeded_database, s3) as made:
        yield made


@pytest.fixture
async def site() -> AsyncIterator[Pictures]:
    async with pictures() as opened:
        yield opened


async def only(shop: Workshop, **settings: str) -> None:
    """These channels, and no others."""
    await shop.sql("UPDATE channels SET enabled = title = ANY ($1)", [name.replace("_", " ") for name in settings])
    for name, value in settings.items():
        await shop.sql("UPDATE channels SET settings = $1 WHERE title = $2", value, name.replace("_", " "))


async def plans(shop: Workshop) -> dict[str, dict[str, Any]]:
    return dict(msgspec.json.decode(await shop.sql(PLANS)))


async def dry(shop: Workshop, body: dict[str, Any], query: str = "dry_run=1") -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {DEMO}"}
    answer = await shop.http.post(f"{shop.url}/v1/posts?{query}", headers=headers, json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def test_an_image_goes_by_url_where_every_channel_takes_it_and_nothing_is_fetched(
    shop: Workshop, s3: Bucket
) -> None:
    await only(shop, Demo_MAX_1=ALLOWED)
    body = {"text": "hello", "media": [{"type": "photo", "url": FAR}]}
    seen = await dry(shop, body)

    told = await shop.became(await shop.stage(FAR, text="hello"), "enqueued")

    made = (await plans(shop))["Demo MAX 1"]
    [shown] = seen["plans"].values()
    assert told["channels"]["enqueued"] == 1
    assert (made["status"], made["url"], made["blob_ref"]) == ("queued", FAR, None)
    assert (shown["plan_hash"], shown["plan"]["parts"][0]["media"][0]["url"]) == (made["plan_hash"], FAR)
    assert shown["plan"]["notes"] == ["media[0] is sent by URL: max fetches it"]
    assert (
        await shop.sql("SELECT count(*) FROM media_fetches") == await shop.sql("SELECT count(*) FROM media_origin") == 0
    )
    assert await keys(s3) == set()


async def test_a_dry_run_that_skips_media_says_the_same(shop: Workshop) -> None:
    await only(shop, Demo_MAX_1=ALLOWED)
    body = {"media": [{"type": "photo", "url": FAR}]}

    whole, skipped = await dry(shop, body), await dry(shop, body, "dry_run=1&media=skip")

    assert whole["plans"] == skipped["plans"]
    assert whole["content_hash"] == skipped["content_hash"] is not None


async def test_the_hash_of_an_image_by_url_is_that_of_its_canonical_url(shop: Workshop) -> None:
    await only(shop, Demo_MAX_1=ALLOWED)
    await shop.became(await shop.stage("https://pictures.example/cat.png?b=2&a=1"), "enqueued")

    again = await shop.became(await shop.stage("https://PICTURES.example:443/cat.png?a=1&b=2"), "enqueued")

    assert (again["channels"]["enqueued"], again["channels"]["deduped"]) == (0, 1)


async def test_of_channels_that_differ_one_gets_the_url_and_the_others_the_bytes(
    shop: Workshop, site: Pictures, s3: Bucket
) -> None:
    await only(shop, Demo_MAX_1=ALLOWED, Demo_MAX_2="{}", Demo_Telegram_1=ALLOWED)
    url = site.put("/cat.png", PNG).replace("127.0.0.1", "near.example")
    seen = await dry(shop, {"media": [{"type": "photo", "url": url}]})

    await shop.became(await shop.stage(url), "enqueued")

    made = await plans(shop)
    assert {
        title: (row["status"], row["url"] is not None, row["blob_ref"] is not None) for title, row in made.items()
    } == {
        "Demo MAX 1": ("queued", True, False),
        "Demo MAX 2": ("queued", False, True),
        "Demo Telegram 1": ("queued", False, True),
    }
    assert {plan["plan_hash"] for plan in seen["plans"].values()} == {row["plan_hash"] for row in made.values()}
    assert made["Demo MAX 1"]["url"] == url
    assert len(await keys(s3)) == 1
    stored = msgspec.json.decode(await shop.sql("SELECT payload FROM messages"))
    assert [("url" in item, "blob_ref" in item) for item in stored["media"]] == [(False, True)]


async def test_an_address_from_inside_is_uploaded_and_never_passed_on(shop: Workshop, site: Pictures) -> None:
    await only(shop, Demo_MAX_1=ALLOWED)

    await shop.became(await shop.stage(site.put("/cat.png", PNG)), "enqueued")

    made = (await plans(shop))["Demo MAX 1"]
    assert (made["status"], made["url"], made["blob_ref"] is not None) == ("queued", None, True)


async def test_a_url_with_credentials_is_refused_whatever_the_channel_allows(shop: Workshop) -> None:
    await only(shop, Demo_MAX_1=ALLOWED)
    body = {"media": [{"type": "photo", "url": "https://ann:hush@pictures.example/cat.png"}]}

    answer = await shop.post(body)

    assert (answer.status_code, answer.json()["field"]) == (422, "media[0].url")
    assert "hush" not in answer.text


async def test_a_video_is_fetched_whatever_the_policy_says(shop: Workshop, site: Pictures) -> None:
    await only(shop, Demo_MAX_1='{"upload_policy": {"image": "url_allowed", "video": "url_allowed"}}')
    url = site.put("/a.mp4", MP4).replace("127.0.0.1", "near.example")

    await shop.became(await shop.stage(url, kind="video"), "enqueued")

    made = (await plans(shop))["Demo MAX 1"]
    assert (made["url"], made["blob_ref"] is not None) == (None, True)


async def test_the_central_policy_holds_where_a_channel_says_nothing(seeded_database: Database, s3: Bucket) -> None:
    async with opened(seeded_database, s3, upload_policy_image="url_allowed") as shop:
        await only(shop, Demo_MAX_1="{}")
        await shop.became(await shop.stage(FAR), "enqueued")
        passed_on = await plans(shop)

        await only(shop, Demo_MAX_1="{}", Demo_MAX_2=REQUIRED)
        seen = await dry(shop, {"media": [{"type": "photo", "url": FAR}]}, "dry_run=1&media=skip")

    assert passed_on["Demo MAX 1"]["url"] == FAR
    sources = [plan["plan"]["parts"][0]["media"][0] for plan in seen["plans"].values()]
    assert sorted("url" in source for source in sources) == [False, True]
