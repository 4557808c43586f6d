"""Webhooks of Telegram: which addresses it takes, how it delivers, and what it does with an answer."""

import asyncio

import pytest
from aiohttp import web
from harness.eventually import eventually

TOKEN = "1001:telegram-token"
SECRET = "a-secret_token"


class Bot:
    """Answers from ``answers``, then 200; ``got`` are the updates in order."""

    def __init__(self) -> None:
        self.url = ""
        self.answers: list[web.Response] = []
        self.got: list[dict[str, object]] = []
        self.headers: list[dict[str, str]] = []

    async def receive(self, request: web.Request) -> web.Response:
        self.got.append(await request.json())
        self.headers.append(dict(request.headers))
        return self.answers.pop(0) if self.answers else web.Response()

    def texts(self):
        return [update["message"]["text"] for update in self.got]


@pytest.fixture
async def bot():
    bot = Bot()
    app = web.Application()
    app.router.add_post("/hook", bot.receive)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    bot.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    yield bot
    await runner.cleanup()


async def write(client, *texts, user_id=9):
    for text in texts:
        await client.control(f"telegram/customers/{user_id}/write", {"text": text})


async def info(client):
    return (await client.telegram("getWebhookInfo")).body["result"]


async def test_updates_go_to_the_webhook_in_order_with_the_secret(client, bot):
    await write(client, "waiting")
    answer = await client.telegram("setWebhook", url=bot.url, secret_token=SECRET, max_connections=7)
    await write(client, "one", "two")

    await eventually(lambda: len(bot.got) == 3)

    assert (answer.body["result"], answer.body["description"]) == (True, "Webhook was set")
    assert bot.texts() == ["waiting", "one", "two"]
    assert {headers["X-Telegram-Bot-Api-Secret-Token"] for headers in bot.headers} == {SECRET}
    assert await eventually(lambda: _nothing_pending(client)) == {
        "url": bot.url,
        "has_custom_certificate": False,
        "pending_update_count": 0,
        "max_connections": 7,
        "ip_address": "<unknown>",
    }


async def _nothing_pending(client):
    found = await info(client)
    return found if found["pending_update_count"] == 0 else None


async def test_a_failed_update_comes_again_before_the_next_of_its_chat(client, bot):
    await client.control("telegram/settings", {"webhook_time_scale": 1000})
    bot.answers = [web.Response(status=500), web.Response(status=302), web.Response(status=204)]
    await client.telegram("setWebhook", url=bot.url)
    await write(client, "one", "two")

    await eventually(lambda: len(bot.got) == 4)

    assert bot.texts() == ["one", "one", "one", "two"]
    found = await info(client)
    assert found["last_error_message"] == "Wrong response from the webhook: 302 Found"
    deliveries = (await client.ask("GET", "/_sim/telegram/deliveries")).body["deliveries"]
    assert [(one["attempt"], one["status"]) for one in deliveries[:3]] == [(1, 500), (2, 302), (3, 204)]


async def test_one_chat_does_not_wait_for_another(client, bot):
    bot.answers = [web.Response(status=500, headers={"Retry-After": "3600"})]
    await client.telegram("setWebhook", url=bot.url)
    await write(client, "stuck", user_id=9)
    await eventually(lambda: len(bot.got) == 1)
    await write(client, "other", user_id=8)

    await eventually(lambda: len(bot.got) == 2)

    assert bot.texts() == ["stuck", "other"]
    assert (await info(client))["pending_update_count"] >= 1


async def test_a_bot_may_call_a_method_in_its_answer(client, bot):
    bot.answers = [web.json_response({"method": "sendMessage", "chat_id": 9, "text": "by answer"})]
    await client.telegram("setWebhook", url=bot.url)
    await write(client, "hello")

    await eventually(lambda: _shown(client, 2))

    assert await client.shown(chat_id=9) == ["hello", "by answer"]
    assert (await client.log())[-1]["method"] == "sendMessage"


async def _shown(client, count):
    return len(await client.shown(chat_id=9)) == count


async def test_polling_and_a_webhook_exclude_each_other(client, bot):
    poll = asyncio.create_task(client.telegram("getUpdates", timeout=30))
    await eventually(lambda: _is_polled(client))
    await client.telegram("setWebhook", url=bot.url)
    ended = await poll
    refused = await client.telegram("getUpdates")
    deleted = await client.telegram("deleteWebhook")
    again = await client.telegram("deleteWebhook")

    assert (ended.status, ended.body["description"]) == (409, "Conflict: terminated by setWebhook request")
    assert refused.body["description"].startswith("Conflict: can't use getUpdates method while webhook is active")
    assert (deleted.body["description"], again.body["description"]) == (
        "Webhook was deleted",
        "Webhook is already deleted",
    )
    assert (await client.telegram("getUpdates")).status == 200


async def _is_polled(client):
    return (await client.ask("GET", "/_sim/telegram/polls")).body["polls"]


async def test_the_same_webhook_again_changes_nothing_and_pending_updates_can_be_dropped(client, bot, clock):
    await client.telegram("setWebhook", url=bot.url)
    too_soon = await client.telegram("setWebhook", url=bot.url)
    clock.advance(1)
    same = await client.telegram("setWebhook", url=bot.url, allowed_updates=["callback_query"])
    await client.telegram("deleteWebhook")
    await client.telegram("getUpdates", allowed_updates=["message"])
    await write(client, "dropped")
    await client.telegram("deleteWebhook", drop_pending_updates=True)

    assert (too_soon.status, too_soon.body["parameters"]) == (429, {"retry_after": 1})
    assert same.body["description"] == "Webhook is already set"
    assert (await info(client)) == {
        "url": "",
        "has_custom_certificate": False,
        "pending_update_count": 0,
        "allowed_updates": ["message"],
    }


@pytest.mark.parametrize(
    ("params", "description"),
    [
        ({"url": "http://example.org/"}, "bad webhook: An HTTPS URL must be provided for webhook"),
        (
            {"url": "https://example.org:8080/"},
            "bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443",
        ),
        ({"url": "https://exa mple.org/"}, "invalid webhook URL specified"),
        ({"url": "https://example.org/", "secret_token": "a b"}, "secret token contains unallowed characters"),
        ({"url": "https://example.org/", "secret_token": "a" * 257}, "secret token is too long"),
    ],
)
async def test_an_address_that_telegram_would_not_call_is_refused(client, params, description):
    answer = await client.telegram("setWebhook", **params)

    assert (answer.status, answer.body["description"]) == (400, f"Bad Request: {description}")
    assert (await info(client))["url"] == ""
