"""A post with media by URL is answered at once, and then fetched, stored and enqueued once, or it fails visibly."""

import asyncio
from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from autopost_contracts.payload import Content, Medium
from harness.buckets import Bucket
from harness.databases import Database
from harness.eventually import eventually
from harness.telegram_media import png
from ingest.support.ingest_client import DEMO_WORKSPACE, SHOP, TABLES
from ingest.support.pictures import GIF, PDF, PNG, Pictures
from ingest.support.staging_ingest import Workshop, keys, workshop

DIGEST = sha256(PNG).hexdigest()


@pytest.fixture
async def shop(seeded_database: Database, s3: Bucket) -> AsyncIterator[Workshop]:
    async with workshop(seeded_database, s3) as made:
        yield made


async def content(shop: Workshop, message_id: str) -> Content:
    stored = await shop.sql("SELECT payload FROM messages WHERE message_id = $1", UUID(message_id))
    return msgspec.json.decode(stored, type=Content)


async def test_a_post_with_a_picture_by_url_is_answered_at_once_and_enqueued_when_it_is_fetched(
    shop: Workshop, site: Pictures, s3: Bucket
) -> None:
    url = site.put("/cat.png", PNG)

    answer = await shop.stage(url, text="hello")

    assert answer["message_id"] is None
    assert UUID(answer["post_id"]) and UUID(answer["run_id"])
    told = await shop.became(answer, "enqueued")
    assert {name: told[name] for name in ("post_id", "run_id", "trace_id")} == {
        name: answer[name] for name in ("post_id", "run_id", "trace_id")
    }
    assert told["channels"] == {"routed": 40, "enqueued": 40, "deduped": 0, "validation_failed": 0}
    stored = await content(shop, told["message_id"])
    known = {"content_type": "image/png", "size": len(PNG), "width": 40, "height": 30, "name": "cat.png"}
    assert (stored.text, stored.media) == ("hello", (Medium(type="image", blob_ref=f"sha256:{DIGEST}", **known),))  # type: ignore[arg-type]
    assert await keys(s3) == {f"{DEMO_WORKSPACE}/media/{DIGEST}"}
    origin = await shop.sql("SELECT origin_url FROM media_origin")
    assert origin == f"s3://{s3.bucket}/{DEMO_WORKSPACE}/media/{DIGEST}"


async def test_stored_and_fetched_media_stand_in_the_order_in_which_they_were_named(
    shop: Workshop, site: Pictures
) -> None:
    held = await shop.store(b"held", "image/png")
    named = [
        {"type": "photo", "url": site.put("/a.gif", GIF), "caption": " one "},
        {"type": "photo", "blob_ref": held},
        {"type": "document", "url": site.put("/price.pdf", PDF)},
        {"type": "photo", "url": site.put("/b.png", PNG)},
    ]

    answer = await shop.post({"media": named})

    told = await shop.became(answer.json(), "enqueued")
    refs = [f"sha256:{sha256(body).hexdigest()}" for body in (GIF, b"held", PDF, PNG)]
    media = (await content(shop, told["message_id"])).media
    assert [medium.blob_ref for medium in media] == refs
    assert [(medium.type, medium.caption) for medium in media] == [
        *(("image", "one"), ("image", ""), ("file", ""), ("image", "")),
    ]


async def test_the_same_picture_from_two_urls_is_one_object_and_the_same_content(
    shop: Workshop, site: Pictures, s3: Bucket
) -> None:
    one, two = site.put("/one.png", PNG), site.put("/two.png", PNG)
    first = await shop.became(await shop.stage(one, text="hello"), "enqueued")

    second = await shop.became(await shop.stage(two, text="hello"), "enqueued")

    assert first["message_id"] == second["message_id"]
    assert second["channels"] == {"routed": 40, "enqueued": 0, "deduped": 40, "validation_failed": 0}
    assert len(await keys(s3)) == await shop.sql("SELECT count(*) FROM media_origin") == 1


async def test_concurrent_downloads_of_the_same_picture_are_one_object(
    shop: Workshop, site: Pictures, s3: Bucket
) -> None:
    urls = [site.put(f"/{number}.png", PNG) for number in range(6)]

    posts = await asyncio.gather(*(shop.stage(url, text=url) for url in urls))

    for post in posts:
        await shop.became(post, "enqueued")
    assert len(await keys(s3)) == await shop.sql("SELECT count(*) FROM media_origin") == 1


async def test_a_url_that_many_posts_name_at_once_is_fetched_once(
    seeded_database: Database, s3: Bucket, site: Pictures
) -> None:
    async with workshop(seeded_database, s3, resting=True) as shop:
        url = site.put("/cat.png", PNG)
        posts = [await shop.stage(url, url, text=f"text {number}") for number in range(6)]
    async with workshop(seeded_database, s3, fetch_per_workspace=6) as shop:
        for post in posts:
            await shop.became(post, "enqueued")

    assert site.hits["/cat.png"] == 1


async def test_a_picture_that_changed_between_two_posts_is_fetched_again(shop: Workshop, site: Pictures) -> None:
    url = site.put("/chart.png", PNG)
    first = await shop.became(await shop.stage(url), "enqueued")
    site.put("/chart.png", png(1, 1))

    second = await shop.became(await shop.stage(url, source_ref="2"), "enqueued")

    assert first["message_id"] != second["message_id"]


async def test_a_server_that_fails_is_asked_again_and_the_post_says_so_meanwhile(
    shop: Workshop, site: Pictures
) -> None:
    post = await shop.stage(site.put("/cat.png", b"", 503), source_ref="42")

    async def tried() -> bool:
        return bool(await shop.sql("SELECT last_error IS NOT NULL FROM staged_posts"))

    await eventually(tried)
    meanwhile = (await shop.told(post["post_id"])).json()
    repeated = await shop.post({"media": [{"type": "photo", "url": f"{site.url}/cat.png"}], "source_ref": "42"})
    site.put("/cat.png", PNG)
    await shop.hurry()
    told = await shop.became(post, "enqueued")

    assert (meanwhile["status"], meanwhile["attempt"], meanwhile["error"]["code"]) == ("staged", 1, "http_503")
    assert meanwhile["error"]["field"] == "media[0].url"
    assert meanwhile["next_attempt_at"] is not None
    assert (repeated.status_code, repeated.json()["status"]) == (200, "duplicate")
    assert (told["attempt"], told["error"]) == (2, None)


async def test_what_was_fetched_before_an_item_failed_is_not_fetched_again(shop: Workshop, site: Pictures) -> None:
    good, bad = site.put("/good.png", PNG), site.put("/bad.png", b"", 503)
    post = await shop.stage(good, bad)

    async def tried() -> bool:
        return bool(await shop.sql("SELECT last_error IS NOT NULL FROM staged_posts"))

    await eventually(tried)
    site.put("/bad.png", png(1, 1))
    await shop.hurry()
    await shop.became(post, "enqueued")

    assert (site.hits["/good.png"], site.hits["/bad.png"]) == (1, 2)


@pytest.mark.parametrize("column", ["request", "source"])
@pytest.mark.parametrize("nonsense", ["[]", "null", '"x"', "7", pytest.param("[" * 3000 + "]" * 3000, id="deep")])
async def test_a_row_that_makes_no_sense_does_not_keep_the_others_from_being_worked_on(
    seeded_database: Database, s3: Bucket, site: Pictures, column: str, nonsense: str
) -> None:
    async with workshop(seeded_database, s3, resting=True) as shop:
        await shop.stage(site.put("/bad.png", PNG), text="bad")
        await shop.sql(f"UPDATE staged_posts SET {column} = '{nonsense}'")
        good = await shop.stage(site.put("/good.png", PNG), text="good")
    async with workshop(seeded_database, s3) as shop:
        await shop.became(good, "enqueued")


async def test_a_picture_that_is_gone_fails_visibly_and_the_sender_may_try_again(
    shop: Workshop, site: Pictures
) -> None:
    url = f"{site.url}/cat.png?signature=s3cret"
    post = await shop.stage(url, text="hello", source_ref="42")

    told = await shop.became(post, "failed")

    assert told["error"] == {"code": "http_404", "field": "media[0].url", "host": "127.0.0.1"}
    assert told["message_id"] is None and told["finished_at"] is not None
    event = "SELECT error || meta FROM events WHERE action = 'media_failed'"
    assert msgspec.json.decode(await shop.sql(event)).items() >= {
        *(("code", "http_404"), ("post_id", post["post_id"]), ("run_id", post["run_id"])),
        ("trace_id", post["trace_id"]),
    }
    stats = msgspec.json.decode(await shop.sql("SELECT stats_json FROM ingest_runs WHERE finished_at IS NOT NULL"))
    assert stats == {"accepted": 1, "staged": 1, "media_failed": 1, "reason": "http_404"}
    assert await shop.sql("SELECT count(*) FROM events WHERE events::text LIKE '%s3cret%'") == 0
    site.put("/cat.png", PNG)
    await shop.became(await shop.stage(url, text="hello", source_ref="42"), "enqueued")


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://127.0.0.2/cat.png", "forbidden_address"),
        ("http://[::1]/cat.png", "forbidden_address"),
        ("http://169.254.169.254/latest/meta-data/", "forbidden_address"),
        ("http://0x7f.2/cat.png", "forbidden_address"),
    ],
)
async def test_a_post_that_wants_to_look_inside_fails_at_once(shop: Workshop, url: str, code: str) -> None:
    told = await shop.became(await shop.stage(url), "failed")

    assert (told["attempt"], told["error"]["code"]) == (1, code)


@pytest.mark.parametrize(("body", "kind"), [(PDF, "photo"), (b"<html>", "document"), (PNG, "video")])
async def test_what_is_not_what_it_should_be_is_neither_stored_nor_posted(
    shop: Workshop, site: Pictures, s3: Bucket, body: bytes, kind: str
) -> None:
    told = await shop.became(await shop.stage(site.put("/a", body), kind=kind), "failed")

    assert told["error"]["code"] == "wrong_type"
    assert await keys(s3) == set()
    assert await shop.sql("SELECT count(*) FROM messages") == 0


async def test_one_url_under_two_kinds_is_judged_as_each(seeded_database: Database, s3: Bucket, site: Pictures) -> None:
    url = site.put("/a", PDF)
    async with workshop(seeded_database, s3, resting=True) as shop:
        document = await shop.stage(url, kind="document")
        photo = await shop.stage(url, kind="photo")
    async with workshop(seeded_database, s3, fetch_concurrency=1) as shop:
        await shop.became(document, "enqueued")
        told = await shop.became(photo, "failed")

    assert (told["error"]["code"], site.hits["/a"]) == ("wrong_type", 1)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"media": [{"type": "photo", "url": "file:///etc/passwd"}]}, "media[0].url"),
        ({"media": [{"type": "photo", "url": "http://me:secret@a.example/"}]}, "media[0].url"),
        ({"media": [{"type": "photo", "url": "http://"}]}, "media[0].url"),
        ({"media": [{"type": "photo", "url": "http://a.example/", "file_id": "x"}]}, "media[0]"),
        ({"media": [{"type": "photo", "url": "http://a.example/"}], "links": ["nowhere"]}, "links[0]"),
        (
            {
                "media": [
                    {"type": "photo", "url": "http://a.example/"},
                    {"type": "photo", "blob_ref": "sha256:" + "0" * 64},
                ]
            },
            "media[1].blob_ref",
        ),
    ],
)
async def test_what_makes_no_sense_is_refused_at_the_door(shop: Workshop, body: Any, field: str) -> None:
    answer = await shop.post(body)

    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert await shop.rows() == dict.fromkeys(TABLES, 0)


async def test_only_the_workspace_of_a_post_is_told_what_became_of_it(shop: Workshop, site: Pictures) -> None:
    post = await shop.stage(site.put("/cat.png", PNG))

    statuses = [
        (await shop.told(post_id, secret)).status_code
        for post_id, secret in (
            *((post["post_id"], SHOP), (post["post_id"], None), (post["post_id"], "wrong")),
            *((str(uuid4()), SHOP), ("nonsense", SHOP)),
        )
    ]

    assert statuses == [404, 401, 401, 404, 404]
