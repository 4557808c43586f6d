"""Draw architecture.png from architecture.svg: ``.venv/bin/python docs/architecture.py``, with Debian's chromium."""

import asyncio
from pathlib import Path

from playwright.async_api import async_playwright

HERE = Path(__file__).parent
CHROMIUM = "/usr/bin/chromium"


async def draw() -> None:
    async with (
        async_playwright() as playwright,
        await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]) as browser,
    ):
        page = await browser.new_page(viewport={"width": 1600, "height": 1010})
        await page.set_content(
            f"<style>body {{ margin: 0 }}</style>{(HERE / 'architecture.svg').read_text(encoding='utf-8')}"
        )
        await page.screenshot(path=HERE / "architecture.png")


if __name__ == "__main__":
    asyncio.run(draw())
