"""What goes to Telegram, parameter by parameter, and what is kept of its answers."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from aiohttp import web
from autopost_adapters.base import AcceptedPart, Held, Target
from autopost_adapters.registry import adapters
from autopost_adapters.telegram.answers import TelegramMessage, held, read
from autopost_adapters.telegram.calls import call_for
from autopost_adapters.telegram.send import TelegramAdapter
from autopost_contracts.outcomes import Failed
from autopost_contracts.payload import GENERAL_TOPIC, Button
from autopost_contracts.plan import MediaPart, Part, PlannedMedia, Preview, TextPart
from autopost_runtime.config.load import Secret
from autopost_runtime.http.client import HttpAnswer, HttpClient

from adapters.conftest import PATIENT, Simulated
from adapters.media_sources import Bytes

TOKEN = "7777777:canary-canary-canary-canary-canary"
BUTTONS = ((Button("Go", "https://example.org/"),), (Button("A", "https://a.example/"), Button("B", "tg://b")))
KEYBOARD = {
    "inline_keyboard": [
        [{"text": "Go", "url": "https://example.org/"}],
        [{"text": "A", "url": "https://a.example/"}, {"text": "B", "url": "tg://b"}],
    ]
}


def item(kind: Any, caption: str = "", **fields: Any) -> PlannedMedia:
    return PlannedMedia(type=kind, blob_ref="sha256:x", caption=caption, **fields)


BIG_PREVIEW = Preview(url="https://example.org", size="large", above_text=True)

CALLS: list[tuple[Part, str, dict[str, Any]]] = [
    (TextPart(text="a < b"), "sendMessage", {"text": "a < b"}),
    (TextPart(text="<b>a</b>", markup="html"), "sendMessage", {"text": "<b>a</b>", "parse_mode": "HTML"}),
    (
        TextPart(text="a", silent=True, protect=True, buttons=BUTTONS),
        "sendMessage",
        {"text": "a", "disable_notification": True, "protect_content": True, "reply_markup": KEYBOARD},
    ),
    (
        TextPart(text="a", preview=Preview(disabled=True)),
        "sendMessage",
        {"text": "a", "link_preview_options": {"is_disabled": True}},
    ),
    (
        TextPart(text="a", preview=Preview(url="https://a.example", size="small", above_text=True)),
        "sendMessage",
        {
            "text": "a",
            "link_preview_options": {"url": "https://a.example", "prefer_small_media": True, "show_above_text": True},
        },
    ),
    (
        TextPart(text="a", preview=Preview(url="https://a.example", size="large")),
        "sendMessage",
        {"text": "a", "link_preview_options": {"url": "https://a.example", "prefer_large_media": True}},
    ),
    (
        TextPart(text="a", preview=Preview(above_text=True)),
        "sendMessage",
        {"text": "a", "link_preview_options": {"show_above_text": True}},
    ),
    (MediaPart(media=(item("image"),)), "sendPhoto", {"photo": "id-0"}),
    (
        MediaPart(media=(item("video", "<i>a</i>", markup="html"),), caption_above=True, buttons=BUTTONS),
        "sendVideo",
        {
            "video": "id-0",
            "caption": "<i>a</i>",
            "parse_mode": "HTML",
            "show_caption_above_media": True,
            "supports_streaming": True,
            "reply_markup": KEYBOARD,
        },
    ),
    (
        MediaPart(media=(item("animation", "a"),), caption_above=True, silent=True),
        "sendAnimation",
        {"animation": "id-0", "caption": "a", "show_caption_above_media": True, "disable_notification": True},
    ),
    (MediaPart(media=(item("audio", "a"),), caption_above=True), "sendAudio", {"audio": "id-0", "caption": "a"}),
    (
        MediaPart(media=(item("file", "a"),), caption_above=True, protect=True),
        "sendDocument",
        {"document": "id-0", "caption": "a", "protect_content": True},
    ),
    (
        MediaPart(
            media=(item("image", "<b>a</b>", markup="html"), item("video"), item("image", "c")),
            caption_above=True,
            silent=True,
            protect=True,
        ),
        "sendMediaGroup",
        {
            "media": [
                {
                    "type": "photo",
                    "media": "id-0",
                    "caption": "<b>a</b>",
                    "parse_mode": "HTML",
                    "show_caption_above_media": True,
                },
                {"type": "video", "media": "id-1", "supports_streaming": True, "show_caption_above_media": True},
                {"type": "photo", "media": "id-2", "caption": "c", "show_caption_above_media": True},
            ],
            "disable_notification": True,
            "protect_content": True,
        },
    ),
]


@pytest.mark.parametrize(("part", "method", "fields"), CALLS, ids=[f"{n}-{call[1]}" for n, call in enumerate(CALLS)])
def test_each_part_is_one_call(part: Part, method: str, fields: dict[str, Any]) -> None:
    ids = [f"id-{number}" for number in range(len(part.media))] if isinstance(part, MediaPart) else []

    call = call_for(part, ids)

    assert (call.method, call.fields, call.files) == (method, fields, {})


def test_bytes_go_beside_the_parameters_under_names_that_the_album_gives_them() -> None:
    first, last = Bytes(name="a.pdf"), Bytes(name="b.pdf")

    single = call_for(MediaPart(media=(item("file"),)), [first])
    album = call_for(MediaPart(media=(item("file"),) * 3), [first, "id-1", last])

    assert single.files == {"document": first}
    assert single.fields == {"disable_content_type_detection": True}
    assert album.files == {"file0": first, "file2": last}
    assert [one["media"] for one in album.fields["media"]] == ["attach://file0", "id-1", "attach://file2"]


KINDS = {
    "image": ("picture.png", "photo"),
    "video": ("clip.mp4", "video"),
    "animation": ("moves.mp4", "animation"),
    "audio": ("song.mp3", "audio"),
    "file": ('a "quoted" имя.pdf', "document"),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_bytes_arrive_unchanged_and_the_id_that_came_back_sends_them_again(
    telegram: Simulated, kind: str
) -> None:
    name, shown_as = KINDS[kind]
    source = Bytes(name=name) if kind == "image" else Bytes(content=bytes(range(256)) * 700, name=name)
    part = MediaPart(media=(item(kind, "<b>what</b> it is", markup="html"),), buttons=BUTTONS[:1])

    first = await telegram.send(part, [source])
    assert isinstance(first, AcceptedPart)
    (kept,) = first.held
    assert kept is not None
    again = await telegram.send(part, [kept.provider_id])

    assert isinstance(again, AcceptedPart)
    posts = await telegram.posts()
    assert [str(post["id"]) for post in posts] == [*first.provider_ids, *again.provider_ids]
    for post in posts:
        (media,) = post["extra"]["media"]
        assert (media["kind"], media["sha256"]) == (shown_as, hashlib.sha256(source.content).hexdigest())
        assert media["name"] == (None if kind == "image" else name)
        assert (post["text"], post["markup"]) == ("what it is", [{"type": "bold", "offset": 0, "length": 4}])
        assert post["buttons"] == {"inline_keyboard": KEYBOARD["inline_keyboard"][:1]}
    assert kept.lifetime is None


async def test_an_album_of_bytes_and_ids_keeps_its_order_and_each_items_own_caption(telegram: Simulated) -> None:
    known = await telegram.hold(item("image"))
    clip = Bytes(content=b"clip", name="clip.mp4")
    items = (item("video", "<i>one</i>", markup="html"), item("image"), item("image", "three <"))

    answer = await telegram.send(MediaPart(media=items, caption_above=True), [clip, known, Bytes()])

    assert isinstance(answer, AcceptedPart)
    posts = (await telegram.posts())[1:]
    assert [str(post["id"]) for post in posts] == list(answer.provider_ids)
    assert [post["extra"]["media"][0]["kind"] for post in posts] == ["video", "photo", "photo"]
    assert [post["text"] for post in posts] == ["one", "", "three <"]
    assert [post["markup"] for post in posts] == [[{"type": "italic", "offset": 0, "length": 3}], [], []]
    assert len({post["extra"]["media_group_id"] for post in posts}) == 1
    assert [one.provider_id for one in answer.held if one][1] == known
    assert all(post["extra"]["show_caption_above_media"] for post in posts)


async def test_a_part_goes_to_its_topic_protected_and_with_the_preview_it_asks_for(telegram: Simulated) -> None:
    forum = {"platform": "telegram", "id": -1009, "type": "supergroup", "topics": [{"id": 7, "name": "News"}]}
    (await telegram.http.post(f"{telegram.url}/_sim/chats", json=forum | {"limits": []})).raise_for_status()
    target = Target(chat="-1009", token=telegram.target.token, thread=7)
    parts = [
        (TextPart(text="https://example.org", protect=True, preview=BIG_PREVIEW), []),
        (MediaPart(media=(item("image"),), protect=True), [Bytes()]),
    ]

    for part, media in parts:
        assert isinstance(await telegram.adapter.send(part, target, media), AcceptedPart)

    answer = await telegram.http.get(f"{telegram.url}/_sim/chats/telegram/-1009/messages")
    posts = [post["extra"] for post in answer.json()["messages"]]
    assert [post["message_thread_id"] for post in posts] == [7, 7]
    assert all(post["has_protected_content"] for post in posts)
    assert posts[0]["link_preview_options"] == {
        "url": "https://example.org",
        "prefer_large_media": True,
        "show_above_text": True,
    }


async def test_general_is_a_topic_without_its_number(telegram: Simulated) -> None:
    forum = {"platform": "telegram", "id": -1009, "type": "supergroup", "topics": [{"id": 7, "name": "News"}]}
    (await telegram.http.post(f"{telegram.url}/_sim/chats", json=forum | {"limits": []})).raise_for_status()

    answer = await telegram.adapter.send(
        TextPart(text="a"), Target(chat="-1009", token=telegram.target.token, thread=GENERAL_TOPIC)
    )

    assert isinstance(answer, AcceptedPart), answer


async def test_a_channel_may_be_named_instead_of_numbered(telegram: Simulated) -> None:
    target = Target(chat="@news", token=telegram.target.token)

    assert isinstance(await telegram.adapter.send(TextPart(text="hello"), target), AcceptedPart)


async def test_an_id_that_is_forgotten_asks_for_the_bytes_again(telegram: Simulated) -> None:
    other = Target(chat=telegram.target.chat, token=Secret(TOKEN))
    sent = await telegram.adapter.send(MediaPart(media=(item("image"),)), other, [Bytes()])
    assert isinstance(sent, AcceptedPart)
    (foreign,) = sent.held
    assert foreign is not None

    answer = await telegram.send(MediaPart(media=(item("image"),)), [foreign.provider_id])

    assert isinstance(answer, Failed)
    assert (answer.code, answer.category) == ("media_expired", "TRANSIENT")


SMALL, LARGE = {"file_id": "small", "width": 90, "height": 60}, {"file_id": "large", "width": 900, "height": 600}
HELD: list[tuple[str, dict[str, Any], str | None]] = [
    ("image", {"photo": [SMALL, LARGE]}, "large"),
    ("image", {"photo": [LARGE, SMALL]}, "large"),
    ("image", {"document": {"file_id": "d"}}, None),
    ("video", {"video": {"file_id": "v"}}, "v"),
    ("video", {"animation": {"file_id": "a"}, "document": {"file_id": "a"}}, None),
    ("video", {"document": {"file_id": "d"}}, None),
    ("animation", {"animation": {"file_id": "a"}, "document": {"file_id": "a"}}, "a"),
    ("animation", {"video": {"file_id": "v"}}, None),
    ("audio", {"audio": {"file_id": "u"}}, "u"),
    ("file", {"document": {"file_id": "d"}}, "d"),
    ("file", {"animation": {"file_id": "a"}, "document": {"file_id": "a"}}, None),
]


@pytest.mark.parametrize(("kind", "shown", "expected"), HELD)
def test_an_id_is_kept_only_for_the_kind_it_was_given_for(
    kind: str, shown: dict[str, Any], expected: str | None
) -> None:
    body = msgspec.json.encode({"ok": True, "result": {"message_id": 1} | shown})

    messages = read(HttpAnswer(200, {}, body))

    assert isinstance(messages, list)
    assert held([item(kind)], messages) == ((Held(provider_id=expected) if expected else None),)


def test_an_answer_with_another_number_of_messages_gives_no_ids_to_keep() -> None:
    assert held([item("video"), item("video")], [TelegramMessage(message_id=1)]) == (None, None)


@pytest.mark.parametrize("token", ["no-colon", ":secret", "12x:secret", "²:secret"])
async def test_a_token_without_the_number_of_a_bot_is_no_token(telegram: Simulated, token: str) -> None:
    answer = await telegram.adapter.identify(Secret(token))

    assert isinstance(answer, Failed)
    assert (answer.code, answer.scope) == ("unauthorized", "channel")
    assert token not in repr(answer)


async def test_a_bot_is_known_without_asking_anybody(telegram: Simulated) -> None:
    assert await telegram.adapter.identify(Secret(TOKEN)) == "7777777"
    assert await telegram.log() == []


@asynccontextmanager
async def answering(answer: web.Response) -> AsyncIterator[tuple[str, list[web.BaseRequest]]]:
    requests: list[web.BaseRequest] = []

    async def handle(request: web.BaseRequest) -> web.Response:
        await request.read()
        requests.append(request)
        return answer

    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", requests
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("100% off.pdf", "100%25 off.pdf"),
        ("50%25.pdf", "50%2525.pdf"),
        ('say "a" \\ b.pdf', "say %22a%22 %5C b.pdf"),
        ("отчёт.pdf", "отчёт.pdf"),
    ],
)
async def test_telegram_decodes_a_file_name_so_it_is_encoded(name: str, told: str) -> None:
    part = MediaPart(media=(item("file"),))
    async with answering(web.Response(body=b"{}")) as (url, requests), HttpClient() as client:
        adapter = TelegramAdapter(client, url, PATIENT, PATIENT)
        await adapter.send(part, Target(chat="-1", token=Secret(TOKEN)), [Bytes(content=b"x", name=name)])

    assert f'filename="{told}"'.encode() in await requests[0].read()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("media", [[], [Bytes()]], ids=["json", "form"])
async def test_a_redirect_takes_neither_token_nor_post_elsewhere(status: int, media: list[Bytes]) -> None:
    part: Part = MediaPart(media=(item("image"),)) if media else TextPart(text="hello")
    async with answering(web.Response()) as (elsewhere, strangers):
        moved = web.Response(status=status, headers={"Location": f"{elsewhere}/caught"})
        async with answering(moved) as (url, _), HttpClient() as client:
            adapter = TelegramAdapter(client, url, PATIENT, PATIENT)
            answer = await adapter.send(part, Target(chat="-1", token=Secret(TOKEN)), media)

    assert strangers == []
    assert isinstance(answer, Failed)
    assert (answer.code, answer.ambiguous) == ("redirected", False)
    assert TOKEN not in repr(answer)


@pytest.mark.parametrize("status", [200, 404, 502])
@pytest.mark.parametrize("name", ["telegram", "max"])
@pytest.mark.parametrize("before", ["", "x" * 490], ids=["at the start", "where the snippet ends"])
async def test_a_server_that_repeats_the_token_does_not_get_it_into_the_failure(
    name: str, status: int, before: str
) -> None:
    told = msgspec.json.encode({"code": f"{before} /bot{TOKEN}/", "description": f"{before} /bot{TOKEN}/ is not here"})
    async with answering(web.Response(status=status, body=told)) as (url, _), HttpClient() as client:
        adapter = adapters(client, telegram_url=url, max_url=url, timeout=PATIENT)[name]
        answer = await adapter.send(TextPart(text="hello"), Target(chat="-1", token=Secret(TOKEN)))

    assert isinstance(answer, Failed)
    assert TOKEN[:12] not in repr(answer)
    assert answer.raw["status"] == status


async def test_a_token_cannot_lead_to_another_path() -> None:
    async with answering(web.Response()) as (url, requests), HttpClient() as client:
        adapter = TelegramAdapter(client, url, PATIENT, PATIENT)
        await adapter.send(TextPart(text="hello"), Target(chat="-1", token=Secret("1:x/../../y?a=b#c")))

    assert [request.raw_path for request in requests] == ["/bot1:x%2F..%2F..%2Fy%3Fa%3Db%23c/sendMessage"]


class Recorder:
    """An HTTP client that keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    async def request(self, method: str, url: str, **options: Any) -> HttpAnswer:
        self.asked.append({"method": method, "url": url} | options)
        return HttpAnswer(200, {}, b'{"ok":true,"result":{"message_id":1}}')


async def test_only_what_carries_bytes_is_given_the_time_of_an_upload() -> None:
    http = Recorder()
    adapter = TelegramAdapter(http, "https://api.example/", timedelta(seconds=3), timedelta(minutes=4))
    target = Target(chat="-100", token=Secret(TOKEN))

    await adapter.send(TextPart(text="hello"), target)
    await adapter.send(MediaPart(media=(item("image"),)), target, ["id"])
    await adapter.send(MediaPart(media=(item("image"),)), target, [Bytes()])

    assert [asked["timeout"] for asked in http.asked] == [
        timedelta(seconds=3),
        timedelta(seconds=3),
        timedelta(minutes=4),
    ]
    assert [asked["template"] for asked in http.asked] == [
        "/bot***/sendMessage",
        "/bot***/sendPhoto",
        "/bot***/sendPhoto",
    ]
    assert all(TOKEN not in asked["span_name"] + asked["template"] for asked in http.asked)


async def test_a_large_video_goes_through_and_many_at_once(telegram: Simulated) -> None:
    videos = [Bytes(content=bytes([shade]) * 3_000_000, name="clip.mp4") for shade in range(4)]

    answers = await asyncio.gather(*(telegram.send(MediaPart(media=(item("video"),)), [video]) for video in videos))

    assert all(isinstance(answer, AcceptedPart) for answer in answers)
    sent = {hashlib.sha256(video.content).hexdigest() for video in videos}
    assert {post["extra"]["media"][0]["sha256"] for post in await telegram.posts()} == sent
