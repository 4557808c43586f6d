"""A post with media, as the readers of forty channels see it."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

import pytest
from autopost_cli.development import WORKSPACE
from autopost_runtime.storage.objects import Objects
from harness.eventually import eventually
from harness.telegram_media import png
from msgspec import Struct

from e2e.conftest import StartSystem
from e2e.system import System

PICTURE = png(40, 30)
VIDEO = b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom" + bytes(range(256)) * 64
DOCUMENT = b"%PDF-1.7\n" + b"price list\n" * 500
KINDS = {
    PICTURE: ("photo", "image/png", "picture.png"),
    VIDEO: ("video", "video/mp4", "video.mp4"),
    DOCUMENT: ("document", "application/pdf", "price.pdf"),
}
BUTTONS = [("Order", "https://shop.example/order"), ("Ask", "https://shop.example/ask")]
CHANNELS = 40
PLENTY = timedelta(seconds=60)


class Shown(Struct, frozen=True):
    """What a channel holds, whatever messages it is spread over."""

    words: str
    bold: list[str]
    checksums: list[str]
    buttons: list[list[tuple[str, str]]]


async def _shown(system: System, platform: str, chat: str) -> Shown:
    answer = await system.http.get(f"{system.places['simulator']}/_sim/chats/{platform}/{chat}/messages")
    messages = answer.json()["messages"]
    return Shown(
        words="".join(message["text"] or "" for message in messages),
        bold=[text for message in messages for text in _bold(message)],
        checksums=[digest for message in messages for digest in [d async for d in _checksums(system, message)]],
        buttons=[row for message in messages for row in _rows(message["buttons"])],
    )


async def _checksums(system: System, message: dict[str, Any]) -> AsyncIterator[str]:
    """Telegram's are kept beside the message; MAX leads to the bytes."""
    for medium in message["extra"].get("media", []):
        yield medium["sha256"]
    for attachment in message["extra"].get("attachments", []):
        answer = await system.http.get(attachment["payload"]["url"])
        yield sha256(answer.content).hexdigest()


def _bold(message: dict[str, Any]) -> Iterator[str]:
    """Each platform has its own names for it; the text is plain enough for either way of counting."""
    for span in message["markup"]:
        start = span["offset"] if "offset" in span else span["from"]
        if span["type"] in ("bold", "strong"):
            yield message["text"][start : start + span["length"]]


def _rows(buttons: Any) -> Iterator[list[tuple[str, str]]]:
    keyboards = [buttons["inline_keyboard"]] if isinstance(buttons, dict) else []
    if isinstance(buttons, list):
        keyboards = [keyboard["payload"]["buttons"] for keyboard in buttons]
    for keyboard in keyboards:
        for row in keyboard:
            yield [(button["text"], button["url"]) for button in row]


async def _channels(system: System) -> list[tuple[str, str]]:
    rows = await system.database.fetch(
        "SELECT platform, target_id FROM channels WHERE workspace_id = $1 AND enabled", UUID(WORKSPACE)
    )
    return [(row["platform"], row["target_id"]) for row in rows]


@pytest.mark.parametrize(
    ("contents", "telegram_adds"),
    [
        ((PICTURE, VIDEO), "👇"),  # an album takes no buttons there: they follow it, under words of their own
        ((DOCUMENT, PICTURE, VIDEO, PICTURE, DOCUMENT), ""),
    ],
    ids=["an album", "mixed media"],
)
async def test_every_channel_shows_the_text_the_media_in_order_and_the_buttons(
    start_system: StartSystem, objects: Objects, contents: tuple[bytes, ...], telegram_adds: str
) -> None:
    system = await start_system()
    media = [await system.store(objects, content, *KINDS[content]) for content in contents]

    answer = await system.post(
        text="Hello, **forty** channels",
        parse_mode="Markdown",
        media=media,
        buttons=[[{"text": text, "url": url} for text, url in BUTTONS]],
    )

    async def all_sent() -> bool:
        return await system.statuses() == {"sent": CHANNELS}

    assert answer.json()["channels"]["enqueued"] == CHANNELS
    await eventually(all_sent, within=PLENTY)
    shown = {channel: await _shown(system, *channel) for channel in await _channels(system)}
    assert len(shown) == CHANNELS
    for (platform, chat), seen in shown.items():
        assert seen == Shown(
            words="Hello, forty channels" + (telegram_adds if platform == "telegram" else ""),
            bold=["forty"],
            checksums=[sha256(content).hexdigest() for content in contents],
            buttons=[BUTTONS],
        ), (platform, chat)
