"""What authors mean, adapters send and simulators show, compared by readers that share no code with them.

The sizes: 2,000 posts per platform and format with ``AUTOPOST_FULL=1``. A miss is named by its seed.
"""

import ast
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any

import msgspec
import pytest
from autopost_adapters.base import AcceptedPart, Adapter, Target
from autopost_adapters.compilers import COMPILERS
from autopost_contracts.payload import PostRequest
from autopost_contracts.plan import Profile
from autopost_ingest.posts.normalize import normalize
from autopost_runtime.http.client import HttpAnswer, HttpClient
from harness.full import FULL

from adapters import readers
from adapters.conftest import PATIENT, adapter_at, simulated
from adapters.readers import addresses, markdown, max_html, telegram_html
from adapters.readers.authors import Post, long_post, post, without_languages
from adapters.readers.entities import SPLITTABLE, Entity, Read, shown

POSTS, LONG_POSTS = (2_000, 200) if FULL else (150, 5)


def imported(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            yield f"{node.module}."
        elif isinstance(node, ast.Import):
            yield from (f"{alias.name}." for alias in node.names)


def test_the_readers_share_no_code_with_what_they_judge() -> None:
    own = ("adapters.readers.", "markdown_it.", *(f"{name}." for name in sys.stdlib_module_names))

    for path in Path(readers.__file__).parent.glob("*.py"):
        assert [name for name in imported(path.read_text()) if not name.startswith(own)] == [], path.name


class Recorder:
    """Passes calls on; keeps the last body and its answer."""

    def __init__(self, http: HttpClient) -> None:
        self._http = http
        self.sent: dict[str, Any] = {}
        self.answered: Any = None

    async def request(self, *given: Any, **options: Any) -> HttpAnswer:
        self.sent = options["json"]
        answer = await self._http.request(*given, **options)
        self.answered = msgspec.json.decode(answer.body)
        return answer


class Unsent(Exception):  # noqa: N818  named for what happened
    """Refused by us or by the simulator."""


class Way:
    """From a post to what a platform is sent, through everything that may change its text."""

    def __init__(self, target: Target, adapter: Adapter, recorder: Recorder) -> None:
        self.platform = adapter.platform
        self.recorder = recorder
        self._compile = COMPILERS[adapter.platform]
        self._target = target
        self._adapter = adapter

    async def send(self, written: Post, **settings: Any) -> list[Read]:
        """One for each message."""
        normalized = normalize(PostRequest(text=written.source, parse_mode=written.mode))
        profile = Profile(profile_hash="x", platform=self.platform, settings=settings)
        compiled = self._compile(normalized.content, normalized.flags, profile)
        if compiled.plan is None:
            raise Unsent(compiled.problems)
        messages = []
        for part in compiled.plan.parts:
            answer = await self._adapter.send(part, self._target)
            if not isinstance(answer, AcceptedPart):
                raise Unsent(answer)
            messages.append(self.read(self.recorder.sent))
        return messages

    def as_shown(self, read: Read) -> Read:
        return read if self.platform == "telegram" else as_max_shows(read)

    def read(self, body: dict[str, Any]) -> Read:
        return read_telegram(body) if self.platform == "telegram" else read_max(body)


def read_telegram(body: dict[str, Any]) -> Read:
    if "parse_mode" not in body:
        return shown(body["text"], [])
    assert body["parse_mode"] == "HTML"
    return telegram_html.read(body["text"])


def read_max(body: dict[str, Any]) -> Read:
    if "format" not in body:
        return Read(body["text"])
    return {"html": max_html, "markdown": markdown}[body["format"]].read(body["text"])


@pytest.fixture(params=["telegram", "max"])
async def way(request: pytest.FixtureRequest) -> AsyncIterator[Way]:
    async with simulated(request.param) as running, HttpClient() as client:
        recorder = Recorder(client)
        yield Way(running.target, adapter_at(recorder, running.name, running.url, PATIENT), recorder)


TELEGRAM_VALUES = ("url", "language", "custom_emoji_id", "unix_time")
AUTOMATIC = {"url", "hashtag", "mention", "email", "bot_command", "cashtag", "phone_number", "bank_card"}
MAX_KINDS = {
    "strong": "bold",
    "emphasized": "italic",
    "underline": "underline",
    "strikethrough": "strikethrough",
    "highlighted": "highlight",
    "monospaced": "code",
    "link": "text_link",
    "quote": "blockquote",
}


def read_answer(platform: str, answered: dict[str, Any]) -> Read:
    """What the simulator shows, in the words of the readers; what it marks by itself is left out."""
    if platform == "telegram":
        message = answered["result"]
        entities = [
            (
                one["type"],
                one["offset"],
                one["length"],
                next((one[name] for name in TELEGRAM_VALUES if name in one), ""),
            )
            for one in message.get("entities", [])
            if one["type"] not in AUTOMATIC
        ]
    else:
        message = answered["message"]["body"]
        entities = [
            (MAX_KINDS[one["type"]], one["from"], one["length"], one.get("url", ""))
            for one in message.get("markup") or []
        ]
    units = message["text"].encode("utf-16-le")
    at = {end: len(units[: 2 * end].decode("utf-16-le", "ignore")) for end in range(len(units) // 2 + 1)}
    return Read(
        message["text"],
        tuple(Entity(kind, at[start], at[start + size], value) for kind, start, size, value in entities),
    )


def as_max_shows(read: Read) -> Read:
    """A code block and inline code look the same."""
    kept = (replace(one, kind="code", value="") if one.kind == "pre" else one for one in read.entities)
    return Read(read.text, tuple(kept))


def difference(meant: Read, seen: Read) -> str:
    """Empty when a reader cannot tell them apart: bold in two pieces is bold, and a bold space is a space."""
    if meant.text != seen.text:
        return f"meant {meant.text!r}\nread  {seen.text!r}"
    ours, theirs = look(meant), look(seen)
    return "" if ours == theirs else f"only meant {sorted(ours - theirs)}\nonly read  {sorted(theirs - ours)}"


def look(read: Read) -> set[tuple[int, str, str]]:
    """Each entity where it stands; the light ones on each visible character."""
    found = {
        (one.start, one.kind, f"{spelled(one)} {read.text[one.start : one.end].rstrip()}")
        for one in read.entities
        if one.kind not in SPLITTABLE
    }
    return found | {
        (position, one.kind, read.text[position])
        for one in read.entities
        if one.kind in SPLITTABLE
        for position in range(one.start, one.end)
        if not read.text[position].isspace()
    }


def spelled(one: Entity) -> str:
    """One address has several spellings."""
    return addresses.link(one.value) or one.value if one.kind == "text_link" else one.value


@pytest.mark.time_limit(900)
@pytest.mark.parametrize("mode", ["HTML", "Markdown", None])
async def test_a_post_arrives_as_its_author_means_it(way: Way, mode: str | None) -> None:
    misses = []
    for seed in range(POSTS):
        written = post(way.platform, mode, seed)
        meant = written.meant if way.platform == "telegram" else without_languages(written.meant)
        try:
            (read,) = await way.send(written)
            assert not written.reveals, f"{seed}: {written.source!r}"
        except Unsent as unsent:
            if not written.reveals:
                misses.append(f"{seed}: {unsent}\n{written.source!r}")
            continue
        if found := difference(meant, shown(read.text, read.entities)):
            misses.append(f"{seed}: {written.source!r}\nsent  {way.recorder.sent['text']!r}\n{found}")
        elif found := difference(way.as_shown(read), read_answer(way.platform, way.recorder.answered)):
            misses.append(f"{seed}: {written.source!r}\nthe simulator of {way.recorder.sent['text']!r}\n{found}")

    assert not misses, "\n\n".join([f"{len(misses)} of {POSTS}", *misses])


def characters(reads: Iterable[Read]) -> list[tuple[str, frozenset[tuple[str, str]]]]:
    """Each visible character with all that it is under; spaces and borders between messages do not count."""
    found = []
    for read in reads:
        borders = sorted({0, len(read.text), *(edge for one in read.entities for edge in (one.start, one.end))})
        for start, end in pairwise(borders):
            over = frozenset((one.kind, spelled(one)) for one in read.entities if one.start <= start and end <= one.end)
            found += [(letter, over) for letter in read.text[start:end] if not letter.isspace()]
    return found


@pytest.mark.time_limit(900)
@pytest.mark.parametrize("mode", ["HTML", "Markdown", None])
async def test_the_pieces_of_a_long_post_together_are_what_its_author_means(way: Way, mode: str | None) -> None:
    misses = []
    for seed in range(LONG_POSTS):
        written = long_post(way.platform, mode, seed)
        meant = written.meant if way.platform == "telegram" else without_languages(written.meant)
        try:
            reads = await way.send(written, overflow="split")
        except Unsent as unsent:
            misses.append(f"{seed}: {unsent}\n{written.source[:300]!r}")
            continue
        assert len(reads) > 1
        ours, theirs = characters([meant]), characters([shown(read.text, read.entities) for read in reads])
        if ours != theirs:
            at = next(at for at, pair in enumerate(zip_longest(ours, theirs)) if len(set(pair)) > 1)
            misses.append(
                f"{seed}: {len(reads)} messages\nmeant {ours[at - 3 : at + 2]}\nread  {theirs[at - 3 : at + 2]}"
            )

    assert not misses, "\n\n".join([f"{len(misses)} of {LONG_POSTS}", *misses])
