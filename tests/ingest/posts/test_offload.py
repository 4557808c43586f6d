"""Large posts are worked on in other processes, with the same result; small ones stay where they are."""

import json
import sys
import unicodedata
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import timedelta
from time import process_time
from typing import Any, TypeVar
from uuid import UUID

import msgspec
import pytest
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.payload import MediaItem, ParseMode, PostButton, PostRequest
from autopost_contracts.plan import Profile
from autopost_ingest.errors import InvalidPost
from autopost_ingest.posts.compile import compile_for
from autopost_ingest.posts.normalize import normalize
from autopost_ingest.posts.offload import SMALL_BODY, SMALL_TEXT, Offload
from autopost_ingest.posts.text_limits import LONGEST_TEXT, MOST_MARKS
from autopost_runtime.http.web import HttpProblem
from autopost_runtime.workers.worker_process import WorkerProcesses
from harness.hostile_texts import HTML, MARKDOWN, PLAIN
from ingest.support.loop_probe import probed

WORKSPACE = WorkspaceId(UUID(int=1))
PROFILES = tuple(
    Profile(
        profile_hash=f"{platform} {overflow}", platform=platform, settings={"overflow": overflow, "on_markup": "plain"}
    )
    for platform in ("telegram", "max")
    for overflow in ("split", "truncate", "fail")
)
TEMPLATE = Profile(
    profile_hash="template", platform="telegram", template_ref="t", template_version=3, template_body="{{ text }}!"
)
FOXES = "https://a.example/" + "🦊" * 500
POSTS = {
    "text": PostRequest(text=PLAIN["sentences"](20_000), tags=("b", "a"), meta={"n": 1.5}, silent=True),
    "HTML": PostRequest(text=HTML["many looks around code"](20_000), parse_mode="HTML"),
    "Markdown": PostRequest(text=MARKDOWN["bold words"](20_000), parse_mode="Markdown", links=("https://a.example/",)),
    "captions": PostRequest(
        media=tuple(MediaItem("photo", file_id=str(n), caption="<b>caption</b> " * 300) for n in range(9)),
        parse_mode="HTML",
    ),
    "addresses that grow": PostRequest(text="a" * 9_000, links=tuple(f"{FOXES}{number}" for number in range(20))),
    "buttons without words": PostRequest(text="a" * 9_000, buttons=(PostButton(" ", "https://a.example"),)),
}

Argument = TypeVar("Argument")
Result = TypeVar("Result")


class Counting(WorkerProcesses):
    calls = 0

    async def run(self, function: Callable[[Argument], Result], argument: Argument, **options: Any) -> Result:
        self.calls += 1
        return await super().run(function, argument, **options)


@pytest.fixture
async def workers() -> AsyncIterator[Counting]:
    async with Counting() as running:
        yield running


@pytest.mark.parametrize("name", POSTS)
async def test_a_large_post_becomes_in_a_worker_what_it_would_become_here(workers: Counting, name: str) -> None:
    here = normalize(POSTS[name])

    normalized = await Offload(workers).normalize(WORKSPACE, POSTS[name])
    rendered = await Offload(workers).render(WORKSPACE, normalized, (*PROFILES, TEMPLATE))
    plans = await Offload(workers).compile(WORKSPACE, normalized, (*PROFILES, TEMPLATE))

    assert normalized == here
    assert msgspec.json.encode(rendered) == msgspec.json.encode(compile_for(here, (*PROFILES, TEMPLATE)))
    assert plans == await Offload().compile(WORKSPACE, here, (*PROFILES, TEMPLATE))
    assert workers.calls


@pytest.mark.parametrize("value", ["[]", "[[]]", "0", "{}", '[""]'])
async def test_a_short_body_of_many_values_is_read_in_a_worker(workers: Counting, value: str) -> None:
    body = b'{"text": "a", "meta": {"a": [%s]}}' % ",".join([value] * 4_500).encode()
    assert len(body) < SMALL_BODY

    await Offload(workers).read_post(WORKSPACE, body)
    await Offload(workers).read_update(WORKSPACE, body)

    assert workers.calls == 2


@pytest.mark.parametrize(
    ("parse_mode", "text"), [("Markdown", "*_" * 900), ("Markdown", "`a" * 900), ("HTML", "<b>a</b>" * 240)]
)
async def test_a_short_post_of_nothing_but_markup_is_compiled_in_a_worker(
    workers: Counting, parse_mode: ParseMode, text: str
) -> None:
    normalized = normalize(PostRequest(text=text, parse_mode=parse_mode))

    await Offload(workers).render(WORKSPACE, normalized, PROFILES[:1])

    assert workers.calls == 1


async def test_an_ordinary_post_needs_no_worker(workers: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autopost_ingest.posts.offload.INLINE", 10.0)  # its size decides, not a busy machine
    offload = Offload(workers)
    body = json.dumps({"text": "**ordinary** " * 50, "parse_mode": "Markdown", "links": ["https://a.example"]}).encode()

    normalized = await offload.normalize(WORKSPACE, await offload.read_post(WORKSPACE, body))
    rendered = await offload.render(WORKSPACE, normalized, PROFILES[:2])

    assert len(rendered) == 2
    assert workers.calls == 0


BUDGET = timedelta(milliseconds=50)
"""For one turn of the loop."""
ODD = ("Cc", "Cf", "Zs", "Zl", "Zp", "Mn", "Mc", "Me")
CHARACTERS = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) in ODD]
"""Every control, format, space and mark character."""


def full_of(character: str, size: int) -> str:
    """As many as a text may have: more than 30 marks in a row are refused at once."""
    unit = f"a{character * MOST_MARKS}" if unicodedata.category(character).startswith("M") else character
    return unit * (size // len(unit))


@pytest.mark.parametrize(("parse_mode", "code"), [("HTML", "<code>"), ("Markdown", "`"), (None, "")])
def test_no_character_makes_a_small_text_slow_to_normalize(parse_mode: ParseMode | None, code: str) -> None:
    slow = {}
    for character in CHARACTERS:
        request = PostRequest(text=full_of(character, SMALL_TEXT - len(code)) + code, parse_mode=parse_mode)
        used = seconds_of(request)
        if used > BUDGET.total_seconds() / 2:  # perhaps by chance
            used = min(used, *(seconds_of(request) for _ in range(3)))
        if used > BUDGET.total_seconds() / 2:
            slow[hex(ord(character))] = used

    assert slow == {}


def seconds_of(request: PostRequest) -> float:
    begun = process_time()
    with suppress(InvalidPost):
        normalize(request)
    return process_time() - begun


@pytest.mark.parametrize("parse_mode", ["HTML", "Markdown", None])
async def test_a_long_text_of_one_character_does_not_hold_the_loop(
    workers: Counting, parse_mode: ParseMode | None
) -> None:
    held = {}
    async with probed() as probe:
        for character in ("\r", "\n", "\t", " ", "\0", "\x85", "\u2028", "\u0f73", "\U0001d163"):
            for end in ("", "`", "</code>"):
                request = PostRequest(text=full_of(character, LONGEST_TEXT - len(end)) + end, parse_mode=parse_mode)
                await probe.turn()
                probe.longest = 0.0
                with suppress(InvalidPost):
                    await Offload(workers).normalize(WORKSPACE, request)
                await probe.turn()
                held[character, end] = probe.longest

    assert {name: longest for name, longest in held.items() if longest > BUDGET.total_seconds()} == {}


async def test_a_template_is_filled_in_a_worker(workers: Counting) -> None:
    rendered = await Offload(workers).render(WORKSPACE, normalize(PostRequest(text="a")), (*PROFILES, TEMPLATE))

    assert (len(rendered), workers.calls) == (len(PROFILES) + 1, 1)


async def test_what_takes_too_long_is_refused_in_words_and_the_next_post_is_not() -> None:
    bomb = normalize(PostRequest(text=MARKDOWN["stars and a letter"](65_536), parse_mode="Markdown"))
    large = normalize(PostRequest(text="a " * 4_500))

    async with Counting(cpu=timedelta(milliseconds=50)) as impatient:
        with pytest.raises(InvalidPost, match="takes too long"):
            await Offload(impatient).render(WORKSPACE, bomb, PROFILES)

        assert await Offload(impatient).render(WORKSPACE, large, PROFILES[2:3])
    assert impatient.calls == 2


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"text": "x" * 70_000, "meta": {"a": 1}, "scheduled_for": "2030-01-01T00:00:00Z"}),
        json.dumps({"text": "x" * 70_000, "unknown": 1}),
        json.dumps({"text": "x" * 70_000, "scheduled_for": "1999-01-01T00:00:00Z"}),
        '{"text": "' + "x" * 70_000,
        "[" * 70_000,
    ],
)
async def test_a_large_body_is_read_or_refused_as_a_small_one(workers: Counting, body: str) -> None:
    async def outcome(offload: Offload) -> object:
        try:
            return await offload.read_post(WORKSPACE, body.encode())
        except HttpProblem as exc:
            return exc.status, exc.title, exc.detail, exc.field
        except InvalidPost as exc:
            return exc.field, exc.reason

    assert await outcome(Offload(workers)) == await outcome(Offload())
    assert workers.calls == 1


async def test_a_large_update_is_read_as_a_small_one(workers: Counting) -> None:
    body = json.dumps({"update_type": "message_created", "message": {"body": {"mid": "m", "text": "x" * 70_000}}})

    far = await Offload(workers).read_update(WORKSPACE, body.encode())
    here = await Offload().read_update(WORKSPACE, body.encode())

    assert msgspec.json.encode(far) == msgspec.json.encode(here)
    assert workers.calls == 1
