"""A post that names media which is stored already, or which a platform holds."""

from typing import Any

import msgspec
import pytest
from autopost_contracts.payload import Content, Medium
from ingest.support.ingest_client import SHOP_WORKSPACE, TABLES, IngestClient


async def payload(client: IngestClient, message_id: str) -> Content:
    stored = await client.sql("SELECT payload FROM messages WHERE message_id = $1", message_id)
    return msgspec.json.decode(stored, type=Content)


async def problems(client: IngestClient, platform: str) -> list[dict[str, Any]]:
    found = await client.sql(
        "SELECT json_agg(DISTINCT d.last_error -> 'problems') FROM deliveries d "
        "JOIN channels c USING (workspace_id, channel_id) WHERE d.status = 'failed_permanent' AND c.platform = $1",
        platform,
    )
    [only] = msgspec.json.decode(found)
    return only


async def test_what_is_known_of_stored_media_is_kept_with_the_post(client: IngestClient) -> None:
    photo = await client.store(b"png", "image/png", width=3, height=2)
    document = await client.store(b"pdf!", "application/pdf", name="price.pdf")

    answer = await client.post(
        {
            "text": "hello",
            "media": [
                {"type": "document", "blob_ref": document},
                {"type": "photo", "blob_ref": photo, "caption": " a  b "},
                {"type": "document", "blob_ref": document},
            ],
        }
    )

    known = Medium(type="file", blob_ref=document, content_type="application/pdf", size=4, name="price.pdf")
    image = Medium(type="image", blob_ref=photo, caption="a b", content_type="image/png", size=3, width=3, height=2)
    assert answer.status_code == 202
    stored = await payload(client, answer.json()["message_id"])
    assert (stored.type, stored.text, stored.media) == ("media", "hello", (known, image, known))


async def test_the_same_media_is_the_same_content_whatever_was_learnt_of_it_meanwhile(client: IngestClient) -> None:
    photo = await client.store(b"png", "image/png")
    first = await client.post({"media": [{"type": "photo", "blob_ref": photo}], "source_ref": "1"})
    await client.store(b"png", "image/x-png", width=3, height=2, name="new.png")

    again = await client.post({"media": [{"type": "image", "blob_ref": photo}], "source_ref": "2"})

    assert (again.status_code, again.json()["new"]) == (202, False)
    assert again.json()["message_id"] == first.json()["message_id"]


@pytest.mark.parametrize("workspace", [None, SHOP_WORKSPACE])
async def test_media_that_this_workspace_has_not_stored_is_refused_by_its_place(
    client: IngestClient, workspace: Any
) -> None:
    known = await client.store(b"png", "image/png")
    missing = "sha256:" + "0" * 64
    if workspace:
        missing = await client.store(b"theirs", "image/png", workspace=workspace)

    answer = await client.post({"media": [{"type": "image", "blob_ref": ref} for ref in (known, missing)]})

    told = answer.json()
    assert (answer.status_code, told["field"], told["detail"]) == (
        422,
        "media[1].blob_ref",
        "no stored media with this blob_ref in this workspace",
    )
    assert await client.rows() == dict.fromkeys(TABLES, 0)


async def test_media_by_url_is_refused_where_nobody_would_fetch_it(client: IngestClient) -> None:
    media = [{"type": "image", "file_id": "x"}, {"type": "image", "url": "https://a.example/x.png"}]

    answer = await client.post({"media": media})

    assert (answer.status_code, answer.json()["field"]) == (422, "media[1].url")
    assert "fetching media by URL is not configured" in answer.json()["detail"]
    assert await client.rows() == dict.fromkeys(TABLES, 0)


async def test_a_post_with_media_passes_by_the_channels_that_take_only_text(client: IngestClient) -> None:
    photo = await client.store(b"png", "image/png")
    await client.sql("UPDATE channels SET send_mode = 'text' WHERE title ~ '^Demo Telegram [1-5]$'")
    await client.sql("UPDATE channels SET send_mode = 'media' WHERE title ~ '^Demo MAX [1-3]$'")

    with_media = await client.post({"text": "a", "media": [{"type": "photo", "blob_ref": photo}]})
    without = await client.post({"text": "a"})

    assert [answer.json()["channels"]["routed"] for answer in (with_media, without)] == [35, 37]


async def test_stored_media_and_markdown_go_to_both_platforms(client: IngestClient) -> None:
    photo = await client.store(b"png", "image/png", width=3, height=2)

    answer = await client.post(
        {"text": "**hello**", "parse_mode": "Markdown", "media": [{"type": "photo", "blob_ref": photo}]}
    )

    assert answer.json()["channels"] == {"routed": 40, "enqueued": 40, "deduped": 0, "validation_failed": 0}
    texts = await client.sql("SELECT array_agg(rendered_text ORDER BY plan ->> 'platform') FROM renderings")
    assert texts == ["**hello**", "<b>hello</b>"]


@pytest.mark.parametrize(("source", "platform"), [("file_id", "max"), ("attachment_token", "telegram")])
async def test_what_one_platform_holds_is_refused_where_it_is_worth_nothing(
    client: IngestClient, source: str, platform: str
) -> None:
    answer = await client.post({"media": [{"type": "photo", source: "held"}]})

    assert answer.status_code == 202
    assert answer.json()["channels"] == {"routed": 40, "enqueued": 20, "deduped": 0, "validation_failed": 20}
    assert await problems(client, platform)


async def test_a_part_without_words_leaves_nothing_in_the_rendered_text(client: IngestClient) -> None:
    photo = await client.store(b"png", "image/png", width=3, height=2)
    document = await client.store(b"pdf!", "application/pdf", name="price.pdf")
    media = [{"type": "photo", "blob_ref": photo}, {"type": "document", "blob_ref": document}]

    await client.post({"text": "a", "media": media})

    assert await client.sql("SELECT array_agg(DISTINCT jsonb_array_length(plan -> 'parts')) FROM renderings") == [2]
    assert await client.sql("SELECT array_agg(DISTINCT rendered_text) FROM renderings") == ["a"]


async def test_a_protected_post_says_so_in_its_plan(client: IngestClient) -> None:
    await client.post({"text": "a", "protect": True})

    protected = "SELECT plan #>> '{parts,0,protect}' FROM renderings WHERE plan ->> 'platform' = 'telegram'"
    assert await client.sql(protected) == "true"
