"""What goes to MAX: uploads to one host, messages to another, and a look whether a message is already there."""

import hashlib
from datetime import timedelta
from typing import Any

import pytest
from autopost_adapters.base import AcceptedPart, Held
from autopost_adapters.max.message import message_body
from autopost_contracts.outcomes import Failed
from autopost_contracts.plan import MediaPart, Part, Preview, TextPart

from adapters.conftest import Simulated
from adapters.max_parts import BUTTONS, KEYBOARD, TARGET, item, two_hosts
from adapters.media_sources import Bytes


def attachment(kind: str, **payload: str) -> dict[str, Any]:
    return {"type": kind, "payload": payload}


BODIES: list[tuple[Part, list[str], dict[str, Any]]] = [
    (TextPart(text="a < b"), [], {"text": "a < b"}),
    (TextPart(text="<b>a</b>", markup="html"), [], {"text": "<b>a</b>", "format": "html"}),
    (TextPart(text="**a**", markup="markdown"), [], {"text": "**a**", "format": "markdown"}),
    (TextPart(text="a", silent=True), [], {"text": "a", "notify": False}),
    (TextPart(text="a", buttons=BUTTONS), [], {"text": "a", "attachments": [KEYBOARD]}),
    (MediaPart(media=(item("image"),)), ["t0"], {"attachments": [attachment("image", token="t0")]}),
    (
        MediaPart(media=(item("image", "<b>a</b>", markup="html"), item("video")), buttons=BUTTONS),
        ["t0", "t1"],
        {
            "text": "<b>a</b>",
            "format": "html",
            "attachments": [attachment("image", token="t0"), attachment("video", token="t1"), KEYBOARD],
        },
    ),
    (
        MediaPart(media=(item("image", blob_ref=None, url="https://example.org/a.png"),)),
        ["https://example.org/a.png"],
        {"attachments": [attachment("image", url="https://example.org/a.png")]},
    ),
    (
        MediaPart(media=(item("animation", content_type="image/gif"), item("animation", content_type="video/mp4"))),
        ["t0", "t1"],
        {"attachments": [attachment("image", token="t0"), attachment("video", token="t1")]},
    ),
]


@pytest.mark.parametrize(("part", "media", "expected"), BODIES)
def test_each_part_is_one_message(part: Part, media: list[str], expected: dict[str, Any]) -> None:
    assert message_body(part, media) == expected


def test_bytes_that_were_not_uploaded_are_our_own_mistake() -> None:
    with pytest.raises(TypeError, match="uploaded"):
        message_body(MediaPart(media=(item("image"),)), [Bytes()])


KINDS = {
    "image": ("picture.png", "image"),
    "video": ("clip.mp4", "video"),
    "audio": ("song.mp3", "audio"),
    "file": ("имя.pdf", "file"),
    "animation": ("moves.mp4", "video"),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_what_was_uploaded_can_be_sent_and_sent_again(max_: Simulated, kind: str) -> None:
    name, shown_as = KINDS[kind]
    one = item(kind, "<b>what</b> it is", markup="html")
    source = Bytes(name=name) if kind == "image" else Bytes(content=bytes(range(256)) * 700, name=name)

    held = await max_.adapter.upload(one, source, max_.target)
    assert isinstance(held, Held)
    answers = [await max_.send(MediaPart(media=(one,), buttons=BUTTONS), [held.provider_id]) for _ in range(2)]

    posts = await max_.posts()
    assert [answer.provider_ids for answer in answers] == [(post["id"],) for post in posts]  # type: ignore[union-attr]
    for post in posts:
        assert [shown["type"] for shown in post["extra"]["attachments"]] == [shown_as]
        assert (post["text"], post["markup"]) == ("what it is", [{"type": "strong", "from": 0, "length": 4}])
        assert post["buttons"] == [KEYBOARD]
    digest = hashlib.sha256(source.content).hexdigest()
    assert [shown["media"] for shown in await max_.shown()] == [[digest], [digest]]
    assert held.lifetime == timedelta(days=7)


async def test_the_preview_of_a_link_can_be_switched_off() -> None:
    async with two_hosts() as hosts:
        await hosts.adapter.send(TextPart(text="a", preview=Preview(disabled=True)), TARGET)
        await hosts.adapter.send(TextPart(text="a"), TARGET)

    assert [dict(request.query) for request in hosts.api] == [
        {"chat_id": "-70", "disable_link_preview": "true"},
        {"chat_id": "-70"},
    ]


async def test_media_that_is_not_ready_asks_for_patience_and_then_goes_through(max_: Simulated) -> None:
    settings = f"{max_.url}/_sim/max/settings"
    (await max_.http.post(settings, json={"processing": {"video": 3600}})).raise_for_status()
    part = MediaPart(media=(item("video"),))
    media = await max_.upload_media(*part.media, sources=[Bytes(name="clip.mp4")])

    early = await max_.send(part, media)
    (await max_.http.post(settings, json={"processing": {"video": 0}})).raise_for_status()
    late = await max_.send(part, media)

    assert isinstance(early, Failed)
    assert (early.category, early.scope, early.ambiguous) == ("TRANSIENT", "delivery", False)
    assert max_.adapter.patience[early.code] == (
        timedelta(seconds=1),
        timedelta(seconds=2),
        timedelta(seconds=4),
    )
    assert isinstance(late, AcceptedPart)


async def test_a_token_that_has_expired_asks_for_another_upload(max_: Simulated) -> None:
    part = MediaPart(media=(item("image"),))
    (token,) = await max_.upload_media(*part.media)
    state = await max_.http.post(f"{max_.url}/_sim/max/files/{token}", json={"state": "expired"})
    state.raise_for_status()

    answer = await max_.send(part, [token])

    assert isinstance(answer, Failed)
    assert (answer.category, answer.scope, answer.code) == ("TRANSIENT", "delivery", "media_expired")


async def test_a_bot_is_asked_who_it_is(max_: Simulated) -> None:
    me = await max_.http.get(f"{max_.url}/max/me", headers={"Authorization": max_.target.token.reveal()})

    assert await max_.adapter.identify(max_.target.token) == str(me.json()["user_id"])


@pytest.mark.parametrize("effect", [{"html": 502}, {"garbage": True}, {"catalogue": "max.verify_token"}])
async def test_a_bot_that_cannot_be_asked_is_a_certain_failure(max_: Simulated, effect: dict[str, Any]) -> None:
    await max_.misbehave(**effect)

    answer = await max_.adapter.identify(max_.target.token)

    assert isinstance(answer, Failed)
    assert not answer.ambiguous
