"""Webhooks of MAX: what counts as received, how often it tries again, and when it gives up."""

import asyncio
import time
from collections.abc import Callable
from itertools import pairwise

import pytest
from aiohttp import web
from harness.eventually import eventually

TOKEN = "max-token"
SCALE = 3000.0
PAUSES = [60.0, 150.0, 375.0]
EIGHT_HOURS = 8 * 60 * 60.0


class Receiver:
    """Answers 200 unless it was told otherwise; ``calls`` are the texts and headers it got, in order."""

    def __init__(self) -> None:
        self.url = ""
        self.answer: Callable[[str], int] = lambda text: 200
        self.texts: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.hang = False
        self._changed = asyncio.Condition()

    async def receive(self, request: web.Request) -> web.Response:
        text = (await request.json())["message"]["body"]["text"]
        async with self._changed:
            self.texts.append(text)
            self.headers.append(dict(request.headers))
            self._changed.notify_all()
        if self.hang:
            await asyncio.Event().wait()
        return web.Response(status=self.answer(text), headers={"Location": "/elsewhere"})

    async def has(self, count: int) -> list[str]:
        async with asyncio.timeout(30), self._changed:
            await self._changed.wait_for(lambda: len(self.texts) >= count)
        return self.texts


@pytest.fixture
async def receiver():
    receiver = Receiver()
    app = web.Application()
    app.router.add_post("/hook", receiver.receive)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    yield receiver
    await runner.cleanup()


async def subscribe(client, url, **body):
    return await client.max("POST", "/subscriptions", json={"url": url, **body})


async def subscriptions(client):
    return (await client.max("GET", "/subscriptions")).body["subscriptions"]


async def write(client, *texts):
    for text in texts:
        await client.control("max/customers/9/write", {"text": text})


async def deliveries(client, count):
    """Once at least so many have ended."""

    async def ended():
        found = (await client.ask("GET", "/_sim/max/deliveries")).body["deliveries"]
        return found if len(found) >= count else None

    return await eventually(ended)


async def test_updates_come_in_order_with_the_secret(client, receiver):
    await subscribe(client, receiver.url, secret="s3cret-header")

    await write(client, *map(str, range(20)))

    assert await receiver.has(20) == [str(number) for number in range(20)]
    assert {headers["X-Max-Bot-Api-Secret"] for headers in receiver.headers} == {"s3cret-header"}


async def test_updates_come_in_copies_at_once(client, receiver):
    await client.control("max/settings", {"webhook_copies": 5, "webhook_parallel": 5})
    await subscribe(client, receiver.url)

    await write(client, "one", "two")

    assert sorted(await receiver.has(10)) == ["one"] * 5 + ["two"] * 5


async def test_calls_in_parallel_do_not_wait_for_each_other(start, receiver):
    client = await start(clock=None)
    await client.control("tokens", {"platform": "max", "token": TOKEN, "limits": []})
    await client.control("max/settings", {"webhook_parallel": 3, "webhook_timeout": 0.2})
    await subscribe(client, receiver.url)
    receiver.hang = True

    await write(client, "one", "two", "three", "four")

    tries = await deliveries(client, 4)
    first_end = min(one["ended_ns"] for one in tries)
    assert sum(one["started_ns"] < first_end for one in tries) == 3


async def test_a_kind_of_update_comes_late(client, receiver):
    """A start that comes after the first message."""
    await client.control("max/settings", {"webhook_delays": {"message_edited": 60.0}, "webhook_time_scale": 300.0})
    await subscribe(client, receiver.url)

    update = (await client.control("max/customers/9/write", {"text": "one"})).body["update"]
    mid = update["message"]["body"]["mid"]
    await client.control("max/customers/9/edit", {"message_id": mid, "text": "edited"})
    await write(client, "two")

    assert await receiver.has(3) == ["one", "two", "edited"]


async def test_by_chance_later_updates_overtake_earlier_ones_the_same_way_each_time(client, receiver):
    await client.control("max/settings", {"webhook_jitter": 0.3, "webhook_seed": 7})
    await subscribe(client, receiver.url)
    texts = [str(number) for number in range(12)]

    await write(client, *texts)

    assert sorted(await receiver.has(12), key=int) == texts
    assert receiver.texts != texts


async def test_without_a_secret_there_is_no_header(client, receiver):
    await subscribe(client, receiver.url)

    await write(client, "one")

    await receiver.has(1)
    assert "X-Max-Bot-Api-Secret" not in receiver.headers[0]


@pytest.mark.parametrize("status", [201, 202, 204, 301, 400, 410, 500, 503])
async def test_only_exactly_200_counts(client, receiver, status):
    await client.control("max/settings", {"webhook_time_scale": SCALE})
    await subscribe(client, receiver.url)
    receiver.answer = lambda text: 200 if len(receiver.texts) > 1 else status

    await write(client, "one")

    assert await receiver.has(2) == ["one", "one"]
    assert [one["status"] for one in await deliveries(client, 2)] == [status, 200]


async def test_ten_tries_follow_the_first_each_after_a_longer_pause(client, receiver):
    await client.control("max/settings", {"webhook_time_scale": SCALE * 300, "webhook_patience": 1e9})
    await subscribe(client, receiver.url)
    receiver.answer = lambda text: 500 if text == "bad" else 200

    await write(client, "bad")
    tries = await deliveries(client, 11)
    await write(client, "good")
    pauses = [60.0 * 2.5**number for number in range(10)]

    assert (await receiver.has(12))[11] == "good"
    assert [one["attempt"] for one in tries] == list(range(1, 12))
    assert [one["waited"] for one in tries] == [0.0, *pauses]
    assert [one["again_after"] for one in tries] == [*pauses, None]
    assert len(await subscriptions(client)) == 1


async def test_a_webhook_that_fails_for_eight_hours_is_dropped(client, receiver):
    await client.control("max/settings", {"webhook_time_scale": SCALE * 10})
    await subscribe(client, receiver.url)
    receiver.answer = lambda text: 500
    began = time.monotonic()

    await write(client, "one")

    await eventually(lambda: none_left(client))
    assert time.monotonic() - began >= EIGHT_HOURS / (SCALE * 10)
    assert set(receiver.texts) == {"one"}
    assert (await client.max("GET", "/updates?timeout=0")).status == 200


async def none_left(client):
    return not await subscriptions(client)


async def test_a_success_in_between_keeps_the_webhook(client, receiver):
    await client.control("max/settings", {"webhook_time_scale": 1.0, "webhook_patience": 3.0})
    await subscribe(client, receiver.url)
    receiver.answer = lambda text: 500 if text == "bad" else 200

    await write(client, "bad", "good")
    await receiver.has(2)
    before = time.monotonic()
    await eventually(lambda: time.monotonic() - before > 3.0)

    assert len(await subscriptions(client)) == 1


async def test_no_try_comes_before_its_time(start, receiver):
    client = await start(clock=None)
    await client.control("tokens", {"platform": "max", "token": TOKEN, "limits": []})
    await client.control("max/settings", {"webhook_time_scale": SCALE})
    await subscribe(client, receiver.url)
    receiver.answer = lambda text: 500

    await write(client, "one")

    tries = (await deliveries(client, 4))[:4]
    gaps = [(after["started_ns"] - before["ended_ns"]) / 1e9 for before, after in pairwise(tries)]
    assert all(gap >= pause / SCALE - 0.001 for gap, pause in zip(gaps, PAUSES, strict=True)), gaps


async def test_what_failed_does_not_hold_up_what_follows(client, receiver):
    await client.control("max/settings", {"webhook_time_scale": 15})
    await subscribe(client, receiver.url)
    receiver.answer = lambda text: 500 if receiver.texts == ["one"] else 200

    await write(client, "one", "two", "three")

    assert await receiver.has(4) == ["one", "two", "three", "one"]


async def test_an_answer_that_does_not_come_in_time_is_a_failure(client, receiver):
    await client.control("max/settings", {"webhook_timeout": 0.1, "webhook_time_scale": SCALE})
    await subscribe(client, receiver.url)
    receiver.hang = True

    await write(client, "one")

    await receiver.has(2)
    first = (await deliveries(client, 1))[0]
    assert (first["status"], first["error"]) == (None, "TimeoutError")


async def test_an_answer_may_take_thirty_seconds_and_the_webhook_fail_for_eight_hours(client):
    settings = (await client.ask("GET", "/_sim/max/settings")).body

    assert (settings["webhook_timeout"], settings["webhook_patience"]) == (30.0, EIGHT_HOURS)


async def test_nobody_at_home_is_a_failure(client, unused_tcp_port):
    await subscribe(client, f"http://127.0.0.1:{unused_tcp_port}/hook")

    await write(client, "one")

    (first,) = await deliveries(client, 1)
    assert (first["status"], first["attempt"]) == (None, 1)


async def test_only_the_types_subscribed_to_come(client, receiver):
    await subscribe(client, receiver.url, update_types=["message_created"])

    await client.control("max/customers/9/start", {})
    await write(client, "one")

    await receiver.has(1)
    assert [one["update_type"] for one in await deliveries(client, 1)] == ["message_created"]


async def test_subscriptions_are_listed_replaced_and_removed(client, receiver):
    await subscribe(client, receiver.url)
    await subscribe(client, receiver.url, update_types=["bot_started"])
    listed = await subscriptions(client)

    removed = await client.max("DELETE", "/subscriptions", params={"url": receiver.url})
    again = await client.max("DELETE", "/subscriptions", params={"url": receiver.url})

    assert listed == [{"url": receiver.url, "time": 1772323200000, "update_types": ["bot_started"]}]
    assert (removed.body, again.status, again.body["success"]) == ({"success": True}, 200, False)
    assert await subscriptions(client) == []


async def test_a_webhook_and_long_polling_exclude_each_other(client, receiver):
    await subscribe(client, receiver.url)
    refused = await client.max("GET", "/updates?timeout=0")

    await client.max("DELETE", "/subscriptions", params={"url": receiver.url})
    await write(client, "one")

    assert refused.status == 405
    assert len((await client.max("GET", "/updates?timeout=0")).body["updates"]) == 1


@pytest.mark.parametrize(
    ("url", "success"),
    [
        ("https://bot.example.org/hook", True),
        ("http://bot.example.org/hook", False),
        ("https://bot.example.org:8443/hook", False),
        ("https://bot.example.org:443/hook", False),
        ("http://localhost:8080/hook", True),
        ("bot.example.org", False),
    ],
)
async def test_a_webhook_is_https_on_its_own_port_unless_it_is_this_machine(client, url, success):
    answer = await subscribe(client, url)

    assert (answer.status, answer.body["success"]) == (200, success)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"url": "https://a.example", "secret": "four"},
        {"url": "https://a.example", "secret": "with space"},
        {"url": "https://a.example", "update_types": ["rain"]},
    ],
)
async def test_a_wrong_subscription_is_refused(client, body):
    assert (await client.max("POST", "/subscriptions", json=body)).status == 400


async def test_a_reset_ends_deliveries(client, receiver):
    await subscribe(client, receiver.url)

    await client.control("reset", {})
    await client.control("tokens", {"platform": "max", "token": TOKEN, "limits": []})

    assert await subscriptions(client) == []
