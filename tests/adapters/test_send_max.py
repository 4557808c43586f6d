"""What goes to MAX: uploads to one host, messages to another, and a look whether a message is already there."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from aiohttp import web
from autopost_adapters.base import Accepted, Held, Target
from autopost_adapters.max.message import message_body
from autopost_adapters.max.send import MaxAdapter
from autopost_contracts.outcomes import Failed
from autopost_contracts.payload import Button
from autopost_contracts.plan import MediaPart, Part, PlannedMedia, Preview, TextPart
from autopost_runtime.config import Secret
from autopost_runtime.http import HttpClient

from adapters.conftest import PATIENT, Simulated
from adapters.sources import Bytes

TOKEN = "canary-canary-canary"
TARGET = Target(chat="-70", token=Secret(TOKEN))
BUTTONS = ((Button("Go", "https://example.org/"),),)
KEYBOARD = {
    "type": "inline_keyboard",
    "payload": {"buttons": [[{"type": "link", "text": "Go", "url": "https://example.org/"}]]},
}


def item(kind: Any, caption: str = "", **fields: Any) -> PlannedMedia:
    return PlannedMedia(type=kind, caption=caption, **({"blob_ref": "sha256:x"} | fields))


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


class Hosts:
    """The API and a host for uploads, apart as they are in life; each answers as it is told, and keeps who asked."""

    def __init__(self) -> None:
        self.api: list[web.Request] = []
        self.uploads: list[tuple[web.Request, bytes]] = []
        self.link: dict[str, Any] = {"token": "with-link"}
        self.taken = web.json_response({"photos": {"k/==": {"token": "of-photo"}}})
        self.adapter: MaxAdapter
        self._upload_url = ""

    async def on_api(self, request: web.Request) -> web.Response:
        self.api.append(request)
        if request.path == "/uploads":
            return web.json_response({"url": f"{self._upload_url}/put?sig=1"} | self.link)
        return web.json_response({"message": {"body": {"mid": "mid.1"}}})

    async def on_upload(self, request: web.Request) -> web.Response:
        self.uploads.append((request, await request.read()))
        return self.taken

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Hosts"]:
        async with serving(self.on_upload) as self._upload_url, serving(self.on_api) as url, HttpClient() as client:
            self.adapter = MaxAdapter(client, url, PATIENT, PATIENT)
            yield self


def two_hosts() -> Any:
    return Hosts().running()


@asynccontextmanager
async def serving(handle: Any) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_the_token_goes_to_the_api_and_never_to_the_host_that_takes_the_bytes() -> None:
    async with two_hosts() as hosts:
        held = await hosts.adapter.upload(item("image"), Bytes(), TARGET)

    ((request, body),) = hosts.uploads
    assert held == Held(provider_id="of-photo", lifetime=timedelta(days=7))
    assert [asked.headers["Authorization"] for asked in hosts.api] == [TOKEN]
    assert "Authorization" not in request.headers
    assert TOKEN not in str(request.headers) + str(request.rel_url)
    assert TOKEN.encode() not in body


async def test_bytes_go_up_as_the_field_data_under_their_name_and_with_their_length() -> None:
    async with two_hosts() as hosts:
        await hosts.adapter.upload(item("image"), Bytes(content=b"0123456789"), TARGET)

    ((request, body),) = hosts.uploads
    assert (request.method, request.path_qs) == ("POST", "/put?sig=1")
    assert int(request.headers["Content-Length"]) == len(body)
    assert "Transfer-Encoding" not in request.headers
    assert b'name="data"; filename="picture.png"\r\nContent-Type: image/png\r\n\r\n0123456789\r\n--' in body


XML = b'<?xml version="1.0"?><retval>1</retval>'
TOKEN_OF: list[tuple[PlannedMedia, str, bytes, str]] = [
    (item("image"), "image", b'{"photos":{"k":{"token":"p"}}}', "p"),
    (item("file"), "file", b'{"fileId":7,"token":"f"}', "f"),
    (item("video"), "video", XML, "with-link"),
    (item("audio"), "audio", b"<retval>1</retval>", "with-link"),
    (item("animation", content_type="image/gif"), "image", b'{"photos":{"k":{"token":"p"}}}', "p"),
    (item("animation", content_type="video/mp4"), "video", XML, "with-link"),
]


@pytest.mark.parametrize(("one", "asked", "taken", "token"), TOKEN_OF)
async def test_where_the_token_comes_from_depends_on_the_kind(
    one: PlannedMedia, asked: str, taken: bytes, token: str
) -> None:
    hosts = Hosts()
    hosts.taken = web.Response(body=taken)
    async with hosts.running():
        held = await hosts.adapter.upload(one, Bytes(), TARGET)

    assert isinstance(held, Held)
    assert held.provider_id == token
    assert [request.query["type"] for request in hosts.api] == [asked]


UNREADABLE: list[tuple[str, bytes, dict[str, Any]]] = [
    ("image", b'{"token":"wrong-here"}', {}),
    ("image", b'{"photos":{}}', {}),
    ("image", XML, {}),
    ("file", b'{"fileId":7}', {}),
    ("file", b'{"token":""}', {}),
    ("video", b"<retval>0</retval>", {}),
    ("video", b"", {}),
    ("audio", XML, {"token": ""}),
    ("image", b"{}", {"url": 1}),
]


@pytest.mark.parametrize(("kind", "taken", "link"), UNREADABLE)
async def test_an_upload_that_gives_no_token_has_failed_and_may_be_made_again(
    kind: str, taken: bytes, link: dict[str, Any]
) -> None:
    hosts = Hosts()
    hosts.taken = web.Response(body=taken)
    hosts.link |= link
    async with hosts.running():
        answer = await hosts.adapter.upload(item(kind), Bytes(), TARGET)

    assert isinstance(answer, Failed)
    assert (answer.category, answer.code, answer.ambiguous) == ("TRANSIENT", "unreadable_answer", False)


REFUSED = [
    (400, "TRANSIENT", "delivery", "upload_refused"),
    (401, "TRANSIENT", "delivery", "upload_refused"),
    (403, "TRANSIENT", "delivery", "upload_refused"),
    (404, "TRANSIENT", "delivery", "upload_refused"),
    (413, "PERMANENT", "delivery", "media_too_large"),
    (415, "PERMANENT", "delivery", "media_unsupported"),
    (429, "TRANSIENT", "platform", "rate_limited"),
    (502, "TRANSIENT", "platform", "http_502"),
]


@pytest.mark.parametrize(("status", "category", "scope", "code"), REFUSED)
async def test_what_an_upload_host_refuses_is_never_the_channels_fault(
    status: int, category: str, scope: str, code: str
) -> None:
    hosts = Hosts()
    hosts.taken = web.Response(status=status, text="<html>no</html>")
    async with hosts.running():
        answer = await hosts.adapter.upload(item("image"), Bytes(), TARGET)

    assert isinstance(answer, Failed)
    assert (answer.category, answer.scope, answer.code, answer.ambiguous) == (category, scope, code, False)
    assert TOKEN not in repr(answer)


async def test_an_upload_host_that_cannot_be_reached_is_a_failure_like_any_other() -> None:
    hosts = Hosts()
    hosts.link |= {"url": "http://127.0.0.1:1/put"}
    async with hosts.running():
        answer = await hosts.adapter.upload(item("image"), Bytes(), TARGET)

    assert isinstance(answer, Failed)
    assert (answer.category, answer.code, answer.ambiguous) == ("TRANSIENT", "connect", False)


async def test_media_that_is_not_ready_asks_for_patience_and_then_goes_through(max_: Simulated) -> None:
    settings = f"{max_.url}/_sim/max/settings"
    (await max_.http.post(settings, json={"processing": {"video": 3600}})).raise_for_status()
    part = MediaPart(media=(item("video"),))
    media = await max_.bring(*part.media, sources=[Bytes(name="clip.mp4")])

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
    assert isinstance(late, Accepted)


async def test_a_token_that_has_expired_asks_for_another_upload(max_: Simulated) -> None:
    part = MediaPart(media=(item("image"),))
    (token,) = await max_.bring(*part.media)
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


def long_ago() -> datetime:
    return datetime.now(UTC) - timedelta(hours=1)


async def find(max_: Simulated, part: Part, other_than: tuple[str, ...] = (), since: datetime | None = None) -> Any:
    return await max_.adapter.find(part, max_.target, since or long_ago(), other_than)


FOUND: list[Part] = [
    TextPart(text="a < b & c"),
    TextPart(text="  spaced\n"),
    TextPart(text='<b>a &lt; b</b> <a href="https://example.org">there</a>', markup="html"),
    TextPart(text="**a** \\* [b](https://example.org) `c`", markup="markdown"),
    TextPart(text="a", buttons=BUTTONS),
    MediaPart(media=(item("image", "<i>a</i>", markup="html"), item("image")), buttons=BUTTONS),
    MediaPart(media=(item("animation", content_type="image/gif"),)),
]


@pytest.mark.parametrize("part", FOUND)
async def test_a_message_that_has_arrived_is_found(max_: Simulated, part: Part) -> None:
    items = part.media if isinstance(part, MediaPart) else ()
    sent = await max_.send(part, await max_.bring(*items))
    assert isinstance(sent, Accepted)
    await max_.send(TextPart(text="another"))

    assert await find(max_, part) == Accepted(provider_ids=sent.provider_ids)
    assert await find(max_, part, other_than=sent.provider_ids) is None


NOT_IT: list[Part] = [
    TextPart(text="b", buttons=BUTTONS),
    TextPart(text="a"),
    TextPart(text="a", buttons=((Button("Go", "https://example.org/other"),),)),
    TextPart(text="a", buttons=((Button("Stop", "https://example.org/"),),)),
    TextPart(text="a", buttons=(*BUTTONS, *BUTTONS)),
    MediaPart(media=(item("image", "a"),), buttons=BUTTONS),
]


@pytest.mark.parametrize("part", NOT_IT)
async def test_a_message_that_says_something_else_is_not_it(max_: Simulated, part: Part) -> None:
    await max_.send(TextPart(text="a", buttons=BUTTONS))

    assert await find(max_, part) is None


async def test_the_order_of_the_media_matters(max_: Simulated) -> None:
    picture, clip = item("image"), item("video")
    media = await max_.bring(picture, clip, sources=[Bytes(), Bytes(name="clip.mp4")])
    await max_.send(MediaPart(media=(picture, clip)), media)

    assert await find(max_, MediaPart(media=(picture, clip))) is not None
    assert await find(max_, MediaPart(media=(clip, picture))) is None
    assert await find(max_, MediaPart(media=(picture,))) is None


async def test_an_equal_message_from_before_is_not_it(max_: Simulated) -> None:
    part = TextPart(text="good morning")
    await max_.send(part)

    assert await find(max_, part, since=datetime.now(UTC) + timedelta(minutes=2)) is None
    assert await find(max_, part, since=datetime.now(UTC) + timedelta(seconds=30)) is not None


class Chat:
    """An API that lists messages, newest first, at most a hundred at a time, as it was asked."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self.messages = messages
        self.asked: list[dict[str, str]] = []

    async def on_api(self, request: web.Request) -> web.Response:
        self.asked.append(dict(request.query))
        before = int(request.query.get("before", 1 << 60))
        page = [one for one in self.messages if one["timestamp"] <= before][: int(request.query["count"])]
        return web.Response(body=msgspec.json.encode({"messages": page}))

    async def find(self, text: str, since: datetime) -> Any:
        async with serving(self.on_api) as url, HttpClient() as client:
            adapter = MaxAdapter(client, url, PATIENT, PATIENT)
            return await adapter.find(TextPart(text=text), TARGET, since, ())


NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)


def message(number: int, text: str = "noise", **fields: Any) -> dict[str, Any]:
    """The higher the number, the older."""
    at = int((NOW - timedelta(seconds=number)).timestamp() * 1000)
    return {"timestamp": at, "body": {"mid": f"mid.{number}", "text": text}} | fields


async def test_a_message_is_looked_for_page_by_page() -> None:
    chat = Chat([message(number, "it" if number == 321 else "noise") for number in range(1_000)])

    assert await chat.find("it", NOW - timedelta(hours=1)) == Accepted(provider_ids=("mid.321",))
    assert [asked["count"] for asked in chat.asked] == ["100"] * 4
    assert [asked["chat_id"] for asked in chat.asked] == ["-70"] * 4


async def test_nobody_looks_further_back_than_the_part_can_be() -> None:
    chat = Chat([message(number, "it" if number == 321 else "noise") for number in range(1_000)])

    assert await chat.find("it", NOW - timedelta(seconds=60)) is None
    assert len(chat.asked) == 2  # a page of a hundred seconds, and the one in which it ends


async def test_with_too_much_to_look_through_nobody_knows() -> None:
    chat = Chat([message(number) for number in range(1_000)])

    answer = await chat.find("it", NOW - timedelta(hours=1))

    assert isinstance(answer, Failed)
    assert answer.ambiguous
    assert len(chat.asked) == 5


async def test_more_messages_at_one_moment_than_a_page_holds_are_not_looked_through() -> None:
    chat = Chat([message(0) | {"body": {"mid": f"mid.{number}"}} for number in range(300)])

    answer = await chat.find("it", NOW - timedelta(hours=1))

    assert isinstance(answer, Failed)
    assert answer.ambiguous
    assert len(chat.asked) == 2


async def test_what_a_person_wrote_is_not_what_a_bot_sent() -> None:
    person, bot = {"sender": {"user_id": 1, "is_bot": False}}, {"sender": {"user_id": 2, "is_bot": True}}
    chat = Chat([message(1, "it", **person), message(2, "it", **bot)])

    assert await chat.find("it", NOW - timedelta(hours=1)) == Accepted(provider_ids=("mid.2",))


async def test_what_a_chat_adds_to_a_message_does_not_hide_it() -> None:
    preview = {"type": "share", "payload": {"url": "https://example.org"}}
    shown = message(1) | {"body": {"mid": "mid.1", "text": "it", "attachments": [preview]}}

    assert await Chat([shown]).find("it", NOW - timedelta(hours=1)) == Accepted(provider_ids=("mid.1",))


@pytest.mark.parametrize(
    "effect",
    [
        {"html": 502},
        {"garbage": True},
        {"reset": "before"},
        {"status": 429},
        {"catalogue": "max.verify_token"},
        {"catalogue": "max.chat_denied"},
    ],
)
async def test_when_the_chat_cannot_be_read_nobody_knows(max_: Simulated, effect: dict[str, Any]) -> None:
    await max_.misbehave(**effect)

    answer = await find(max_, TextPart(text="hello"))

    assert isinstance(answer, Failed)
    assert answer.ambiguous
    assert max_.target.token.reveal() not in repr(answer)
