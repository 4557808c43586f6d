"""The page in a real browser: it fills while you look, faults can be switched from it, and text stays text."""

import struct
import zlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest
from harness.browser import browsing, opened
from harness.eventually import eventually
from playwright.async_api import Browser, Locator, Page, expect

CHANNEL, MAX_CHANNEL = -1001000000001, -7001
TOKEN = "1001:telegram-token"
CUT_OFF = """
[...document.querySelectorAll(".card, .posts, .talk, .post, .turn, .call, #active li")]
    .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.className)
"""


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with browsing() as browser:
        yield browser


@pytest.fixture
async def page(browser: Browser, client: Any) -> AsyncIterator[Page]:
    async with opened(browser, client.base) as page:
        await expect(page.locator("#state")).to_contain_text("live")
        yield page


def picture(width: int = 40, height: int = 30) -> bytes:
    rows = (b"\0" + b"\x30\x80\xd0" * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


async def upload(client: Any, method: str, fields: dict[str, Any], **files: bytes) -> None:
    form = aiohttp.FormData(default_to_multipart=True)
    for name, value in fields.items():
        form.add_field(name, value if isinstance(value, str) else msgspec.json.encode(value).decode())
    for name, content in files.items():
        form.add_field(name, content, filename=f"{name}.png")
    answer = await client.ask("POST", f"/bot{TOKEN}/{method}", data=form)
    assert answer.status == 200, answer.body


async def max_picture(client: Any) -> dict[str, Any]:
    place = (await client.max("POST", "/uploads?type=image")).body["url"]
    form = aiohttp.FormData()
    form.add_field("data", picture(), filename="a.png", content_type="image/png")
    async with client.session.post(place, data=form) as response:
        photos = msgspec.json.decode(await response.read())["photos"]
    return {"type": "image", "payload": {"token": next(iter(photos.values()))["token"]}}


def feed(page: Page, platform: str = "telegram", chat: int = CHANNEL) -> Locator:
    return page.locator(f'[data-chat="{platform}/{chat}"]')


async def seen(pictures: Locator, count: int) -> None:
    """Not only named in the page: fetched, read and drawn."""
    await expect(pictures).to_have_count(count)
    for number in range(count):
        one = pictures.nth(number)
        await one.scroll_into_view_if_needed()
        await eventually(lambda one=one: one.evaluate("image => image.complete && image.naturalWidth > 0"))


async def test_a_formatted_post_appears_while_you_look(page, client):
    text = 'A <b>bold <i>and italic</i></b> word 🙂, a <a href="https://example.org/">link</a>, <code>x = 1</code>'
    buttons = [[{"text": "Read more", "url": "https://example.org/more"}, {"text": "Like", "callback_data": "like"}]]

    await client.send(text, parse_mode="HTML", reply_markup={"inline_keyboard": buttons})

    post = feed(page).locator(".post")
    await expect(post.locator(".text")).to_have_text("A bold and italic word 🙂, a link, x = 1")
    await expect(post.locator("b")).to_have_text(["bold ", "and italic"])
    await expect(post.locator("b i")).to_have_text("and italic")
    await expect(post.locator(".text a")).to_have_attribute("href", "https://example.org/")
    await expect(post.locator("code")).to_have_text("x = 1")
    await expect(post.locator(".button")).to_have_text(["Read more", "Like"])


async def test_pictures_albums_and_documents_are_seen(page, client):
    album = [
        {"type": "photo", "media": f"attach://p{number}", "caption": "Three" * (not number)} for number in range(3)
    ]
    await upload(client, "sendPhoto", {"chat_id": CHANNEL, "caption": "One"}, photo=picture())
    await upload(
        client, "sendMediaGroup", {"chat_id": CHANNEL, "media": album}, p0=picture(), p1=picture(41), p2=picture(42)
    )
    await upload(client, "sendDocument", {"chat_id": CHANNEL, "caption": "Paper"}, document=b"%PDF-1.4")

    await expect(feed(page).locator(".post .text")).to_have_text(["Paper", "Three", "One"])
    await seen(feed(page).locator(".single img"), 1)
    await seen(feed(page).locator(".album img"), 3)
    await expect(feed(page).locator("a.document")).to_contain_text("document.png")


async def test_a_max_post_is_shown_with_its_markup_pictures_and_buttons(page, client):
    keyboard = {
        "type": "inline_keyboard",
        "payload": {"buttons": [[{"type": "link", "text": "Go", "url": "https://example.org/"}]]},
    }
    pictures = [await max_picture(client), await max_picture(client)]

    await client.post("**Bold** and *slanted*", format="markdown", attachments=[*pictures, keyboard])

    post = feed(page, "max", MAX_CHANNEL).locator(".post")
    await expect(post.locator("b")).to_have_text("Bold")
    await expect(post.locator("i")).to_have_text("slanted")
    await expect(post.locator("a.button")).to_have_attribute("href", "https://example.org/")
    await seen(post.locator(".album img"), 2)


async def test_a_fault_is_switched_on_and_off_from_the_page(page, client):
    await page.locator("#effect").select_option("502 with an HTML page")
    await page.get_by_role("button", name="Switch on").click()
    await expect(page.locator("#active li")).to_contain_text("502 with an HTML page")

    struck = await client.send("spoiled")
    marked = page.locator(".call.struck")

    assert struck.status == 502
    await expect(marked.locator(".pill")).to_have_text("faulted 502")
    await expect(marked.locator(".fault")).to_have_text("fault: fault-1")
    await expect(page.locator("#active li")).to_contain_text("struck 1")

    await page.get_by_role("button", name="Switch off").click()
    await expect(page.locator("#active li")).to_have_count(0)

    assert (await client.send("fine")).status == 200
    await expect(page.locator(".call").first).to_contain_text("accepted 200")
    await expect(page.locator(".call").first).not_to_contain_text("fault")


async def test_a_refusal_is_chosen_for_one_chat_and_one_call(page, client):
    await page.locator("#effect").select_option("telegram.bot_was_kicked")
    await page.locator("#place").select_option(f'{{"platform":"telegram","chat":"{CHANNEL}"}}')
    await page.get_by_label("Which calls").select_option("the next call")
    await page.get_by_role("button", name="Switch on").click()
    await expect(page.locator("#active li")).to_have_count(1)

    answers = [await client.post(), await client.send(), await client.send()]

    assert [answer.status for answer in answers] == [200, 403, 200]
    await expect(page.locator(".call .error")).to_have_text("Forbidden: bot was kicked from the channel chat")


async def test_what_a_simulator_refuses_is_explained_on_the_page(page, client):
    await page.locator("#effect").evaluate("select => { select.options[0].value = '{\"status\": 200}'; }")
    await page.get_by_role("button", name="Switch on").click()

    await expect(page.locator("#fault-problem")).to_contain_text("$.effect.status")


async def test_whatever_is_posted_stays_text(page, client):
    evil = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>"
    await client.control("chats", {"platform": "telegram", "id": CHANNEL, "title": f"T{evil}"})
    await client.control("faults", {"name": f"F{evil}", "effect": {"status": 500, "description": f"D{evil}"}, "nth": 2})
    buttons = {"inline_keyboard": [[{"text": f"B{evil}", "callback_data": "x"}]]}
    link = {"type": "text_link", "offset": 0, "length": 1, "url": "tg:javascript?window.hacked=1"}

    await client.send(f"P{evil}", reply_markup=buttons, entities=[link])
    await client.send("refused with evil words")
    await client.post("[x](javascript:window.hacked=1)", format="markdown")

    await expect(feed(page).locator("h3")).to_have_text(f"T{evil}")
    await expect(feed(page).locator(".post .text")).to_have_text(f"P{evil}")
    await expect(feed(page).locator(".button")).to_have_text(f"B{evil}")
    await expect(page.locator(".call .error")).to_have_text(f"D{evil}")
    await expect(page.locator(".call .fault")).to_have_text(f"fault: F{evil}")
    await expect(page.locator("#active strong")).to_have_count(1)
    assert await page.locator("img, script:not([src])").count() == 0
    assert await page.locator('[href^="javascript"]').count() == 0
    assert await page.evaluate("window.hacked") is None


async def test_you_can_talk_to_the_bot_and_press_its_buttons(page, client):
    await page.get_by_label("Message to the bot").fill("Hello, bot")
    await page.get_by_role("button", name="Send").click()
    await expect(page.locator(".turn.yours")).to_contain_text("Hello, bot")

    heard = (await client.max("GET", "/updates?marker=1")).body
    person = heard["updates"][-1]["message"]["sender"]["user_id"]
    keyboard = [[{"type": "callback", "text": "Yes", "payload": "yes"}]]
    answer = {
        "text": "**Soup?**",
        "format": "markdown",
        "attachments": [{"type": "inline_keyboard", "payload": {"buttons": keyboard}}],
    }
    await client.max("POST", f"/messages?user_id={person}", json=answer)
    await expect(page.locator(".turn:not(.yours) b")).to_have_text("Soup?")
    await page.get_by_role("button", name="Yes").click()
    pressed = await eventually(lambda: updates(client, heard["marker"]))
    callback = pressed[0]["callback"]
    await client.max("POST", f"/answers?callback_id={callback['callback_id']}", json={"notification": "On its way"})

    assert [update["update_type"] for update in heard["updates"]] == ["bot_started", "message_created"]
    assert (callback["payload"], callback["user"]["user_id"]) == ("yes", person)
    await expect(page.locator(".notice")).to_have_text("On its way")


async def updates(client: Any, marker: int) -> list[dict[str, Any]]:
    return (await client.max("GET", f"/updates?marker={marker}&timeout=0")).body["updates"]


async def test_on_a_phone_nothing_reaches_over_the_edge(browser, client):
    endless = "unbroken" * 40
    await client.control("chats", {"platform": "telegram", "id": CHANNEL, "title": endless})
    await client.send(f"<pre>{endless}</pre> {endless}", parse_mode="HTML")
    await client.send(endless, reply_markup={"inline_keyboard": [[{"text": endless, "callback_data": "x"}] * 4]})
    await upload(client, "sendPhoto", {"chat_id": CHANNEL, "caption": endless}, photo=picture(1200, 100))
    await client.fault({"status": 500, "description": endless}, name=endless, times=1)
    await client.send(endless)
    await client.ask("POST", "/_sim/max/customers/7001/write", json={"text": endless})

    async with opened(browser, client.base, width=375, height=812) as page:
        for view, landmark in (("channels", ".post"), ("chat", ".turn"), ("calls", ".call"), ("faults", "#active li")):
            await page.locator(f'[data-show="{view}"]').click()
            await expect(page.locator(landmark).first).to_be_visible()
            assert await page.evaluate("document.documentElement.scrollWidth") == 375, view
            assert await page.evaluate(CUT_OFF) == [], view


async def test_reset_from_the_page_empties_it(page, client):
    await client.send("soon gone")
    await expect(page.locator(".post")).to_have_count(1)

    await page.get_by_role("button", name="Reset").click()

    await expect(page.locator(".post")).to_have_count(0)
    await expect(page.locator(".call")).to_have_count(0)
    assert await client.log() == []
