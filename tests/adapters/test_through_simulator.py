"""Whatever the post and however narrow the limits: its plan is accepted part by part, and the chat shows the post."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from itertools import count
from typing import Any

import pytest
from autopost_adapters.base import AcceptedPart, Material, Target
from autopost_adapters.max.compile import compile_content as compile_for_max
from autopost_adapters.max.limits import LIMITS as MAX
from autopost_adapters.planning.limits import Limits
from autopost_adapters.telegram.compile import compile_content as compile_for_telegram
from autopost_adapters.telegram.limits import LIMITS as TELEGRAM
from autopost_contracts.plan import MediaPart, Plan, PlannedMedia, Profile
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from adapters.conftest import Simulated, simulated
from adapters.random_posts import Look, Post, any_settings, entities_of, posts, squeezed

COMMON: list[Look] = ["bold", "italic", "underline", "strike"]
TELEGRAM_LOOKS = {
    "bold": "bold",
    "italic": "italic",
    "underline": "underline",
    "strikethrough": "strike",
    "spoiler": "spoiler",
    "code": "code",
    "text_link": "link",
}
CUT_BY_TELEGRAM = ("bold", "italic", "underline", "strikethrough", "spoiler")
FOUND_BY_TELEGRAM = ("mention", "hashtag", "cashtag", "bot_command", "url", "email")
MAX_LOOKS = {
    "strong": "bold",
    "emphasized": "italic",
    "underline": "underline",
    "strikethrough": "strike",
    "highlighted": "highlight",
    "monospaced": "code",
    "link": "link",
}

through = settings(max_examples=150, deadline=None)
numbers = count(1)


class Stage:
    """A simulator that stays for all examples of a test; each has a chat of its own."""

    def __init__(self, name: str, runner: asyncio.Runner, running: Simulated) -> None:
        self.name = name
        self._runner = runner
        self._running = running
        self._chat = 0

    def perform(self, plan: Plan, post: Post) -> list[dict[str, Any]]:
        """What the chat shows when all of the plan was sent, oldest first."""
        return self._runner.run(self._perform(plan, post))

    async def _perform(self, plan: Plan, post: Post) -> list[dict[str, Any]]:
        running = self._running
        self._chat = -1_001_000_000_000 - next(numbers)
        chat = {"platform": self.name, "id": self._chat, "type": "channel", "limits": []}
        (await running.http.post(f"{running.url}/_sim/chats", json=chat)).raise_for_status()
        target = Target(chat=str(self._chat), token=running.target.token)
        sources = {f"sha256:{one.sha256}": one.source for one in post.media}
        for part in plan.parts:
            items = part.media if isinstance(part, MediaPart) else ()
            media = await self._media(items, [sources[item.blob_ref or ""] for item in items])
            answer = await running.adapter.send(part, target, media)
            assert isinstance(answer, AcceptedPart), answer
        shown = await running.http.get(f"{running.url}/_sim/chats/{self.name}/{self._chat}/messages")
        messages: list[dict[str, Any]] = shown.json()["messages"]
        return messages

    async def _media(self, items: Sequence[PlannedMedia], sources: Sequence[Any]) -> list[Material]:
        return await self._running.upload_media(*items, sources=sources) if items else []

    def checksums(self, messages: list[dict[str, Any]]) -> list[str]:
        return self._runner.run(self._checksums(messages))

    async def _checksums(self, messages: list[dict[str, Any]]) -> list[str]:
        return [one for message in messages for one in await self._running.media(message["extra"])]


@pytest.fixture
def stages() -> Iterator[dict[str, Stage]]:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        made = {
            name: Stage(name, runner, runner.run(stack.enter_async_context(simulated(name))))
            for name in ("telegram", "max")
        }
        yield made
        runner.run(stack.aclose())


def narrowed(limits: Limits) -> st.SearchStrategy[Limits]:
    """As they are, or far less: of a text, a caption, an album, a picture."""
    return st.builds(
        lambda text, caption, album, picture: replace(
            limits,
            text=replace(limits.text, text=text, caption=min(caption, text)),
            album=replace(limits.album, size=album),
            picture=replace(limits.picture, size=picture),
        ),
        st.sampled_from([limits.text.text, 400, 160, 90]),
        st.sampled_from([limits.text.caption, 120, 30, 1]),
        st.sampled_from([limits.album.size, 4, 2, 1]),
        st.sampled_from([limits.picture.size, 100]),
    )


def seen(message: dict[str, Any]) -> str:
    return str(message["text"] or "")


def covered(message: dict[str, Any], entity: dict[str, Any]) -> str:
    """Positions are UTF-16 units on both platforms."""
    start = entity.get("offset", entity.get("from", 0))
    units = seen(message).encode("utf-16-le")
    return units[2 * start : 2 * (start + entity["length"])].decode("utf-16-le")


def entities_shown(messages: list[dict[str, Any]], looks: dict[str, str]) -> Counter[tuple[str, str, str]]:
    """Of the entities only those of the author: Telegram also finds tags and addresses."""
    return Counter(
        (looks[entity["type"]], covered(message, entity), entity.get("url", ""))
        for message in messages
        for entity in rejoined(message["markup"])
        if entity["type"] not in FOUND_BY_TELEGRAM
    )


def rejoined(markup: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Telegram cuts bold and its like where another entity begins or ends."""
    whole: list[dict[str, Any]] = []
    for entity in markup:
        before = [one for one in whole if one["type"] == entity["type"] and "offset" in one]
        before = before if entity["type"] in CUT_BY_TELEGRAM else []
        if before and before[-1]["offset"] + before[-1]["length"] == entity["offset"]:
            before[-1]["length"] += entity["length"]
        else:
            whole.append(dict(entity))
    return whole


def buttons_shown(messages: list[dict[str, Any]]) -> list[list[tuple[str, str]]]:
    rows: list[list[dict[str, str]]] = []
    for message in messages:
        given = message["buttons"] or {}
        rows += given["inline_keyboard"] if isinstance(given, dict) and given else []
        rows += given[0]["payload"]["buttons"] if isinstance(given, list) and given else []
    return [[(button["text"], button["url"]) for button in row] for row in rows]


def judge(stage: Stage, plan: Plan, post: Post, looks: dict[str, str], *, cut_off: bool) -> list[dict[str, Any]]:
    messages = stage.perform(plan, post)

    assert stage.checksums(messages) == [one.sha256 for one in post.media]
    assert buttons_shown(messages) == [[(button.text, button.url) for button in row] for row in post.buttons]
    whole = squeezed("".join(map(seen, messages))).replace("⟦buttons⟧", "")
    if cut_off:
        assert all(one.spans[0].words in whole for one in post.written)
        return messages
    assert all(squeezed(one.seen) in whole for one in post.written)
    assert len(whole) == sum(len(squeezed(one.seen)) for one in post.written)
    assert entities_shown(messages, looks) == Counter(entities_of(post))
    return messages


EXPECTED_PROBLEMS = {"message_too_long", "too_much_markup"}


def test_what_is_posted_to_telegram_is_what_its_readers_see(stages: dict[str, Stage]) -> None:
    @through
    @given(posts(*COMMON, "spoiler"), narrowed(TELEGRAM), any_settings())
    def example(post: Post, limits: Limits, chosen: dict[str, Any]) -> None:
        profile = Profile(profile_hash="x", platform="telegram", settings=chosen)
        compiled = compile_for_telegram(post.content(), post.flags, profile, limits)
        if compiled.plan is None:
            assert {problem.code for problem in compiled.problems} <= EXPECTED_PROBLEMS
            return

        messages = judge(
            stages["telegram"], compiled.plan, post, TELEGRAM_LOOKS, cut_off=chosen["overflow"] == "truncate"
        )

        protected = [message["extra"].get("has_protected_content", False) for message in messages]
        assert set(protected) == {chosen.get("protect", False)}
        texts = [message["extra"] for message in messages if "media" not in message["extra"]]
        disabled = [extra.get("link_preview_options", {}).get("is_disabled", False) for extra in texts]
        assert set(disabled) <= {post.flags.disable_preview}

    example()


def test_what_is_posted_to_max_is_what_its_readers_see(stages: dict[str, Stage]) -> None:
    @through
    @given(posts(*COMMON, "highlight"), narrowed(MAX), any_settings())
    def example(post: Post, limits: Limits, chosen: dict[str, Any]) -> None:
        profile = Profile(profile_hash="x", platform="max", settings=chosen)
        compiled = compile_for_max(post.content(), post.flags, profile, limits)
        if compiled.plan is None:
            assert {problem.code for problem in compiled.problems} <= EXPECTED_PROBLEMS
            return

        judge(stages["max"], compiled.plan, post, MAX_LOOKS, cut_off=chosen["overflow"] == "truncate")

    example()
