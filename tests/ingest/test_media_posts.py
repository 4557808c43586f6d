"""A post that names media which is stored already, or which a platform holds."""

from typing import Any

import msgspec
import pytest
from autopost_contracts.payload import Content, Medium

from ingest.door import SHOP_WORKSPACE, TABLES, Door


async def payload(door: Door, message_id: str) -> Content:
    stored = await door.sql("SELECT payload FROM messages WHERE message_id = $1", message_id)
    return msgspec.json.decode(stored, type=Content)


async def problems(door: Door, platform: str) -> list[dict[str, Any]]:
    found = await door.sql(
        "SELECT json_agg(DISTINCT d.last_error -> 'problems') FROM deliveries d "
        "JOIN channels c USING (workspace_id, channel_id) WHERE d.status = 'failed_permanent' AND c.platform = $1",
        platform,
    )
    [only] = msgspec.json.decode(found)
    return only


async def test_what_is_known_of_stored_media_is_kept_with_the_post(door: Door) -> None:
    photo = await door.store(b"png", "image/png", width=3, height=2)
    document = await door.store(b"pdf!", "application/pdf", name="price.pdf")

    answer = await door.post(
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
    stored = await payload(door, answer.json()["message_id"])
    assert (stored.type, stored.text, stored.media) == ("media", "hello", (known, image, known))


async def test_the_same_media_is_the_same_content_whatever_was_learnt_of_it_meanwhile(door: Door) -> None:
    photo = await door.store(b"png", "image/png")
    first = await door.post({"media": [{"type": "photo", "blob_ref": photo}], "source_ref": "1"})
    await door.store(b"png", "image/x-png", width=3, height=2, name="new.png")

    again = await door.post({"media": [{"type": "image", "blob_ref": photo}], "source_ref": "2"})

    assert (again.status_code, again.json()["new"]) == (202, False)
    assert again.json()["message_id"] == first.json()["message_id"]


@pytest.mark.parametrize("workspace", [None, SHOP_WORKSPACE])
async def test_media_that_this_workspace_has_not_stored_is_refused_by_its_place(door: Door, workspace: Any) -> None:
    known = await door.store(b"png", "image/png")
    missing = "sha256:" + "0" * 64
    if workspace:
        missing = await door.store(b"theirs", "image/png", workspace=workspace)

    answer = await door.post({"media": [{"type": "image", "blob_ref": ref} for ref in (known, missing)]})

    told = answer.json()
    assert (answer.status_code, told["field"], told["detail"]) == (
        422,
        "media[1].blob_ref",
        "there is no such stored media",
    )
    assert await door.rows() == dict.fromkeys(TABLES, 0)


async def test_media_by_url_is_refused_where_nobody_would_fetch_it(door: Door) -> None:
    media = [{"type": "image", "file_id": "x"}, {"type": "image", "url": "https://a.example/x.png"}]

    answer = await door.post({"media": media})

    assert (answer.status_code, answer.json()["field"]) == (422, "media[1].url")
    assert "not fetched here" in answer.json()["detail"]
    assert await door.rows() == dict.fromkeys(TABLES, 0)


async def test_a_post_with_media_passes_by_the_channels_that_take_only_text(door: Door) -> None:
    photo = await door.store(b"png", "image/png")
    await door.sql("UPDATE channels SET send_mode = 'text' WHERE title ~ '^Demo Telegram [1-5]$'")
    await door.sql("UPDATE channels SET send_mode = 'media' WHERE title ~ '^Demo MAX [1-3]$'")

    with_media = await door.post({"text": "a", "media": [{"type": "photo", "blob_ref": photo}]})
    without = await door.post({"text": "a"})

    assert [answer.json()["channels"]["routed"] for answer in (with_media, without)] == [35, 37]


async def test_stored_media_and_markdown_go_to_both_platforms(door: Door) -> None:
    photo = await door.store(b"png", "image/png", width=3, height=2)

    answer = await door.post(
        {"text": "**hello**", "parse_mode": "Markdown", "media": [{"type": "photo", "blob_ref": photo}]}
    )

    assert answer.json()["channels"] == {"routed": 40, "enqueued": 40, "deduped": 0, "validation_failed": 0}
    texts = await door.sql("SELECT array_agg(rendered_text ORDER BY plan ->> 'platform') FROM renderings")
    assert texts == ["**hello**", "<b>hello</b>"]


@pytest.mark.parametrize(("source", "platform"), [("file_id", "max"), ("attachment_token", "telegram")])
async def test_what_one_platform_holds_is_refused_where_it_is_worth_nothing(
    door: Door, source: str, platform: str
) -> None:
    answer = await door.post({"media": [{"type": "photo", source: "held"}]})

    assert answer.status_code == 202
    assert answer.json()["channels"] == {"routed": 40, "enqueued": 20, "deduped": 0, "validation_failed": 20}
    assert await problems(door, platform)


async def test_a_part_without_words_leaves_nothing_in_the_rendered_text(door: Door) -> None:
    photo = await door.store(b"png", "image/png", width=3, height=2)
    document = await door.store(b"pdf!", "application/pdf", name="price.pdf")
    media = [{"type": "photo", "blob_ref": photo}, {"type": "document", "blob_ref": document}]

    await door.post({"text": "a", "media": media})

    assert await door.sql("SELECT array_agg(DISTINCT jsonb_array_length(plan -> 'parts')) FROM renderings") == [2]
    assert await door.sql("SELECT array_agg(DISTINCT rendered_text) FROM renderings") == ["a"]


async def test_a_protected_post_says_so_in_its_plan(door: Door) -> None:
    await door.post({"text": "a", "protect": True})

    protected = "SELECT plan #>> '{parts,0,protect}' FROM renderings WHERE plan ->> 'platform' = 'telegram'"
    assert await door.sql(protected) == "true"
