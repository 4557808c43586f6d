"""Templates, preflight, windows and schedules as a sender meets them: no channel suffers for what another has."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import msgspec
import pytest
from ingest.support.ingest_client import DEMO_WORKSPACE, IngestClient


async def template(client: IngestClient, body: str, version: int = 1, name: str = "t", **defaults: Any) -> None:
    await client.sql(
        "INSERT INTO templates (workspace_id, template_id, version, body, defaults) VALUES ($1, $2, $3, $4, $5)",
        *(DEMO_WORKSPACE, name, version, body, msgspec.json.encode(defaults).decode()),
    )


async def use(client: IngestClient, title: str, name: str | None = "t") -> None:
    await client.sql("UPDATE channels SET template_ref = $1 WHERE title = $2", name, title)


async def made(client: IngestClient, title: str) -> dict[str, Any]:
    """Its latest delivery."""
    row = await client.sql(
        "SELECT json_build_object('status', d.status, 'text', r.rendered_text, 'version', d.template_version, "
        "'codes', (SELECT json_agg(p ->> 'code') FROM jsonb_array_elements(d.last_error -> 'problems') AS p), "
        "'code', d.last_error ->> 'code') "
        "FROM deliveries d JOIN channels c USING (workspace_id, channel_id) "
        "LEFT JOIN renderings r USING (workspace_id, rendering_id) "
        "WHERE c.title = $1 ORDER BY d.created_at DESC LIMIT 1",
        title,
    )
    found: dict[str, Any] = msgspec.json.decode(row)
    return found


async def test_a_template_shows_text_links_tags_and_what_the_post_says_of_its_defaults(client: IngestClient) -> None:
    await template(
        client,
        "<b>{{ title }}</b>\n{{ text }}\n{% for link in links %}→ {{ link }}{% endfor %}\n"
        "{% for tag in tags %}#{{ tag }} {% endfor %}{{ footer }}",
        title="News",
        footer="© we",
    )
    await use(client, "Demo Telegram 1")

    await client.post(
        {
            "text": "<i>a</i>",
            "parse_mode": "HTML",
            "links": ["https://a.example/?b=1&c=2"],
            "tags": ["Sale", "a&b"],
            "meta": {"title": "1 < 2", "other": "no"},
        }
    )

    shown = await made(client, "Demo Telegram 1")
    assert shown["text"] == "<b>1 &lt; 2</b>\n<i>a</i>\n→ https://a.example/?b=1&amp;c=2\n#a&amp;b #sale © we"
    assert shown["version"] == "1"
    assert "News" not in (await made(client, "Demo Telegram 2"))["text"]


async def test_a_new_version_is_heard_by_the_next_post_and_changes_none_before(client: IngestClient) -> None:
    await template(client, "one: {{ text }}")
    await use(client, "Demo MAX 1")
    await client.post({"text": "a"})
    first = await made(client, "Demo MAX 1")

    await template(client, "two: {{ text }}", version=2)
    await client.post({"text": "b"})

    second = await made(client, "Demo MAX 1")
    assert (first["text"], first["version"]) == ("one: a", "1")
    assert (second["text"], second["version"]) == ("two: b", "2")
    kept = "SELECT array_agg(r.rendered_text ORDER BY d.created_at) FROM deliveries d JOIN renderings r "
    kept += "USING (workspace_id, rendering_id) WHERE d.template_version IS NOT NULL"
    assert await client.sql(kept) == ["one: a", "two: b"]


async def test_a_version_changed_in_place_or_taken_back_is_heard_too(client: IngestClient) -> None:
    """Ingest remembers profiles; it must not remember this one."""
    await template(client, "one: {{ text }}")
    await template(client, "two: {{ text }}", version=2)
    await use(client, "Demo MAX 1")

    await client.post({"text": "a"})
    two = await made(client, "Demo MAX 1")
    await client.sql("UPDATE templates SET body = 'three: {{ text }}' WHERE version = 2")
    await client.post({"text": "b"})
    three = await made(client, "Demo MAX 1")
    await client.sql("DELETE FROM templates WHERE version = 2")
    await client.post({"text": "c"})
    one = await made(client, "Demo MAX 1")

    assert [two["text"], three["text"], one["text"]] == ["two: a", "three: b", "one: c"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("{{ text", "template_failed"),
        ("{{ text | replace: 'a', text | replace: 'a', text }}", "template_failed"),
        ("{% for i in (1..10000000) %}x{% endfor %}", "template_failed"),
        (None, "template_missing"),
        ("{{ text }}" + "я" * 4000, "message_too_long"),
        ("{{ nothing }}", "message_empty"),
        ("<b>{{ text }}", "markup_unsupported"),
    ],
)
async def test_a_template_that_makes_no_post_fails_its_channels_alone(
    client: IngestClient, body: str | None, code: str
) -> None:
    if body is not None:
        await template(client, body)
    await use(client, "Demo Telegram 3")

    answer = await client.post({"text": "a" * 200, "parse_mode": "HTML"})

    failed = await made(client, "Demo Telegram 3")
    assert answer.json()["channels"] == {"routed": 40, "enqueued": 39, "deduped": 0, "validation_failed": 1}
    assert (failed["status"], failed["code"], failed["codes"]) == ("failed_permanent", "validation_failed", [code])
    assert (await made(client, "Demo Telegram 4"))["status"] == "queued"
    assert await client.sql("SELECT count(*) FROM events WHERE action = 'validation_failed'") == 1


async def test_a_template_of_one_workspace_is_not_anothers(client: IngestClient) -> None:
    await use(client, "Demo MAX 1", "shop-post")

    await client.post({"text": "a"})

    assert (await made(client, "Demo MAX 1"))["codes"] == ["template_missing"]


async def claimed(client: IngestClient, at: datetime) -> set[str]:
    """Whose deliveries a dispatcher would be handed at that time; nothing is kept of it."""
    async with client._database.pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        try:
            rows = await connection.fetch(
                "SELECT c.title FROM claim_deliveries($1, $2, 100, '5 minutes', p_now => $3) AS d "
                "JOIN channels c USING (channel_id)",
                *(DEMO_WORKSPACE, uuid4(), at),
            )
        finally:
            await transaction.rollback()
    return {row["title"] for row in rows}


async def test_a_window_and_a_schedule_hold_a_post_back_until_the_time_that_the_dry_run_told(
    client: IngestClient,
) -> None:
    now = datetime.now(UTC)
    opening = (now + timedelta(hours=30)).replace(minute=0, second=0, microsecond=0)
    day = opening.strftime("%a").lower()
    window = {day: [[f"{opening:%H:%M}", f"{opening + timedelta(minutes=59):%H:%M}"]]}
    await client.sql(
        "UPDATE channels SET window_mode = 'windowed', timezone = 'UTC', posting_window = $1 "
        "WHERE title = 'Demo MAX 1'",
        msgspec.json.encode(window).decode(),
    )
    await client.sql("UPDATE channels SET enabled = false WHERE title NOT IN ('Demo MAX 1', 'Demo MAX 2')")
    await client.sql("UPDATE platform_limits SET rate_rps = NULL")
    scheduled = now + timedelta(hours=2)
    body = {"text": "a", "scheduled_for": scheduled.isoformat()}
    headers = {"Authorization": "Bearer demo-push-secret-for-development"}
    told = (await client.http.post(f"{client.url}/v1/posts?dry_run=1", headers=headers, json=body)).json()
    earliest = {one["title"]: one["timing"]["earliest"] for one in told["channels"] if one["route"]["routed"]}

    await client.post(body)

    assert {title: datetime.fromisoformat(at) for title, at in earliest.items()} == {
        "Demo MAX 1": opening,
        "Demo MAX 2": scheduled,
    }
    second = timedelta(seconds=1)
    assert await claimed(client, scheduled - second) == set()
    assert await claimed(client, scheduled + second) == {"Demo MAX 2"}
    assert await claimed(client, opening - second) == {"Demo MAX 2"}
    assert await claimed(client, opening + second) == {"Demo MAX 1", "Demo MAX 2"}


async def test_a_template_is_shown_in_its_own_parse_mode_as_soon_as_it_has_one(client: IngestClient) -> None:
    await template(client, "<b>News</b> {{ text }}")
    await use(client, "Demo Telegram 1")
    await client.post({"text": "1 < 2"})
    before = await made(client, "Demo Telegram 1")

    await client.sql("UPDATE templates SET parse_mode = 'HTML' WHERE template_id = 't'")
    await client.post({"text": "2 < 3"})
    after = await made(client, "Demo Telegram 1")
    await client.post({"text": "*a*", "parse_mode": "Markdown"})
    other = await made(client, "Demo Telegram 1")

    assert (before["status"], before["codes"]) == ("failed_permanent", ["parse_mode_mismatch"])
    assert after["text"] == "<b>News</b> 2 &lt; 3"
    assert (other["status"], other["codes"]) == ("failed_permanent", ["parse_mode_mismatch"])
    assert (await made(client, "Demo Telegram 2"))["status"] == "queued"


async def test_a_template_has_no_other_parse_mode_than_posts_have(client: IngestClient) -> None:
    await template(client, "{{ text }}")

    with pytest.raises(asyncpg.CheckViolationError):
        await client.sql("UPDATE templates SET parse_mode = 'MarkdownV2'")


async def test_a_post_without_a_parse_mode_has_its_channels(client: IngestClient) -> None:
    await client.sql("UPDATE channels SET settings = '{\"parse_mode\": \"HTML\"}' WHERE title = 'Demo Telegram 1'")

    await client.post({"text": "<b>a</b> &amp; b"})
    by_default = await made(client, "Demo Telegram 1")
    elsewhere = await made(client, "Demo Telegram 2")
    await client.post({"text": "**a** <b>", "parse_mode": "Markdown"})
    own = await made(client, "Demo Telegram 1")

    assert by_default["text"] == "<b>a</b> &amp; b"
    assert elsewhere["text"] == "<b>a</b> &amp; b"  # shown as it stands
    assert own["text"] == "<b>a</b> &lt;b&gt;"
