"""Draw the two pictures of the simulator's page: ``.venv/bin/python docs/screenshots.py``, with Debian's chromium."""

import asyncio
import json
import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from autopost_simulator import Simulator, listening
from playwright.async_api import Page, async_playwright

HERE = Path(__file__).parent
CHROMIUM = "/usr/bin/chromium"
TELEGRAM, MAX = "5001:demo-telegram", "demo-max"
NEWS, KITCHEN, CITY, GROUP = -1001000000001, -7001, -1001000000002, -1001000000003
ANNA = 7001


def landscape(dawn: tuple[int, int, int], hill: tuple[int, int, int], width: int = 480, height: int = 300) -> bytes:
    """A sky, a sun and a hill, as a PNG."""
    rows = b"".join(b"\0" + _row(y, width, height, dawn, hill) for y in range(height))
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in parts
    )


def _row(y: int, width: int, height: int, dawn: tuple[int, int, int], hill: tuple[int, int, int]) -> bytes:
    sky = bytes(int(c + (250 - c) * y / height) for c in dawn)
    line = bytearray()
    for x in range(width):
        if y > height * 0.72 - (x - width * 0.35) ** 2 / width * 0.55 + 26:
            line += bytes(hill)
        elif (x - width * 0.7) ** 2 + (y - height * 0.36) ** 2 < (height * 0.13) ** 2:
            line += b"\xff\xf4\xd0"
        else:
            line += sky
    return bytes(line)


class Scene:
    """What a morning in four chats looks like, told through the imitated APIs."""

    def __init__(self, base: str, http: aiohttp.ClientSession) -> None:
        self._base = base
        self._http = http

    async def play(self) -> None:
        await self._set()
        await self._kitchen()
        await self._group()
        await self._city()
        await self._news()
        await self._talk()
        await self._trouble()

    async def _set(self) -> None:
        tokens = [("telegram", TELEGRAM, "Courier"), ("max", MAX, "Kitchen bot")]
        chats = [
            ("telegram", NEWS, "channel", "Morning news", "morning_news"),
            ("telegram", GROUP, "supergroup", "Editors", None),
            ("max", KITCHEN, "channel", "Kitchen of the day", None),
            ("telegram", CITY, "channel", "City in pictures", "city_pictures"),
        ]
        await self.ask("/_sim/tokens", [_token(*token) for token in tokens])
        await self.ask("/_sim/chats", [_chat(*chat) for chat in chats])

    async def _news(self) -> None:
        await self.telegram(
            "sendMessage",
            chat_id=NEWS,
            parse_mode="HTML",
            text="<b>The bridge opens on Friday</b>\n\nAfter <i>fourteen</i> months the <u>eastern</u> bridge is back. "
            "Trams go first, <s>cars too</s> cars from Monday.\n<blockquote>It is worth the wait.</blockquote>"
            'All dates: <a href="https://example.org/bridge">example.org</a>, code <code>E-7</code>.',
            reply_markup={
                "inline_keyboard": [
                    [
                        {"text": "Timetable", "url": "https://example.org/trams"},
                        {"text": "Map", "url": "https://example.org/map"},
                    ],
                    [{"text": "Remind me", "callback_data": "remind"}],
                ]
            },
        )
        await self.telegram(
            "sendPhoto",
            chat_id=NEWS,
            parse_mode="HTML",
            caption="<b>Sunrise, 06:41.</b> Dry until noon, then wind.",
            photo=landscape((92, 141, 214), (44, 84, 96)),
        )

    async def _city(self) -> None:
        hills = [((226, 120, 90), (70, 50, 90)), ((90, 170, 190), (30, 90, 80)), ((150, 110, 200), (50, 40, 90))]
        media = [{"type": "photo", "media": f"attach://p{number}"} for number in range(3)]
        media[0] |= {"caption": "Three evenings above the river. #city", "parse_mode": "HTML"}
        pictures = {f"p{number}": landscape(*colours) for number, colours in enumerate(hills)}
        await self.telegram("sendMediaGroup", chat_id=CITY, media=media, **pictures)

    async def _kitchen(self) -> None:
        tokens = [
            await self._upload(landscape(*colours))
            for colours in (((235, 170, 90), (120, 60, 40)), ((120, 190, 120), (50, 90, 50)))
        ]
        keyboard = {"type": "inline_keyboard", "payload": {"buttons": [[_link("Recipe"), _link("Shop")]]}}
        await self.max(
            f"/messages?chat_id={KITCHEN}",
            {
                "text": "**Pumpkin soup** in ++twenty minutes++\nOne pumpkin, two onions, *a little* ginger.",
                "format": "markdown",
                "attachments": [*({"type": "image", "payload": {"token": token}} for token in tokens), keyboard],
            },
        )

    async def _group(self) -> None:
        await self.telegram(
            "sendDocument", chat_id=GROUP, caption="Plan for the week", document=b"%PDF-1.4 " + b"x" * 48_000
        )
        await self.telegram("sendMessage", chat_id=GROUP, text="<script>alert('text stays text')</script>")

    async def _talk(self) -> None:
        await self._as_anna("start", {"first_name": "Anna", "token": MAX})
        await self._as_anna("write", {"text": "Hello! What is for lunch?", "token": MAX})
        buttons = [
            [
                {"type": "callback", "text": "Soup", "payload": "soup"},
                {"type": "callback", "text": "Pie", "payload": "pie"},
            ]
        ]
        await self.max(
            f"/messages?user_id={ANNA}",
            {
                "text": "Today **two** dishes. Which one?",
                "format": "markdown",
                "attachments": [{"type": "inline_keyboard", "payload": {"buttons": buttons}}],
            },
        )
        await self._as_anna("write", {"text": "Soup, please", "token": MAX})
        await self.max(f"/messages?user_id={ANNA}", {"text": "It is ready in 20 minutes."})

    async def _trouble(self) -> None:
        await self.ask(
            "/_sim/faults", {"name": "flood", "effect": {"status": 429, "retry_after": 3}, "chat": NEWS, "times": 1}
        )
        await self.ask("/_sim/faults", {"name": "gateway", "effect": {"html": 502}, "platform": "max", "times": 1})
        await self.telegram("sendMessage", chat_id=NEWS, text="Trams on time this morning")
        await self.max(f"/messages?chat_id={KITCHEN}", {"text": "Second helping"})
        await self.telegram("sendMessage", chat_id=-1009, text="Is anybody there?")
        await self.telegram("sendMessage", chat_id=NEWS, text="Trams on time this morning")

    async def ask(self, path: str, body: Any, **headers: str) -> bytes:
        async with self._http.post(self._base + path, json=body, headers=headers) as response:
            return await response.read()

    async def max(self, path: str, body: Any) -> bytes:
        return await self.ask(f"/max{path}", body, Authorization=MAX)

    async def telegram(self, method: str, **params: Any) -> None:
        form = aiohttp.FormData(default_to_multipart=True)
        for name, value in params.items():
            if isinstance(value, bytes):
                form.add_field(name, value, filename="week.pdf" if name == "document" else f"{name}.png")
            else:
                form.add_field(name, value if isinstance(value, str) else json.dumps(value))
        async with self._http.post(f"{self._base}/bot{TELEGRAM}/{method}", data=form) as response:
            await response.read()

    async def _as_anna(self, deed: str, body: dict[str, Any]) -> None:
        await self.ask(f"/_sim/max/customers/{ANNA}/{deed}", body)

    async def _upload(self, picture: bytes) -> str:
        place = json.loads(await self.max("/uploads?type=image", None))["url"]
        form = aiohttp.FormData()
        form.add_field("data", picture, filename="dish.png", content_type="image/png")
        async with self._http.post(place, data=form) as response:
            photos = json.loads(await response.read())["photos"]
        return str(next(iter(photos.values()))["token"])


def _token(platform: str, token: str, name: str) -> dict[str, Any]:
    return {"platform": platform, "token": token, "name": name, "limits": []}


def _chat(platform: str, id_: int, type_: str, title: str, username: str | None) -> dict[str, Any]:
    named = {} if username is None else {"username": username}
    return {"platform": platform, "id": id_, "type": type_, "title": title, "limits": []} | named


def _link(text: str) -> dict[str, str]:
    return {"type": "link", "text": text, "url": "https://example.org/"}


@asynccontextmanager
async def opened(width: int, height: int) -> AsyncIterator[Page]:
    async with (
        listening(Simulator()) as base,
        aiohttp.ClientSession() as http,
        async_playwright() as playwright,
        await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]) as browser,
    ):
        await Scene(base, http).play()
        page = await browser.new_page(viewport={"width": width, "height": height})
        await page.goto(base)
        await page.get_by_text("Trams on time").first.wait_for()
        await page.wait_for_function("[...document.images].every(one => one.complete)")
        yield page


async def draw() -> None:
    async with opened(1280, 1000) as page:
        await page.screenshot(path=HERE / "simulator-desktop.png")
    async with opened(375, 812) as page:
        await page.screenshot(path=HERE / "simulator-phone.png")


if __name__ == "__main__":
    asyncio.run(draw())
