"""What became of a post, over HTTP, and changing one's mind about it. Real HTTP, real Postgres."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from autopost_ingest.http.openapi import document
from autopost_ingest.http.post_answers import POST_STRUCTS
from ingest.support.ingest_client import DEMO, SHOP, IngestClient
from jsonschema import Draft202012Validator
from msgspec.json import schema_components

LATER = (datetime.now(UTC) + timedelta(days=30)).isoformat()
ONE = {"routing": {"channels": ["Demo Telegram 1"]}}


async def call(client: IngestClient, verb: str, path: str, *, secret: str = DEMO, **options: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {secret}"}
    answer = await client.http.request(verb, f"{client.url}/v1/posts{path}", headers=headers, **options)
    conforms(answer, verb, path)
    return answer


def conforms(answer: httpx.Response, verb: str, path: str) -> None:
    """It is what the document says, and nothing else."""
    made = document()
    named = "/v1/posts/{id}" if path.startswith("/") else "/v1/posts"
    response = made["paths"][named][verb.lower()]["responses"][str(answer.status_code)]
    if "$ref" in response:
        response = made["components"]["responses"][response["$ref"].rpartition("/")[2]]
    [content] = response["content"].values()
    schema = {**content["schema"], "components": made["components"]}
    Draft202012Validator(schema).validate(answer.json())


async def test_a_post_is_found_by_the_ids_of_its_run_its_message_and_its_trace(client: IngestClient) -> None:
    posted = (await client.post({"text": "a", "source_ref": "1", **ONE})).json()
    trace = "0123456789abcdef0123456789abcdef"
    await client.sql("UPDATE ingest_runs SET trace_id = $1", trace)

    by_run, by_message, by_trace = [
        (await call(client, "GET", f"/{name}")).json() for name in (posted["run_id"], posted["message_id"], trace)
    ]

    assert (by_run["state"], by_run["outcomes"], by_run["source_ref"]) == ("queued", {"queued": 1}, "1")
    assert by_run == by_trace
    assert by_message["deliveries"] == by_run["deliveries"]
    assert by_message["run_id"] is None
    [delivery] = by_run["deliveries"]
    assert (delivery["title"], delivery["platform"], delivery["attempts"]) == ("Demo Telegram 1", "telegram", 0)


async def test_what_was_sent_has_its_id_and_its_link_and_what_failed_its_reason(client: IngestClient) -> None:
    posted = (await client.post({"text": "я" * 4050})).json()
    await client.sql(
        "WITH s AS (UPDATE deliveries SET status = 'sending', attempt = 1 WHERE status = 'queued' RETURNING 1) "
        "SELECT count(*) FROM s"
    )
    await client.sql("UPDATE deliveries SET status = 'sent', sent_at = now(), provider_message_id = '17' "
                     "WHERE status = 'sending'")  # fmt: skip

    told = (await call(client, "GET", f"/{posted['run_id']}")).json()

    assert (told["state"], told["outcomes"]) == ("sent", {"sent": 20, "failed_permanent": 20})
    by_title = {delivery["title"]: delivery for delivery in told["deliveries"]}
    assert by_title["Demo Telegram 1"]["link"] == "https://t.me/c/1000000001/17"
    assert by_title["Demo Telegram 1"]["provider_message_id"] == "17"
    assert by_title["Demo MAX 1"]["link"] is None
    assert by_title["Demo MAX 1"]["reason"] == {
        "code": "validation_failed",
        "message": "4050 characters, at most 4000 are allowed",
    }


async def test_posts_are_listed_by_pages_by_state_and_by_source_ref(client: IngestClient) -> None:
    posted = [(await client.post({"text": f"{n}", "source_ref": f"ref {n}", **ONE})).json() for n in range(5)]
    later = (await client.post({"text": "later", "scheduled_for": LATER, **ONE})).json()

    first = (await call(client, "GET", "?limit=4")).json()
    second = (await call(client, "GET", f"?limit=4&after={first['next']}")).json()
    scheduled = (await call(client, "GET", "?state=scheduled")).json()
    by_ref = (await call(client, "GET", "", params={"source_ref": "ref 2"})).json()
    since = (await call(client, "GET", "", params={"since": LATER})).json()

    runs = [post["run_id"] for post in first["posts"] + second["posts"]]
    assert runs == [post["run_id"] for post in (later, *reversed(posted))]
    assert second["next"] is None
    assert [post["run_id"] for post in scheduled["posts"]] == [later["run_id"]]
    assert [post["run_id"] for post in by_ref["posts"]] == [posted[2]["run_id"]]
    assert since == {"posts": [], "next": None}


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ("?state=send", "state", "did you mean `sent`"),
        ("?sinse=x", "sinse", "did you mean `since`"),
        ("?since=yesterday", "since", "with a zone"),
        ("?limit=0", "limit", "1 to 100"),
        ("?after=x", "after", "next"),
    ],
)
async def test_a_wrong_parameter_is_named(client: IngestClient, query: str, field: str, words: str) -> None:
    answer = await call(client, "GET", query)

    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert words in answer.json()["detail"]


async def test_no_post_of_another_workspace_is_seen_or_changed(client: IngestClient) -> None:
    await client.sql("UPDATE workspace_endpoints SET ingress_rps = NULL")
    posted = (await client.post({"text": "a", "source_ref": "1"})).json()

    for name in (posted["run_id"], posted["message_id"]):
        for verb, options in (("GET", {}), ("DELETE", {}), ("PATCH", {"json": {"scheduled_for": LATER}})):
            answer = await call(client, verb, f"/{name}", secret=SHOP, **options)
            assert answer.status_code == 404
    assert (await call(client, "GET", "?source_ref=1", secret=SHOP)).json()["posts"] == []
    assert await client.sql("SELECT count(*) FROM deliveries WHERE status = 'queued'") == 40


async def test_a_post_is_cancelled_and_its_correction_is_accepted(client: IngestClient) -> None:
    posted = (await client.post({"text": "the price is 10", "source_ref": "1"})).json()

    cancelled = await call(client, "DELETE", f"/{posted['run_id']}")
    again = await call(client, "DELETE", f"/{posted['run_id']}")
    corrected = await client.post({"text": "the price is 11", "source_ref": "1"})

    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    assert {delivery["verdict"] for delivery in cancelled.json()["deliveries"]} == {"cancelled"}
    assert (again.status_code, again.json()["code"]) == (409, "already")
    assert corrected.json()["channels"]["enqueued"] == 40
    assert (await call(client, "GET", f"/{posted['run_id']}")).json()["state"] == "cancelled"


async def test_by_a_message_id_only_all_is_changed(client: IngestClient) -> None:
    posted = (await client.post({"text": "a"})).json()

    refused = await call(client, "DELETE", f"/{posted['message_id']}")
    cancelled = await call(client, "DELETE", f"/{posted['message_id']}?all=1")

    assert (refused.status_code, refused.json()["field"]) == (400, "all")
    assert cancelled.status_code == 200


async def test_a_post_gets_another_time(client: IngestClient) -> None:
    posted = (await client.post({"text": "a", "scheduled_for": LATER})).json()
    client.ear.heard.clear()

    now = await call(client, "PATCH", f"/{posted['run_id']}", json={"scheduled_for": None})
    past = await call(client, "PATCH", f"/{posted['run_id']}", json={"scheduled_for": "2001-01-01T00:00:00Z"})
    far = await call(client, "PATCH", f"/{posted['run_id']}", json={"scheduled_for": "2190-01-01T00:00:00Z"})

    assert (now.status_code, now.json()["status"]) == (200, "rescheduled")
    assert client.ear.heard
    assert [answer.json()["field"] for answer in (past, far)] == ["scheduled_for"] * 2
    assert (await call(client, "GET", f"/{posted['run_id']}")).json()["state"] == "queued"


async def test_a_post_is_replaced_by_another_one_or_not_at_all(client: IngestClient) -> None:
    posted = (await client.post({"text": "the price is 10", "source_ref": "1"})).json()

    replaced = await call(client, "PATCH", f"/{posted['run_id']}", json={"text": "11", "source_ref": "1"})
    too_long = await call(client, "PATCH", f"/{replaced.json()['run_id']}", json={"text": "я" * 5000})
    await client.sql("UPDATE deliveries SET status = 'sending', attempt = 1 WHERE status = 'queued'")
    late = await call(client, "PATCH", f"/{replaced.json()['run_id']}", json={"text": "12"})

    assert (replaced.status_code, replaced.json()["channels"]["enqueued"]) == (202, 40)
    assert (too_long.status_code, too_long.json()["code"]) == (422, "validation_failed")
    assert (late.status_code, late.json()["code"]) == (409, "too_late")
    assert await client.sql("SELECT count(*) FROM deliveries WHERE status = 'sending'") == 40


def test_every_field_of_these_answers_has_a_description() -> None:
    _, schemas = schema_components(POST_STRUCTS)
    bare = [
        f"{name}.{field}"
        for name, schema in schemas.items()
        for field, about in schema.get("properties", {}).items()
        if not about.get("description")
    ]

    assert bare == []
