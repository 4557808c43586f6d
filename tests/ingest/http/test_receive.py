"""What a sender gets to read, and what is in the database afterwards. Real HTTP, real Postgres."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from uuid import uuid4

import pytest
from ingest.support.ingest_client import DEMO, SHOP, TABLES, IngestClient


async def test_an_accepted_post_is_answered_with_its_ids_and_wakes_the_dispatcher(client: IngestClient) -> None:
    answer = await client.post({"text": "hello", "tags": ["News"]})

    told = answer.json()
    assert answer.status_code == 202
    assert told["channels"] == {"routed": 40, "enqueued": 40, "deduped": 0, "validation_failed": 0}
    assert await client.sql("SELECT tags FROM messages WHERE message_id = $1", told["message_id"]) == ["news"]
    assert await client.sql("SELECT finished_at IS NOT NULL FROM ingest_runs WHERE run_id = $1", told["run_id"])
    assert client.ear.heard == ["autopost.wakeup.dispatch.0de00000-0000-4000-8000-000000000001"]


async def test_a_repeated_source_ref_is_dropped_and_says_so(client: IngestClient) -> None:
    first = await client.post({"text": "a", "source_ref": "1"})
    again = await client.post({"text": "b", "source_ref": "1"})

    assert (again.status_code, again.json()["status"], again.json()["of"]) == (200, "duplicate", "source_ref")
    assert again.json()["run_id"] == first.json()["run_id"]
    assert (await client.rows())["messages"] == 1


async def test_of_fifty_concurrent_copies_exactly_one_becomes_a_message(client: IngestClient) -> None:
    answers = await asyncio.gather(*(client.post({"text": "once"}) for _ in range(50)))

    codes = [answer.status_code for answer in answers]
    assert (codes.count(202), codes.count(200)) == (1, 49)
    assert await client.rows() == {"messages": 1, "deliveries": 40, "ingress_receipts": 1, "staged_posts": 0}
    assert await client.sql("SELECT seen_count FROM messages") == 1


async def test_twenty_concurrent_posts_of_the_same_content_reach_each_channel_once(client: IngestClient) -> None:
    answers = await asyncio.gather(*(client.post({"text": "same", "source_ref": uuid4().hex}) for _ in range(20)))

    assert [answer.status_code for answer in answers] == [202] * 20
    assert sum(answer.json()["channels"]["enqueued"] for answer in answers) == 40
    assert (await client.rows())["deliveries"] == 40


@pytest.mark.parametrize("secret", [None, "wrong", "shop-bot-secret-for-development", ""])
async def test_an_unknown_secret_is_refused_in_the_same_words_whatever_it_is(
    client: IngestClient, secret: str | None
) -> None:
    answer = await client.post(secret=secret)

    told = answer.json()
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert {name: told[name] for name in told if name != "trace_id"} == {
        "type": "about:blank",
        "title": "Unauthorized",
        "status": 401,
        "detail": "unknown or missing secret; send it as Authorization: Bearer or X-Webhook-Secret",
    }
    assert await client.rows() == dict.fromkeys(TABLES, 0)


async def test_the_secret_may_come_in_its_own_header(client: IngestClient) -> None:
    answer = await client.post({"text": "a"}, secret=None, headers={"X-Webhook-Secret": DEMO})

    assert answer.status_code == 202


async def test_the_tenant_comes_from_the_secret_alone(client: IngestClient) -> None:
    other = "5f000000-0000-4000-8000-000000000002"

    answer = await client.post({"text": "a", "workspace_id": other, "meta": {"workspace_id": other}})

    assert answer.status_code == 202
    assert str(await client.sql("SELECT workspace_id FROM messages")) == "0de00000-0000-4000-8000-000000000001"
    assert await client.sql("SELECT source ->> 'workspace_hint' FROM messages") == other


@pytest.mark.parametrize(
    ("content", "code", "field"),
    [
        (b"{", 400, None),
        (b"", 400, None),
        (b"[]", 400, None),
        (b'{"text": 5}', 400, "text"),
        (b'{"txt": "a"}', 400, "txt"),
        (b'{"text": "a", "routing": {"to": "x"}}', 400, "routing.to"),
        (b'{"text": "a", "buttons": [{"text": "", "url": "https://a.example"}]}', 400, "buttons[0].text"),
        (b'{"text": "a\\u0000b"}', 400, "text"),
        (b'{"text": "a\x00b"}', 400, None),
        (b'{"text": "\\ud800"}', 400, "text"),
        (b'{"text": "\xff"}', 400, None),
        (b'{"text": NaN}', 400, "text"),
        (b'{"text": "a", "meta": {"a": ' + b"[" * 40 + b"]" * 40 + b"}}", 400, "meta.a" + "[0]" * 30),
        (b'{"text": "a", "meta": {"a": ' + b"[" * 5000 + b"]" * 5000 + b"}}", 400, None),
        (b'{"scheduled_for": "tomorrow", "text": "a"}', 400, "scheduled_for"),
        (b'{"scheduled_for": "2026-12-01T10:00:00", "text": "a"}', 400, "scheduled_for"),
        (b'{"scheduled_for": "0001-01-01T00:00:00+23:59", "text": "a"}', 422, "scheduled_for"),
        (b'{"scheduled_for": "1999-12-31T23:59:59Z", "text": "a"}', 422, "scheduled_for"),
        (b'{"scheduled_for": "2200-01-01T00:00:00Z", "text": "a"}', 422, "scheduled_for"),
        (b'{"scheduled_for": "9999-12-31T23:59:59-14:00", "text": "a"}', 422, "scheduled_for"),
        (b'{"text": "a", "links": ["ftp://x"]}', 422, "links[0]"),
        (b'{"text": "a", "parse_mode": "MarkdownV2"}', 400, "parse_mode"),
        (b"{}", 422, "text"),
        (b'{"media": [{"type": "picture", "file_id": "x"}]}', 400, "media[0].type"),
        (b'{"media": [{"type": "image", "url": "https://a.example/x.png"}]}', 422, "media[0].url"),
        (b'{"media": [{"type": "image", "file_id": "x"}, {"type": "image"}]}', 422, "media[1]"),
        (b'{"media": [{"type": "image", "file_id": "x", "attachment_token": "y"}]}', 422, "media[0]"),
        (b'{"media": [{"type": "image", "blob_ref": "sha256:1"}]}', 422, "media[0].blob_ref"),
        (b'{"media": [{"type": "image", "blob_ref": "sha256:' + b"1" * 64 + b'"}]}', 422, "media[0].blob_ref"),
    ],
)
async def test_bad_input_is_refused_by_name_and_leaves_no_row(
    client: IngestClient, content: bytes, code: int, field: str | None
) -> None:
    answer = await client.post(content=content)
    tried = await client.try_out(content=content)

    assert (answer.status_code, answer.json().get("field")) == (code, field)
    assert (tried.status_code, tried.json().get("field")) == (code, field)
    assert answer.json()["detail"]
    assert "Traceback" not in answer.text
    assert await client.rows() == dict.fromkeys(TABLES, 0)


async def test_a_post_may_be_scheduled_for_any_moment_to_come(client: IngestClient) -> None:
    moment = "2199-12-31T23:59:59Z"
    body = {"text": "a", "scheduled_for": moment}

    assert [(await client.try_out(body)).status_code, (await client.post(body)).status_code] == [200, 202]
    assert await client.sql("SELECT min(scheduled_for) FROM deliveries") == datetime.fromisoformat(moment)


async def test_the_same_moment_in_another_zone_is_the_same_payload(client: IngestClient) -> None:
    first = await client.post({"text": "a", "scheduled_for": "2100-01-01T10:00:00+03:00"})
    second = await client.post({"text": "a", "scheduled_for": "2100-01-01T07:00:00Z"})

    assert (first.status_code, second.json()["status"]) == (202, "duplicate")


async def _chunks(size: int) -> AsyncIterator[bytes]:
    for _ in range(size // 1024):
        yield b" " * 1024


async def test_a_body_over_the_limit_is_refused_declared_or_not(client: IngestClient) -> None:
    declared = await client.post(content=b" " * 300_000)
    chunked = await client.post(content=_chunks(400_000))

    assert [declared.status_code, chunked.status_code] == [413, 413]
    events = "SELECT count(*) FROM events WHERE action = 'ingress_payload_rejected'"
    assert await client.sql(events) >= 1
    assert await client.rows() == dict.fromkeys(TABLES, 0)


async def test_a_parameter_that_is_not_known_is_refused_and_not_passed_over(client: IngestClient) -> None:
    answer = await client.http.post(
        f"{client.url}/v1/posts?dryrun=1", headers={"Authorization": f"Bearer {DEMO}"}, json={"text": "a"}
    )

    assert (answer.status_code, answer.json()["field"]) == (400, "dryrun")
    assert await client.rows() == dict.fromkeys(TABLES, 0)


async def test_a_compressed_body_is_not_accepted(client: IngestClient) -> None:
    answer = await client.post(content=b"x", headers={"Content-Encoding": "gzip"})

    assert answer.status_code == 415


async def test_a_burst_over_the_rate_is_told_to_wait(client: IngestClient) -> None:
    answers = await asyncio.gather(*(client.post({"text": f"{n}"}, secret=SHOP) for n in range(40)))

    refused = [answer for answer in answers if answer.status_code == 429]
    assert 1 <= len(refused) <= 35
    assert all(int(answer.headers["Retry-After"]) >= 1 for answer in refused)
    assert {answer.json()["detail"] for answer in refused} == {"rate limit exceeded for this endpoint (5 requests/s)"}
    assert await client.sql("SELECT count(*) FROM messages") == 40 - len(refused)
    assert await client.sql("SELECT count(*) FROM events WHERE action = 'ingress_rate_limited'") >= 1


@pytest.mark.parametrize(("status", "code"), [("paused", 503), ("disabled", 403)])
async def test_a_workspace_that_does_not_work_takes_nothing_in(client: IngestClient, status: str, code: int) -> None:
    await client.sql("UPDATE workspaces SET status = $1", status)

    answer = await client.post()

    assert answer.status_code == code
    assert ("Retry-After" in answer.headers) == (code == 503)
    assert await client.rows() == dict.fromkeys(TABLES, 0)


async def test_a_changed_channel_is_heard_by_the_next_post(client: IngestClient) -> None:
    await client.post({"text": "before"})
    await client.sql("UPDATE channels SET settings = '{\"disable_preview\": true}' WHERE title = 'Demo MAX 1'")
    await client.sql("UPDATE channels SET enabled = false WHERE title = 'Demo MAX 2'")

    answer = await client.post({"text": "after"})

    assert answer.json()["channels"]["enqueued"] == 39
    assert await client.sql("SELECT count(*) FROM renderings WHERE plan #>> '{parts,0,preview,disabled}' = 'true'") == 1


async def test_an_added_channel_gets_the_next_post(client: IngestClient) -> None:
    before = await client.post({"text": "before"})
    channel = await client.sql(
        "INSERT INTO channels (workspace_id, platform, target_id, auth_ref, rate_group, settings) "
        "SELECT workspace_id, platform, 'a new one', auth_ref, rate_group, '{\"overflow\": \"split\"}' FROM channels "
        "WHERE title = 'Demo MAX 1' RETURNING channel_id"
    )

    after = await client.post({"text": "after"})

    assert [answer.json()["channels"]["enqueued"] for answer in (before, after)] == [40, 41]
    messages = "SELECT array_agg(message_id::text) FROM deliveries WHERE channel_id = $1"
    assert await client.sql(messages, channel) == [after.json()["message_id"]]


async def test_a_channel_that_cannot_show_it_fails_alone(client: IngestClient) -> None:
    answer = await client.post({"text": "я" * 4050})

    assert answer.status_code == 202
    assert answer.json()["channels"] == {"routed": 40, "enqueued": 20, "deduped": 0, "validation_failed": 20}
    codes = "SELECT DISTINCT last_error ->> 'code' FROM deliveries WHERE status = 'failed_permanent'"
    assert await client.sql(codes) == "validation_failed"
