"""What is stored of an error: short whatever was posted or answered, and without secrets or people."""

import json
from typing import Any

import pytest
from db.support.builders import Tenant, permanent, rendering
from db.support.senders import Sender, make_sender
from db.support.staging import Staging, fence
from db.support.why_answers import ask_one

HUSH = "https://ann:hush@example.com/?token=hush"
PEOPLE = ("+7 900 123-45-67", "bob@example.com")
REF = f"{HUSH} {' '.join(PEOPLE)}"
CLEAN = "https://***@example.com/?token=*** *** ***"
KB = 2048


@pytest.fixture
async def sender(tenant: Tenant) -> Sender:
    return await make_sender(tenant)


def leaks(shown: Any) -> list[str]:
    text = json.dumps(shown, default=str, ensure_ascii=False)
    return [secret for secret in ("hush", *PEOPLE) if secret in text]


async def refused_by_all(tenant: Tenant, channels: int, problems: list[dict[str, str]]) -> None:
    for number in range(channels):
        await tenant.channel(settings={"number": number})
    post = await tenant.post("hello")
    profiles = [each["profile_hash"] for each in post["renderings"]]
    post["renderings"] = [{"profile_hash": profile, "problems": problems} for profile in profiles]
    await tenant.put(post)


async def stored(tenant: Tenant) -> list[dict[str, Any]]:
    rows = await tenant.db.fetch(
        "SELECT error FROM events WHERE error IS NOT NULL UNION ALL "
        "SELECT last_error FROM deliveries WHERE last_error IS NOT NULL"
    )
    return [json.loads(row["error"]) for row in rows]


async def test_many_long_problems_are_stored_in_less_than_two_kilobytes_for_each_channel(tenant):
    problem = {"code": "validation_failed", "field": "buttons[0]", "message": "я" * 500}

    await refused_by_all(tenant, 40, [problem] * 30)

    errors = await stored(tenant)
    assert len(errors) == 80
    assert max(len(json.dumps(error, ensure_ascii=False).encode()) for error in errors) < KB
    assert {(error["code"], error["more_problems"], error["problems"][0]["code"]) for error in errors} == {
        ("validation_failed", 25, "validation_failed")
    }


async def test_a_few_short_problems_are_stored_as_they_are(tenant):
    problems = [{"code": "message_too_long", "field": "text", "message": "5000 characters, 4096 are allowed"}] * 5

    await refused_by_all(tenant, 1, problems)

    assert [error["problems"] for error in await stored(tenant)] == [problems] * 2
    assert all("more_problems" not in error for error in await stored(tenant))


@pytest.mark.parametrize("character", ["x", "я", "😀", "\x01", '"'])
async def test_an_answer_of_a_platform_is_stored_in_less_than_two_kilobytes(tenant, character):
    await tenant.backlog(await tenant.channel(), 1)

    await tenant.commit(
        permanent(await tenant.claim_one(), "delivery", message=character * 5000, snippet=character * 5000)
    )

    errors = [error for error in await stored(tenant) if error.get("category")]
    assert len(errors) == 2
    for error in errors:
        assert len(json.dumps(error, ensure_ascii=False).encode()) < KB
        assert 0 < len(error["snippet"]) <= 500
        assert (error["category"], error["scope"], error["code"]) == ("PERMANENT", "delivery", "boom")


@pytest.mark.parametrize(
    "error",
    [
        {"code": "x" * 100_000},
        {"code": "x", **{f"key {number}": "я" * 300 for number in range(300)}},
        {"code": "x", "list": [["я" * 300] * 30] * 30},
        {"code": "x", "deep": {"a": {"b": {"c": {"d": {"e": {"f": "x" * 3000}}}}}}},
        {"code": "x", "number": 10**3000},
        {"code": "x", "\u044f" * 3000: 1},
        ["x" * 3000],
        "x" * 3000,
    ],
)
async def test_whoever_writes_an_event_its_error_is_bounded(tenant, error):
    await tenant.db.execute(
        "INSERT INTO events (workspace_id, action, error) VALUES ($1, 'media_failed', $2)",
        tenant.workspace,
        json.dumps(error),
    )

    [size] = [row[0] for row in await tenant.db.fetch("SELECT octet_length(error::text) FROM events")]
    assert size < KB


async def test_a_source_ref_is_redacted_in_the_events_of_what_was_dropped_and_what_failed(tenant, sender):
    await tenant.channel()
    await sender.push("hello", source_ref=REF)
    await sender.push("hello", source_ref=REF)
    staging = Staging(tenant, sender)
    await sender.push(
        "with a picture", source_ref="other", request={"media": [], "source_ref": REF}, source={}, renderings=[]
    )
    await tenant.db.fetchval(
        "SELECT fail_staged_post($1, $2, $3, $4, 0)",
        *fence(await staging.leased()),
        json.dumps({"code": "x", "message": "я" * 500}),
    )

    [dropped] = await tenant.events("ingress_dedup_dropped")
    [failed] = await tenant.events("media_failed")
    kept = await tenant.db.fetchval("SELECT source_ref FROM ingress_receipts WHERE source_ref = $1", REF)
    assert json.loads(dropped["error"])["source_ref"] == json.loads(failed["meta"])["source_ref"] == CLEAN
    assert kept == REF
    assert leaks([dict(event) for event in await tenant.events()]) == []
    assert await tenant.db.fetchval("SELECT octet_length(last_error::text) FROM staged_posts") < KB


async def test_tags_are_redacted_in_the_event_of_a_mismatch_and_in_why(tenant, sender):
    await tenant.channel()
    first = await sender.push("hello", tags=[HUSH, PEOPLE[1]], source_ref=REF)
    await sender.push("hello", tags=[PEOPLE[0]], source_ref="other")

    [event] = await tenant.events("message_tag_mismatch")
    told = await ask_one(tenant, first["message_id"])
    assert leaks([dict(event), told]) == []
    assert told["source_ref"] == CLEAN
    assert json.loads(event["meta"])["given"] == ["***"]


async def test_why_finds_a_post_by_the_whole_source_ref(tenant, sender):
    await tenant.channel()
    pushed = await sender.push("hello", source_ref=REF)

    assert (await ask_one(tenant, REF))["message_id"] == pushed["message_id"]


async def test_a_plan_that_was_made_has_no_error(tenant):
    await tenant.channel()
    post = await tenant.post("hello")
    post["renderings"] = [rendering(each["profile_hash"], "hello", 1) for each in post["renderings"]]

    await tenant.put(post)

    assert await stored(tenant) == []
