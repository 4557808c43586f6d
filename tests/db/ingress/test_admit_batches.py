"""Admit many at once: what is true of one push is true of each in a batch, in the order in which they came."""

import asyncio
import json
import random
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from db.support.builders import Tenant
from db.support.consistency import consistent
from db.support.hot_calls import unshowable
from db.support.senders import Sender, make_sender

BATCHES = 64
REQUEST = {"text": "hello", "media": [{"type": "image", "url": "https://example.com/a.png"}]}


async def posts_of(tenant: Tenant, *fields: dict[str, Any]) -> list[dict[str, Any]]:
    return [await tenant.post(str(number), **each) for number, each in enumerate(fields)]


async def admit(sender: Sender, posts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return await sender.admit_all(posts, [post["content_hash"] for post in posts])


async def test_each_push_of_a_batch_has_its_receipt_its_run_and_its_deliveries(tenant):
    await tenant.channels(2)
    sender = await make_sender(tenant)

    answers = await admit(sender, await posts_of(tenant, *({"source_ref": str(n)} for n in range(5))))

    assert [(answer["verdict"], answer["enqueued"]) for answer in answers] == [("accepted", 2)] * 5
    receipts = await tenant.db.fetch("SELECT run_id::text, source_ref FROM ingress_receipts ORDER BY source_ref")
    assert [tuple(row) for row in receipts] == [(answer["run_id"], str(n)) for n, answer in enumerate(answers)]
    assert [(run["accepted"], run["enqueued"]) for run in await sender.runs()] == [(1, 2)] * 5
    assert len({answer["message_id"] for answer in answers}) == await tenant.count("messages") == 5


async def test_of_twins_in_a_batch_the_first_is_accepted(tenant):
    await tenant.channel()
    sender = await make_sender(tenant)
    refs = [{"source_ref": "a"}, {}, {"source_ref": "a"}, {"source_ref": "b"}]
    posts = await posts_of(tenant, *refs)

    answers = await admit(sender, [*posts, posts[1]])

    assert [answer["verdict"] for answer in answers] == ["accepted", "accepted", "duplicate", "accepted", "duplicate"]
    assert [answers[n]["of"] for n in (2, 4)] == ["source_ref", "payload"]
    assert [answers[n]["first_run_id"] for n in (2, 4)] == [answers[n]["run_id"] for n in (0, 1)]
    assert [run for run in await sender.runs() if "dedup_dropped" in run] == [{"dedup_dropped": 2}]


async def test_a_repeated_post_that_was_staged_is_told_where_it_waits(tenant):
    await tenant.channel()
    sender = await make_sender(tenant)
    posts = await posts_of(tenant, {"request": REQUEST}, {})

    first, again = [await admit(sender, posts) for _ in range(2)]

    assert [answer["verdict"] for answer in first + again] == ["staged", "accepted", "duplicate", "duplicate"]
    assert [answer.get("post_id") for answer in again] == [first[0]["post_id"], None]


async def test_where_there_is_no_window_the_same_payload_is_new_each_time_also_within_a_batch(tenant):
    await tenant.channel()
    sender = await make_sender(tenant, window=0)
    [post] = await posts_of(tenant, {})

    answers = await admit(sender, [post, post]) + await admit(sender, [post])

    assert [answer["verdict"] for answer in answers] == ["accepted"] * 3
    assert [answer["enqueued"] for answer in answers] == [1, 0, 0]


async def test_of_twins_the_second_is_new_when_the_gate_refused_the_first(tenant):
    await tenant.channel()
    sender = await make_sender(tenant, rate=1)
    [post] = await posts_of(tenant, {})
    given = [{**post, "run_id": str(uuid4())} for _ in range(3)]

    told = await tenant.db.fetchval(
        "SELECT admit_posts($1, $2, $3, $4, $5)",
        *(tenant.workspace, sender.endpoint, json.dumps(given), ["first", "same", "same"], [False, False, True]),
    )

    assert [answer["verdict"] for answer in json.loads(told)] == ["accepted", "rate_limited", "accepted"]


async def test_the_gate_lets_the_first_of_a_batch_pass_and_tells_the_others_when(tenant):
    await tenant.channel()
    sender = await make_sender(tenant, rate=4)

    answers = await admit(sender, await posts_of(tenant, *[{}] * 7))

    assert [answer["verdict"] for answer in answers] == ["accepted"] * 4 + ["rate_limited"] * 3
    assert all(0 < answer["retry_after_ms"] <= 250 for answer in answers[4:])
    [event] = await tenant.events("ingress_rate_limited")
    assert '"count": 3' in event["meta"]
    assert await tenant.count("ingress_receipts") == 4


async def test_a_post_that_lacks_a_rendering_and_one_with_media_to_fetch_go_their_own_ways(tenant):
    await tenant.channel()
    sender = await make_sender(tenant)
    plain, lacking, staged = await posts_of(tenant, {}, {"renderings": []}, {"request": REQUEST})

    answers = await admit(sender, [lacking, staged, plain])

    assert [answer["verdict"] for answer in answers] == ["missing_profiles", "staged", "accepted"]
    assert await tenant.count("messages") == await tenant.count("staged_posts") == 1
    assert await tenant.count("ingress_receipts") == 2
    runs = await tenant.db.fetch("SELECT finished_at IS NULL AS open FROM ingest_runs ORDER BY open")
    assert [run["open"] for run in runs] == [False, True]


async def test_unsorted_batches_at_the_same_time_neither_deadlock_nor_double(tenant):
    """The same requests again and again, in any order, with and without a name of their own."""
    await tenant.channels(3)
    sender = await make_sender(tenant)
    posts = await posts_of(tenant, *({"source_ref": str(n)} if n % 2 else {} for n in range(30)))
    chance = random.Random(7)

    answers = await asyncio.gather(*(admit(sender, chance.sample(posts, 12)) for _ in range(BATCHES)))

    verdicts = [answer["verdict"] for batch in answers for answer in batch]
    assert set(verdicts) == {"accepted", "duplicate"}
    assert verdicts.count("accepted") == await tenant.count("messages") == await tenant.count("ingress_receipts")
    assert await tenant.count("deliveries") == 3 * await tenant.count("messages")
    await consistent(tenant.db, tenant.workspace)


async def test_a_call_that_is_repeated_as_it_was_enqueues_nothing_twice(tenant):
    """Its runs are there. Nothing else keeps the posts back: no source_ref, no window, no TTL."""
    await tenant.channel(dedup_ttl_hours=0)
    sender = await make_sender(tenant, window=0)
    posts = json.dumps(await posts_of(tenant, {}, {}))
    given = (tenant.workspace, sender.endpoint, posts, ["a", "b"], [False, False])
    await tenant.db.fetchval("SELECT admit_posts($1, $2, $3, $4, $5)", *given)
    await tenant.drain()

    with pytest.raises(asyncpg.UniqueViolationError):
        await tenant.db.fetchval("SELECT admit_posts($1, $2, $3, $4, $5)", *given)

    assert await tenant.count("deliveries") == 2


async def test_a_push_that_no_channel_takes_keeps_no_source_ref_from_the_next_of_its_batch(tenant):
    await tenant.channel(route_filter={"include_any": ["news"]})
    sender = await make_sender(tenant)

    answers = await admit(
        sender, await posts_of(tenant, {"source_ref": "1", "tags": ["nwes"]}, {"source_ref": "1", "tags": ["news"]})
    )

    assert [(answer["verdict"], answer["routed"]) for answer in answers] == [("refused", 0), ("accepted", 1)]


async def test_a_push_that_no_channel_can_show_keeps_no_source_ref_from_the_next_of_its_batch(tenant):
    await tenant.channel()
    sender = await make_sender(tenant)
    post, right = await posts_of(tenant, {"source_ref": "1"}, {"source_ref": "1"})
    wrong = unshowable(post)

    answers = await admit(sender, [wrong, right, wrong])

    verdicts = [(answer["verdict"], answer["enqueued"], answer["validation_failed"]) for answer in answers]
    assert verdicts == [("refused", 0, 1), ("accepted", 1, 0), ("refused", 0, 1)]
    assert await tenant.db.fetch("SELECT run_id::text FROM ingress_receipts") == [(answers[1]["run_id"],)]
    assert [run.get("refused", 0) for run in await sender.runs()] == [1, 0, 1]
    assert len(await tenant.events("validation_failed")) == 1
