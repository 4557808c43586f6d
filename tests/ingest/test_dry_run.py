"""A dry run says for each channel what would happen and why, and leaves nothing behind."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from ingest.door import DEMO, DEMO_WORKSPACE, SHOP, Door


async def dry_run(
    door: Door, body: Any = None, *, secret: str = DEMO, query: str = "?dry_run=1", **options: Any
) -> Any:
    headers = {"Authorization": f"Bearer {secret}"} | options.pop("headers", {})
    given = options if options else {"json": {"text": "hello"} if body is None else body}
    return await door.http.post(f"{door.url}/v1/posts{query}", headers=headers, **given)


async def told(door: Door, body: Any = None, **options: Any) -> Any:
    answer: httpx.Response = await dry_run(door, body, **options)
    assert answer.status_code == 200, answer.text
    return answer.json()


def titled(found: dict[str, Any]) -> dict[str, Any]:
    return {channel["title"]: channel for channel in found["channels"]}


async def everything(door: Door) -> dict[str, str]:
    """A fingerprint of each table and sequence."""
    tables = await door.sql(
        "SELECT array_agg(oid::regclass::text) FROM pg_class WHERE relnamespace = 'public'::regnamespace "
        "AND relkind IN ('r', 'p')"
    )
    content = {
        table: await door.sql(f"SELECT md5(string_agg(t::text, ',' ORDER BY t::text)) FROM {table} AS t")
        for table in tables
    }
    return content | {"sequences": await door.sql("SELECT array_agg(s::text ORDER BY s) FROM pg_sequences AS s")}


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
async def test_nothing_in_the_database_moves(door: Door, options: dict[str, Any]) -> None:
    await door.post({"text": "known", "source_ref": "known"})
    before = await everything(door)

    for _ in range(3):
        await dry_run(door, **options)

    assert await everything(door) == before


@pytest.mark.parametrize("status", ["paused", "disabled"])
async def test_a_workspace_at_rest_answers_as_it_would_and_keeps_nothing(door: Door, status: str) -> None:
    await door.sql("UPDATE workspaces SET status = $1", status)
    before = await everything(door)

    answer = await dry_run(door)

    assert answer.status_code == {"paused": 503, "disabled": 403}[status]
    assert await everything(door) == before


async def test_it_wakes_nobody(door: Door) -> None:
    await told(door)

    assert door.ear.heard == []


async def test_it_needs_the_secret_like_a_post(door: Door) -> None:
    assert (await dry_run(door, secret="wrong")).status_code == 401


@pytest.mark.parametrize(
    ("query", "field"),
    [("?dry_run=2", "dry_run"), ("?dry_run", "dry_run"), ("?dry_run=1&x=1", "x"), ("?dry_run=1&media=1", "media")],
)
async def test_a_parameter_that_is_not_understood_is_refused(door: Door, query: str, field: str) -> None:
    answer = await dry_run(door, query=query)

    assert (answer.status_code, answer.json()["field"]) == (400, field)


async def test_media_is_a_parameter_of_dry_runs_alone(door: Door) -> None:
    answer = await dry_run(door, query="?media=skip")

    assert (answer.status_code, answer.json()["field"]) == (400, "media")


async def test_a_plan_is_shown_once_for_all_channels_that_share_it(door: Door) -> None:
    found = await told(door, {"text": "<b>hello</b>", "parse_mode": "HTML"})

    assert found["counts"] == {"routed": 40, "enqueued": 40, "deduped": 0, "validation_failed": 0}
    assert {channel["profile"] for channel in found["channels"]} == set(found["plans"])
    assert sorted(plan["plan"]["platform"] for plan in found["plans"].values()) == ["max", "telegram"]
    for channel in found["channels"]:
        assert channel["plan_hash"] == found["plans"][channel["profile"]]["plan_hash"]
        assert found["plans"][channel["profile"]]["plan"]["parts"][0]["text"] == "<b>hello</b>"


async def test_the_parts_media_buttons_and_notes_are_shown_as_they_would_be_sent(door: Door) -> None:
    photo = await door.store(b"png", "image/png", width=3, height=2)
    body = {
        "text": "hello",
        "media": [{"type": "photo", "blob_ref": photo}],
        "buttons": [{"text": "Read", "url": "https://a.example/"}],
        "silent": True,
    }

    plans = {plan["plan"]["platform"]: plan["plan"] for plan in (await told(door, body))["plans"].values()}

    assert [part["kind"] for part in plans["telegram"]["parts"]] == ["media"]
    [item] = plans["telegram"]["parts"][0]["media"]
    assert (item["blob_ref"], item["caption"]) == (photo, "hello")
    assert plans["telegram"]["parts"][0]["buttons"] == [[{"text": "Read", "url": "https://a.example/"}]]
    assert any("silent" in note for note in plans["max"]["notes"])


async def test_a_channel_that_cannot_show_it_has_problems_and_the_others_a_plan(door: Door) -> None:
    found = await told(door, {"text": "я" * 4050})

    outcomes = {(channel["platform"], channel["outcome"]) for channel in found["channels"]}
    assert outcomes == {("telegram", "enqueued"), ("max", "validation_failed")}
    assert found["counts"] == {"routed": 40, "enqueued": 20, "deduped": 0, "validation_failed": 20}
    [refused] = [plan for plan in found["plans"].values() if plan["plan"] is None]
    assert [problem["code"] for problem in refused["problems"]] == ["message_too_long"]


async def test_each_channel_says_in_words_why_the_post_does_not_go_there(door: Door) -> None:
    body = {"text": "a", "tags": ["Draft", "sale"], "routing": {"channel_tags": ["sale", "photo", "night", "news"]}}
    await door.sql("UPDATE channels SET enabled = false WHERE title = 'Север в MAX'")

    found = titled(await told(door, body, secret=SHOP))

    reasons = {title: channel["route"]["reasons"] for title, channel in found.items()}
    assert reasons["Север в MAX"] == ["the channel is disabled"]
    assert reasons["Север в MAX: скидки"] == ["its filter excludes the tags draft; the post has draft, sale"]
    assert reasons["Север в MAX: фото"] == ["it takes only media, and this post is text"]
    assert reasons["Север: ночная лента"] == ["its filter wants all of the tags night, news; the post has draft, sale"]
    assert reasons["Север: новости"] == ["it has no filter"]
    assert reasons["Север: скидки"] == ["its filter lets the post through"]
    assert {title for title, channel in found.items() if channel["outcome"] == "enqueued"} == {
        "Север: новости",
        "Север: скидки",
        "Север: только днём",
    }


async def test_hints_say_which_of_them_keeps_a_channel_out(door: Door) -> None:
    channel = str(await door.sql("SELECT channel_id FROM channels WHERE title = 'Demo MAX 2'"))

    found = titled(await told(door, {"text": "a", "routing": {"channels": [channel], "channel_tags": ["even"]}}))

    assert found["Demo MAX 2"]["outcome"] == "enqueued"
    assert found["Demo MAX 4"]["route"]["reasons"] == ["routing.channels does not name it"]
    assert found["Demo MAX 3"]["route"]["reasons"] == [
        "routing.channels does not name it",
        "it has none of the tags in routing.channel_tags: even",
    ]
    assert found["Demo MAX 3"]["plan_hash"] is found["Demo MAX 3"]["profile"] is None


async def test_a_delivery_of_the_same_content_keeps_its_channel_back(door: Door) -> None:
    posted = await door.post({"text": "again"})
    await door.sql("UPDATE deliveries SET status = 'dead' WHERE delivery_id IN (SELECT delivery_id FROM deliveries d "
                   "JOIN channels c USING (channel_id) WHERE c.title = 'Demo MAX 1')")  # fmt: skip

    found = await told(door, {"text": "again", "tags": ["other"]})

    assert found["message_id"] == posted.json()["message_id"]
    assert found["counts"] == {"routed": 40, "enqueued": 1, "deduped": 39, "validation_failed": 0}
    twin = titled(found)["Demo MAX 2"]["dedup"]["twin"]
    assert (twin["status"], twin["until"]) == ("queued", None)
    assert titled(found)["Demo MAX 1"]["outcome"] == "enqueued"


async def test_the_earliest_time_and_what_it_waits_for_are_told(door: Door) -> None:
    soon = datetime.now(UTC) + timedelta(hours=3)
    await door.sql("UPDATE channels SET paused_until = $1 WHERE title = 'Demo MAX 1'", soon)
    await door.sql("UPDATE channels SET paused_until = 'infinity' WHERE title = 'Demo MAX 2'")
    await door.sql("UPDATE channels SET window_mode = 'windowed', posting_window = '{}' WHERE title = 'Demo MAX 3'")
    scheduled = datetime.now(UTC) + timedelta(hours=1)

    timing = {
        title: channel["timing"]
        for title, channel in titled(await told(door, {"text": "a", "scheduled_for": scheduled.isoformat()})).items()
    }

    first = f"the post is scheduled for {scheduled.isoformat()}"
    assert timing["Demo MAX 4"]["waits"] == [first]
    assert datetime.fromisoformat(timing["Demo MAX 4"]["earliest"]) == scheduled
    assert timing["Demo MAX 1"]["waits"] == [first, f"the channel is paused until {soon.isoformat()}"]
    assert datetime.fromisoformat(timing["Demo MAX 1"]["earliest"]) == soon
    assert timing["Demo MAX 2"] == {
        "earliest": None,
        "waits": [first, "the channel is paused until somebody resumes it"],
    }
    assert timing["Demo MAX 3"]["earliest"] is None
    assert timing["Demo MAX 3"]["waits"][1] == "its posting window is closed at that time"


async def test_a_repeated_request_would_be_dropped_and_says_whose_repetition_it_is(door: Door) -> None:
    first = await door.post({"text": "a", "source_ref": "1"})
    second = await door.post({"text": "b"})

    by_ref = await told(door, {"text": "other", "source_ref": "1"})
    by_body = await told(door, {"text": "b"})

    assert (by_ref["verdict"], by_ref["duplicate_of"]["run_id"]) == ("duplicate", first.json()["run_id"])
    assert "source_ref" in by_ref["reason"]
    assert (by_body["verdict"], by_body["duplicate_of"]["run_id"]) == ("duplicate", second.json()["run_id"])


async def test_a_full_gate_is_told_and_dry_runs_do_not_fill_it(door: Door) -> None:
    await door.sql("UPDATE workspace_endpoints SET ingress_rps = 4")
    previews = [(await told(door))["verdict"] for _ in range(3)]

    posts = [(await door.post({"text": f"{n}"})).status_code for n in range(5)]
    await door.sql("UPDATE ingress_gates SET full_until = clock_timestamp() + interval '1 hour'")
    full = await told(door)

    assert previews == ["accepted"] * 3
    assert posts.count(202) >= 4
    assert (full["verdict"], full["retry_after_ms"] > 0) == ("rate_limited", True)


async def test_dry_runs_have_a_rate_of_their_own(door: Door) -> None:
    await door.sql("UPDATE workspace_endpoints SET ingress_rps = 2")
    before = await everything(door)

    codes = [(await dry_run(door)).status_code for _ in range(6)]

    assert codes[:2] == [200, 200]
    assert 429 in codes
    assert await everything(door) == before
    assert (await door.post()).status_code == 202


async def test_media_that_is_not_stored_is_refused_as_in_a_post(door: Door) -> None:
    body = {"media": [{"type": "image", "blob_ref": "sha256:" + "0" * 64}]}

    answer = await dry_run(door, body)

    assert (answer.status_code, answer.json()["field"]) == (422, "media[0].blob_ref")


async def test_another_tenant_is_never_seen(door: Door) -> None:
    await door.post({"text": "theirs"})

    found = await told(door, {"text": "theirs"}, secret=SHOP)

    theirs = await door.sql("SELECT array_agg(channel_id::text) FROM channels WHERE workspace_id = $1", DEMO_WORKSPACE)
    assert found["message_id"] is None
    assert {channel["channel_id"] for channel in found["channels"]} & set(theirs) == set()
    assert json.dumps(found).count("Demo") == 0
