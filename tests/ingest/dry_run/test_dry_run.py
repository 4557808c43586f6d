"""A dry run says for each channel what would happen and why, and leaves nothing behind."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from ingest.support.ingest_client import DEMO, DEMO_WORKSPACE, SHOP, IngestClient


async def dry_run(
    client: IngestClient, body: Any = None, *, secret: str = DEMO, query: str = "?dry_run=1", **options: Any
) -> Any:
    headers = {"Authorization": f"Bearer {secret}"} | options.pop("headers", {})
    given = options if options else {"json": {"text": "hello"} if body is None else body}
    return await client.http.post(f"{client.url}/v1/posts{query}", headers=headers, **given)


async def told(client: IngestClient, body: Any = None, **options: Any) -> Any:
    answer: httpx.Response = await dry_run(client, body, **options)
    assert answer.status_code == 200, answer.text
    return answer.json()


def titled(found: dict[str, Any]) -> dict[str, Any]:
    return {channel["title"]: channel for channel in found["channels"]}


async def everything(client: IngestClient) -> dict[str, str]:
    """A fingerprint of each table and sequence."""
    tables = await client.sql(
        "SELECT array_agg(oid::regclass::text) FROM pg_class WHERE relnamespace = 'public'::regnamespace "
        "AND relkind IN ('r', 'p')"
    )
    content = {
        table: await client.sql(f"SELECT md5(string_agg(t::text, ',' ORDER BY t::text)) FROM {table} AS t")
        for table in tables
    }
    return content | {"sequences": await client.sql("SELECT array_agg(s::text ORDER BY s) FROM pg_sequences AS s")}


BODIES: dict[str, dict[str, Any]] = {
    "accepted": {"json": {"text": "new", "tags": ["a"]}},
    "a duplicate": {"json": {"text": "b", "source_ref": "known"}},
    "known content": {"json": {"text": "known", "source_ref": "other"}},
    "refused by a platform": {"json": {"text": "я" * 5000}},
    "unreadable": {"content": b"{"},
    "senseless": {"json": {}},
    "too large": {"content": b" " * 300_000},
    "encoded": {"content": b"x", "headers": {"Content-Encoding": "gzip"}},
}


@pytest.mark.parametrize("options", BODIES.values(), ids=BODIES.keys())
async def test_nothing_in_the_database_moves(client: IngestClient, options: dict[str, Any]) -> None:
    await client.post({"text": "known", "source_ref": "known"})
    before = await everything(client)

    for _ in range(3):
        await dry_run(client, **options)

    assert await everything(client) == before


@pytest.mark.parametrize("status", ["paused", "disabled"])
async def test_a_workspace_at_rest_answers_as_it_would_and_keeps_nothing(client: IngestClient, status: str) -> None:
    await client.sql("UPDATE workspaces SET status = $1", status)
    before = await everything(client)

    answer = await dry_run(client)

    assert answer.status_code == {"paused": 503, "disabled": 403}[status]
    assert await everything(client) == before


async def test_it_wakes_nobody(client: IngestClient) -> None:
    await told(client)

    assert client.ear.heard == []


async def test_it_needs_the_secret_like_a_post(client: IngestClient) -> None:
    assert (await dry_run(client, secret="wrong")).status_code == 401


@pytest.mark.parametrize(
    ("query", "field"),
    [("?dry_run=2", "dry_run"), ("?dry_run", "dry_run"), ("?dry_run=1&x=1", "x"), ("?dry_run=1&media=1", "media")],
)
async def test_a_parameter_that_is_not_understood_is_refused(client: IngestClient, query: str, field: str) -> None:
    answer = await dry_run(client, query=query)

    assert (answer.status_code, answer.json()["field"]) == (400, field)


async def test_media_is_a_parameter_of_dry_runs_alone(client: IngestClient) -> None:
    answer = await dry_run(client, query="?media=skip")

    assert (answer.status_code, answer.json()["field"]) == (400, "media")


async def test_a_plan_is_shown_once_for_all_channels_that_share_it(client: IngestClient) -> None:
    found = await told(client, {"text": "<b>hello</b>", "parse_mode": "HTML"})

    assert found["counts"] == {"routed": 40, "enqueued": 40, "deduped": 0, "validation_failed": 0}
    assert {channel["profile"] for channel in found["channels"]} == set(found["plans"])
    assert sorted(plan["plan"]["platform"] for plan in found["plans"].values()) == ["max", "telegram"]
    for channel in found["channels"]:
        assert channel["plan_hash"] == found["plans"][channel["profile"]]["plan_hash"]
        assert found["plans"][channel["profile"]]["plan"]["parts"][0]["text"] == "<b>hello</b>"


async def test_the_parts_media_buttons_and_notes_are_shown_as_they_would_be_sent(client: IngestClient) -> None:
    photo = await client.store(b"png", "image/png", width=3, height=2)
    body = {
        "text": "hello",
        "media": [{"type": "photo", "blob_ref": photo}],
        "buttons": [{"text": "Read", "url": "https://a.example/"}],
        "silent": True,
    }

    plans = {plan["plan"]["platform"]: plan["plan"] for plan in (await told(client, body))["plans"].values()}

    assert [part["kind"] for part in plans["telegram"]["parts"]] == ["media"]
    [item] = plans["telegram"]["parts"][0]["media"]
    assert (item["blob_ref"], item["caption"]) == (photo, "hello")
    assert plans["telegram"]["parts"][0]["buttons"] == [[{"text": "Read", "url": "https://a.example/"}]]
    assert any("silent" in note for note in plans["max"]["notes"])


async def test_a_channel_that_cannot_show_it_has_problems_and_the_others_a_plan(client: IngestClient) -> None:
    found = await told(client, {"text": "я" * 4050})

    outcomes = {(channel["platform"], channel["outcome"]) for channel in found["channels"]}
    assert outcomes == {("telegram", "enqueued"), ("max", "validation_failed")}
    assert found["counts"] == {"routed": 40, "enqueued": 20, "deduped": 0, "validation_failed": 20}
    [refused] = [plan for plan in found["plans"].values() if plan["plan"] is None]
    assert [problem["code"] for problem in refused["problems"]] == ["message_too_long"]


async def test_each_channel_says_in_words_why_the_post_does_not_go_there(client: IngestClient) -> None:
    body = {"text": "a", "tags": ["Draft", "sale"], "routing": {"channel_tags": ["sale", "photo", "night", "news"]}}
    await client.sql("UPDATE channels SET enabled = false WHERE title = 'Север в MAX'")

    found = titled(await told(client, body, secret=SHOP))

    reasons = {title: channel["route"]["reasons"] for title, channel in found.items()}
    assert reasons["Север в MAX"] == ["the channel is disabled"]
    assert reasons["Север в MAX: скидки"] == ["route_filter excludes the tags draft; the post has draft, sale"]
    assert reasons["Север в MAX: фото"] == ["the channel accepts only media; this post is text"]
    assert reasons["Север: ночная лента"] == [
        "route_filter requires all of the tags night, news; the post has draft, sale"
    ]
    assert reasons["Север: новости"] == ["the channel has no route_filter"]
    assert reasons["Север: скидки"] == ["route_filter matches the post"]
    assert {title for title, channel in found.items() if channel["outcome"] == "enqueued"} == {
        "Север: новости",
        "Север: скидки",
        "Север: только днём",
    }


async def test_hints_say_which_of_them_keeps_a_channel_out(client: IngestClient) -> None:
    channel = str(await client.sql("SELECT channel_id FROM channels WHERE title = 'Demo MAX 2'"))

    found = titled(await told(client, {"text": "a", "routing": {"channels": [channel], "channel_tags": ["even"]}}))

    assert found["Demo MAX 2"]["outcome"] == "enqueued"
    assert found["Demo MAX 4"]["route"]["reasons"] == ["the channel is not in routing.channels"]
    assert found["Demo MAX 3"]["route"]["reasons"] == [
        "the channel is not in routing.channels",
        "the channel has none of the tags in routing.channel_tags: even",
    ]
    assert found["Demo MAX 3"]["plan_hash"] is found["Demo MAX 3"]["profile"] is None


async def test_a_delivery_of_the_same_content_keeps_its_channel_back(client: IngestClient) -> None:
    posted = await client.post({"text": "again"})
    await client.sql("UPDATE deliveries SET status = 'dead' WHERE delivery_id IN (SELECT delivery_id FROM deliveries d "
                   "JOIN channels c USING (channel_id) WHERE c.title = 'Demo MAX 1')")  # fmt: skip

    found = await told(client, {"text": "again", "tags": ["other"]})

    assert found["message_id"] == posted.json()["message_id"]
    assert found["counts"] == {"routed": 40, "enqueued": 1, "deduped": 39, "validation_failed": 0}
    twin = titled(found)["Demo MAX 2"]["dedup"]["twin"]
    assert (twin["status"], twin["until"]) == ("queued", None)
    assert titled(found)["Demo MAX 1"]["outcome"] == "enqueued"


async def test_the_earliest_time_and_what_it_waits_for_are_told(client: IngestClient) -> None:
    soon = datetime.now(UTC) + timedelta(hours=3)
    await client.sql("UPDATE channels SET paused_until = $1 WHERE title = 'Demo MAX 1'", soon)
    await client.sql("UPDATE channels SET paused_until = 'infinity' WHERE title = 'Demo MAX 2'")
    await client.sql("UPDATE channels SET window_mode = 'windowed', posting_window = '{}' WHERE title = 'Demo MAX 3'")
    scheduled = datetime.now(UTC) + timedelta(hours=1)

    timing = {
        title: channel["timing"]
        for title, channel in titled(await told(client, {"text": "a", "scheduled_for": scheduled.isoformat()})).items()
    }

    first = f"scheduled_for is {scheduled.isoformat()}"
    assert timing["Demo MAX 4"]["waits"] == [first]
    assert datetime.fromisoformat(timing["Demo MAX 4"]["earliest"]) == scheduled
    assert timing["Demo MAX 1"]["waits"] == [first, f"the channel is paused until {soon.isoformat()}"]
    assert datetime.fromisoformat(timing["Demo MAX 1"]["earliest"]) == soon
    assert timing["Demo MAX 2"] == {
        "earliest": None,
        "waits": [first, "the channel is paused until it is resumed by hand"],
    }
    assert timing["Demo MAX 3"]["earliest"] is None
    assert timing["Demo MAX 3"]["waits"][1] == "the posting window of the channel is closed"


async def test_a_repeated_request_would_be_dropped_and_says_whose_repetition_it_is(client: IngestClient) -> None:
    first = await client.post({"text": "a", "source_ref": "1"})
    second = await client.post({"text": "b"})

    by_ref = await told(client, {"text": "other", "source_ref": "1"})
    by_body = await told(client, {"text": "b"})

    assert (by_ref["verdict"], by_ref["duplicate_of"]["run_id"]) == ("duplicate", first.json()["run_id"])
    assert "source_ref" in by_ref["reason"]
    assert (by_body["verdict"], by_body["duplicate_of"]["run_id"]) == ("duplicate", second.json()["run_id"])


async def test_a_full_gate_is_told_and_dry_runs_do_not_fill_it(client: IngestClient) -> None:
    await client.sql("UPDATE workspace_endpoints SET ingress_rps = 4")
    previews = [(await told(client))["verdict"] for _ in range(3)]

    posts = [(await client.post({"text": f"{n}"})).status_code for n in range(5)]
    await client.sql("UPDATE ingress_gates SET full_until = clock_timestamp() + interval '1 hour'")
    full = await told(client)

    assert previews == ["accepted"] * 3
    assert posts.count(202) >= 4
    assert (full["verdict"], full["retry_after_ms"] > 0) == ("rate_limited", True)


async def test_dry_runs_have_a_rate_of_their_own(client: IngestClient) -> None:
    await client.sql("UPDATE workspace_endpoints SET ingress_rps = 2")
    before = await everything(client)

    codes = [(await dry_run(client)).status_code for _ in range(6)]

    assert codes[:2] == [200, 200]
    assert 429 in codes
    assert await everything(client) == before
    assert (await client.post()).status_code == 202


async def test_media_that_is_not_stored_is_refused_as_in_a_post(client: IngestClient) -> None:
    body = {"media": [{"type": "image", "blob_ref": "sha256:" + "0" * 64}]}

    answer = await dry_run(client, body)

    assert (answer.status_code, answer.json()["field"]) == (422, "media[0].blob_ref")


async def test_another_tenant_is_never_seen(client: IngestClient) -> None:
    await client.post({"text": "theirs"})

    found = await told(client, {"text": "theirs"}, secret=SHOP)

    theirs = await client.sql(
        "SELECT array_agg(channel_id::text) FROM channels WHERE workspace_id = $1", DEMO_WORKSPACE
    )
    assert found["message_id"] is None
    assert {channel["channel_id"] for channel in found["channels"]} & set(theirs) == set()
    assert json.dumps(found).count("Demo") == 0
