"""Debian's chromium, where there is one. On CI there must be one: a page that nobody opened is not tested."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright, expect

MISSING = "no chromium to open the page with; on Debian: apt-get install chromium"
PATIENCE = 20_000


def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.fail(MISSING) if os.environ.get("CI") == "true" else pytest.skip(MISSING)
    return found


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    path = chromium()
    expect.set_options(timeout=PATIENCE)
    async with (
        async_playwright() as playwright,
        await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"]) as browser,
    ):
        yield browser


@asynccontextmanager
async def opened(browser: Browser, url: str, *, width: int = 1280, height: int = 900) -> AsyncIterator[Page]:
    """The page, which must not complain: a refused script or picture is an error of its own, an answer 400 is not."""
    complaints: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error" and "status of 400" not in message.text:
            complaints.append(message.text)

    page = await browser.new_page(viewport={"width": width, "height": height})
    page.set_default_timeout(PATIENCE)
    page.on("console", note)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    await page.goto(url)
    yield page
    await page.close()
    assert complaints == [], complaints
