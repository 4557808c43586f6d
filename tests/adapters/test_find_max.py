"""Whether a message has arrived on MAX: found, not there, or nobody knows."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from aiohttp import web
from autopost_adapters.base import AcceptedPart, Target
from autopost_adapters.max.send import MaxAdapter
from autopost_contracts.outcomes import Failed
from autopost_contracts.payload import Button
from autopost_contracts.plan import MediaPart, Part, TextPart
from autopost_runtime.http.client import HttpClient

from adapters.conftest import PATIENT, Simulated
from adapters.max_parts import BUTTONS, TARGET, item, serving
from adapters.media_sources import Bytes


def long_ago() -> datetime:
    return datetime.now(UTC) - timedelta(hours=1)


async def find(max_: Simulated, part: Part, other_than: tuple[str, ...] = (), since: datetime | None = None) -> Any:
    return await max_.adapter.find(part, max_.target, since or long_ago(), other_than)


ASKED = (
    (Button("Доставка", kind="say"), Button("Оплата", kind="say")),
    (Button("M", payload="size.1.t.M", kind="callback"), Button("L", payload="size.1.t.L", kind="callback")),
)
FOUND: list[Part] = [
    TextPart(text="a < b & c"),
    TextPart(text="  spaced\n"),
    TextPart(text='<b>a &lt; b</b> <a href="https://example.org">there</a>', markup="html"),
    TextPart(text="**a** \\* [b](https://example.org) `c`", markup="markdown"),
    TextPart(text="a", buttons=BUTTONS),
    TextPart(text="a", buttons=ASKED),
    MediaPart(media=(item("image", "<i>a</i>", markup="html"), item("image")), buttons=BUTTONS),
    MediaPart(media=(item("animation", content_type="image/gif"),)),
]


@pytest.mark.parametrize("part", FOUND)
async def test_a_message_that_has_arrived_is_found(max_: Simulated, part: Part) -> None:
    items = part.media if isinstance(part, MediaPart) else ()
    sent = await max_.send(part, await max_.upload_media(*items))
    assert isinstance(sent, AcceptedPart)
    await max_.send(TextPart(text="another"))

    assert await find(max_, part) == AcceptedPart(provider_ids=sent.provider_ids)
    assert await find(max_, part, other_than=sent.provider_ids) is None


NOT_IT: list[Part] = [
    TextPart(text="b", buttons=BUTTONS),
    TextPart(text="a"),
    TextPart(text="a", buttons=((Button("Go", "https://example.org/other"),),)),
    TextPart(text="a", buttons=((Button("Stop", "https://example.org/"),),)),
    TextPart(text="a", buttons=(*BUTTONS, *BUTTONS)),
    TextPart(text="a", buttons=((Button("Go", kind="say"),),)),
    MediaPart(media=(item("image", "a"),), buttons=BUTTONS),
]


@pytest.mark.parametrize("part", NOT_IT)
async def test_a_message_that_says_something_else_is_not_it(max_: Simulated, part: Part) -> None:
    await max_.send(TextPart(text="a", buttons=BUTTONS))

    assert await find(max_, part) is None


async def test_buttons_that_do_something_else_are_not_it(max_: Simulated) -> None:
    asked, other = (Button("M", payload=f"size.1.{state}.M", kind="callback") for state in "tu")
    await max_.send(TextPart(text="a", buttons=((asked,),)))

    assert await find(max_, TextPart(text="a", buttons=((asked,),))) is not None
    assert await find(max_, TextPart(text="a", buttons=((other,),))) is None
    assert await find(max_, TextPart(text="a", buttons=((Button("M", kind="say"),),))) is None


async def test_of_two_equal_answers_the_one_that_is_not_known_yet_is_it(max_: Simulated) -> None:
    """The same question twice: the answer to the first must not pass for that to the second."""
    part = TextPart(text="Доставка — 300 ₽.", buttons=ASKED)
    first = await max_.send(part)
    assert isinstance(first, AcceptedPart)

    missing = await find(max_, part, other_than=first.provider_ids)
    second = await max_.send(part)

    assert missing is None
    assert await find(max_, part, other_than=first.provider_ids) == second


async def test_the_dialog_with_a_person_cannot_be_searched_without_its_number(max_: Simulated) -> None:
    """MAX lists messages by chat only, so nobody knows, and nothing may be sent again."""
    target = Target(chat="user:9", token=max_.target.token)

    found = await max_.adapter.find(TextPart(text="a"), target, long_ago(), ())

    assert isinstance(found, Failed)
    assert (found.code, found.ambiguous) == ("cannot_verify", True)


async def test_the_order_of_the_media_matters(max_: Simulated) -> None:
    picture, clip = item("image"), item("video")
    media = await max_.upload_media(picture, clip, sources=[Bytes(), Bytes(name="clip.mp4")])
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

    assert await chat.find("it", NOW - timedelta(hours=1)) == AcceptedPart(provider_ids=("mid.321",))
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

    assert await chat.find("it", NOW - timedelta(hours=1)) == AcceptedPart(provider_ids=("mid.2",))


async def test_what_a_chat_adds_to_a_message_does_not_hide_it() -> None:
    preview = {"type": "share", "payload": {"url": "https://example.org"}}
    shown = message(1) | {"body": {"mid": "mid.1", "text": "it", "attachments": [preview]}}

    assert await Chat([shown]).find("it", NOW - timedelta(hours=1)) == AcceptedPart(provider_ids=("mid.1",))


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
