"""Every adapter passes the same table: what a platform may do to us, whatever we send, and what we make of it."""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from autopost_adapters.base import AcceptedPart, Adapter, Held, Material, MediaMissing, MediaUnreadable
from autopost_adapters.compilers import COMPILERS, compile_content
from autopost_contracts.outcomes import Category, Failed, Scope
from autopost_contracts.payload import Button, Content, Flags, Medium
from autopost_contracts.plan import MediaPart, Part, PlannedMedia, Profile, TextPart
from autopost_runtime.http.client import HttpClient
from msgspec import Struct

from adapters.board.compile import compile_content as compile_for_board
from adapters.conftest import IMPATIENT, NOWHERE, PATIENT, PLATFORMS, Platform, adapter_at
from adapters.media_sources import PICTURE, Bytes

ITEM = PlannedMedia(type="image", blob_ref="sha256:x", content_type="image/png", name="picture.png")
TEXT = TextPart(text="hello")
SINGLE = MediaPart(media=(PlannedMedia(type="image", blob_ref="sha256:x", caption="hello"),))
ALBUM = MediaPart(media=(SINGLE.media[0], ITEM, ITEM))
CHECKSUM = hashlib.sha256(PICTURE).hexdigest()

TRANSIENT, PERMANENT = Category.TRANSIENT, Category.PERMANENT
DELIVERY, CHANNEL, PLATFORM = Scope.DELIVERY, Scope.CHANNEL, Scope.PLATFORM


async def nothing(platform: Platform) -> list[Material]:
    return []


async def bytes_of_one(platform: Platform) -> list[Material]:
    return await platform.upload_media(ITEM)


async def id_of_one(platform: Platform) -> list[Material]:
    return [await platform.hold(ITEM)]


async def bytes_and_id(platform: Platform) -> list[Material]:
    first, last = await platform.upload_media(ITEM, ITEM)
    return [first, await platform.hold(ITEM), last]


SENDS: dict[str, tuple[Part, Callable[[Platform], Awaitable[list[Material]]], int]] = {
    "text": (TEXT, nothing, 0),
    "media with bytes": (SINGLE, bytes_of_one, 1),
    "media by id": (SINGLE, id_of_one, 1),
    "album": (ALBUM, bytes_and_id, 3),
}


class Trouble(Struct, frozen=True, kw_only=True):
    """``words``: the same refusal as each platform says it. ``accepted``: the message is there all the same."""

    effect: dict[str, Any] = {}
    words: dict[str, dict[str, Any]] = {}
    expected: tuple[Category, Scope, str]
    retry_after_ms: int | None = None
    ambiguous: bool = False
    accepted: bool = False
    slow: bool = False

    @property
    def answered(self) -> bool:
        """A definite answer, whatever it says: the platform is there."""
        return self.expected[0] == PERMANENT or self.expected[2] == "rate_limited"

    def on(self, platform: str) -> dict[str, Any]:
        return self.words.get(platform, self.effect)


def words(telegram: str, max_: str, board: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {"telegram": {"catalogue": f"telegram.{telegram}"}, "max": {"catalogue": f"max.{max_}"}, "board": board}


TROUBLES = {
    "rate limited": Trouble(
        effect={"status": 429, "retry_after": 7},
        expected=(TRANSIENT, PLATFORM, "rate_limited"),
        retry_after_ms=7000,
    ),
    "rate limited in html": Trouble(effect={"html": 429}, expected=(TRANSIENT, PLATFORM, "rate_limited")),
    "refused for the post": Trouble(
        words=words("message_is_too_long", "text_too_long", {"status": 400, "error": "too long"}),
        expected=(PERMANENT, DELIVERY, "message_too_long"),
    ),
    "refused for the channel": Trouble(
        words=words("chat_not_found", "chat_not_found", {"status": 410}),
        expected=(PERMANENT, CHANNEL, "chat_not_found"),
    ),
    "refused for the token": Trouble(
        words=words("unauthorized", "verify_token", {"status": 401}),
        expected=(PERMANENT, CHANNEL, "unauthorized"),
    ),
    "refused by the platform": Trouble(
        words=words("method_not_found", "not_found", {"status": 403, "error": "closed for repairs"}),
        expected=(PERMANENT, PLATFORM, "*"),
    ),
    "gateway error": Trouble(effect={"html": 502}, expected=(TRANSIENT, PLATFORM, "http_502"), ambiguous=True),
    "error of the platform": Trouble(
        effect={"status": 500}, expected=(TRANSIENT, PLATFORM, "http_500"), ambiguous=True
    ),
    "garbage": Trouble(
        effect={"garbage": True, "accept": True},
        expected=(TRANSIENT, PLATFORM, "unreadable_answer"),
        ambiguous=True,
        accepted=True,
    ),
    "half an answer": Trouble(effect={"half": True}, expected=(TRANSIENT, PLATFORM, "bad_framing"), ambiguous=True),
    "timeout of a gateway": Trouble(effect={"status": 408}, expected=(TRANSIENT, PLATFORM, "timeout")),
    "reset before reading": Trouble(
        effect={"reset": "before"}, expected=(TRANSIENT, PLATFORM, "reset"), ambiguous=True
    ),
    "reset after accepting": Trouble(
        effect={"reset": "after"}, expected=(TRANSIENT, PLATFORM, "reset"), ambiguous=True, accepted=True
    ),
    "silent after accepting": Trouble(
        effect={"hang": True, "accept": True},
        expected=(TRANSIENT, PLATFORM, "read_timeout"),
        ambiguous=True,
        accepted=True,
        slow=True,
    ),
    "too slow with its answer": Trouble(
        effect={"drip": 0.1},
        expected=(TRANSIENT, PLATFORM, "read_timeout"),
        ambiguous=True,
        accepted=True,
        slow=True,
    ),
}


def judged(answer: object) -> tuple[Category, Scope, str]:
    assert isinstance(answer, Failed)
    return answer.category, answer.scope, answer.code


def agrees(got: tuple[Category, Scope, str], expected: tuple[Category, Scope, str]) -> bool:
    return got == expected or (expected[2] == "*" and got[:2] == expected[:2])


@pytest.mark.parametrize("what", SENDS)
async def test_what_is_accepted_comes_back_with_its_ids_and_is_shown_once(platform: Platform, what: str) -> None:
    part, prepare, pictures = SENDS[what]
    media = await prepare(platform)
    before = len(await platform.shown())

    answer = await platform.send(part, media)

    messages = (await platform.shown())[before:]
    assert isinstance(answer, AcceptedPart)
    assert list(answer.provider_ids) == [message["id"] for message in messages]
    assert [one for message in messages for one in message["media"]] == [CHECKSUM] * pictures
    assert "".join(message["text"] for message in messages) == "hello"


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("what", SENDS)
async def test_what_a_platform_does_to_us_is_an_outcome(platform: Platform, what: str, trouble: str) -> None:
    (part, prepare, _), row = SENDS[what], TROUBLES[trouble]
    media = await prepare(platform)
    if row.slow:
        await platform.send(TextPart(text="before"))  # over the connection that is used again: none is to be made
    before = len(await platform.shown())
    await platform.misbehave(**row.on(platform.name))

    adapter = platform.impatient if row.slow else platform.adapter
    answer = await adapter.send(part, platform.target, media)

    assert isinstance(answer, Failed)
    assert agrees(judged(answer), row.expected)
    assert answer.ambiguous == row.ambiguous
    assert answer.answered == row.answered
    assert answer.is_silence == (not row.answered)
    assert row.retry_after_ms in (None, answer.retry_after_ms)
    assert (len(await platform.shown()) > before) == row.accepted
    assert platform.target.token.reveal() not in repr(answer)


@pytest.mark.parametrize("what", SENDS)
async def test_a_platform_that_cannot_be_reached_certainly_got_nothing(platform: Platform, what: str) -> None:
    part, prepare, _ = SENDS[what]
    media = await prepare(platform)

    async with HttpClient() as client:
        answer = await adapter_at(client, platform.name, NOWHERE, PATIENT).send(part, platform.target, media)

    assert isinstance(answer, Failed)
    assert (judged(answer), answer.ambiguous) == ((TRANSIENT, PLATFORM, "connect"), False)
    assert answer.is_silence
    assert platform.target.token.reveal() not in repr(answer)


BROKEN = {
    "gone": (Bytes(breaks=MediaMissing("sha256:x")), (PERMANENT, DELIVERY, "media_missing_origin")),
    "unreadable": (Bytes(breaks=MediaUnreadable("the store is away")), (TRANSIENT, DELIVERY, "media_unreadable")),
    "longer than told": (Bytes(told=10), (TRANSIENT, DELIVERY, "media_unreadable")),
    "shorter than told": (Bytes(told=len(PICTURE) + 1), (TRANSIENT, DELIVERY, "media_unreadable")),
}


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("beside", [0, 2], ids=["alone", "in an album"])
async def test_bytes_that_cannot_be_had_are_certainly_not_sent(platform: Platform, how: str, beside: int) -> None:
    source, expected = BROKEN[how]
    adapter = platform.adapter

    answer: Any
    if adapter.uploads_apart:
        answer = await adapter.upload(ITEM, source, platform.target)
    else:
        items, media = (ITEM,) * (beside + 1), [*(Bytes() for _ in range(beside)), source]
        answer = await platform.send(MediaPart(media=items), media)

    assert isinstance(answer, Failed)
    assert (judged(answer), answer.ambiguous) == (expected, False)
    assert await platform.shown() == []


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("name", [name for name in PLATFORMS if name == "max"])
async def test_an_upload_posts_nothing_so_whatever_happens_to_it_is_certain(name: str, trouble: str) -> None:
    row = TROUBLES[trouble]
    async with PLATFORMS[name]() as platform:
        await platform.misbehave(**row.on(name))

        adapter = platform.impatient if row.slow else platform.adapter
        answer = await adapter.upload(ITEM, Bytes(), platform.target)

        assert isinstance(answer, Failed)
        assert agrees(judged(answer), row.expected)
        assert not answer.ambiguous
        assert await platform.shown() == []


async def test_a_platform_that_is_there_says_who_the_bot_is(platform: Platform) -> None:
    assert await platform.adapter.probe(platform.target.token, PATIENT) is None
    assert await platform.shown() == []


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_a_probe_tells_a_platform_that_is_away_from_one_that_answers(platform: Platform, trouble: str) -> None:
    row = TROUBLES[trouble]
    await platform.misbehave(**row.on(platform.name))

    failed = await platform.adapter.probe(platform.target.token, IMPATIENT if row.slow else PATIENT)

    assert failed is not None
    assert failed.answered == row.answered
    assert not failed.ambiguous
    assert platform.target.token.reveal() not in repr(failed)


async def test_a_probe_of_a_platform_that_cannot_be_reached_fails(platform: Platform) -> None:
    async with HttpClient() as client:
        failed = await adapter_at(client, platform.name, NOWHERE, PATIENT).probe(platform.target.token, PATIENT)

    assert failed is not None
    assert failed.is_silence


async def test_what_an_adapter_says_of_itself_is_true(platform: Platform) -> None:
    adapter: Adapter = platform.adapter
    identity = await adapter.identify(platform.target.token)

    assert adapter.platform == platform.name
    assert isinstance(identity, str)
    assert identity
    assert all(wait.total_seconds() > 0 for waits in adapter.patience.values() for wait in waits)
    if adapter.uploads_apart:
        assert isinstance(await adapter.upload(ITEM, Bytes(), platform.target), Held)


def profile(platform: str) -> Profile:
    return Profile(profile_hash="x", platform=platform)


@pytest.mark.parametrize("name", PLATFORMS)
async def test_a_post_is_compiled_and_sent_on_any_platform_by_the_same_steps(name: str) -> None:
    content = Content(
        type="media",
        text="hello",
        media=tuple(
            Medium(type="image", blob_ref=f"sha256:{n}", content_type="image/png", size=len(PICTURE)) for n in range(3)
        ),
        buttons=((Button("Go", "https://example.org/"),),),
    )
    known = {**COMPILERS, "board": compile_for_board}
    compiled = compile_content(content, Flags(), profile(name), known)
    assert compiled.plan is not None, compiled.problems

    async with PLATFORMS[name]() as platform:
        for part in compiled.plan.parts:
            answer = await platform.send(part, await platform.upload_media(*_items(part)))
            assert isinstance(answer, AcceptedPart), answer
        messages = await platform.shown()

    assert [one for message in messages for one in message["media"]] == [CHECKSUM] * 3
    assert messages[0]["text"] == "hello"


def _items(part: Part) -> Sequence[PlannedMedia]:
    return part.media if isinstance(part, MediaPart) else ()
