"""Rates: the simulator counts by itself and says no as each platform does."""

import pytest

TOKEN = "1001:telegram-token"


@pytest.fixture
async def open_client(start):
    return await start(open_to_all=True)


async def test_a_channel_takes_one_message_a_second(open_client, clock):
    first = await open_client.send(chat_id=-1001)
    clock.advance(0.4)
    second = await open_client.send(chat_id=-1001)

    assert (first.status, second.status) == (200, 429)
    assert second.body == {
        "ok": False,
        "error_code": 429,
        "description": "Too Many Requests: retry after 1",
        "parameters": {"retry_after": 1},
    }
    assert second.headers["Retry-After"] == "1"


async def test_whoever_waits_as_long_as_told_is_let_through(open_client, clock):
    await open_client.send(chat_id=-1001)
    refused = await open_client.send(chat_id=-1001)

    clock.advance(refused.body["parameters"]["retry_after"])

    assert (await open_client.send(chat_id=-1001)).status == 200


async def test_a_token_sends_thirty_messages_a_second_over_all_chats(open_client, clock):
    statuses = [(await open_client.send(chat_id=-1001 - n)).status for n in range(31)]
    clock.advance(1)

    assert statuses == [200] * 30 + [429]
    assert (await open_client.send(chat_id=-2000)).status == 200


async def test_a_group_takes_twenty_messages_a_minute(open_client, clock):
    for _ in range(20):
        assert (await open_client.send(chat_id=-7)).status == 200
        clock.advance(1)

    refused = await open_client.send(chat_id=-7)

    assert refused.body["parameters"] == {"retry_after": 40}


async def test_the_window_slides(open_client, clock):
    await open_client.control("chats", {"platform": "telegram", "id": -1001, "limits": [{"count": 2, "per": 10}]})
    await open_client.send(chat_id=-1001)
    clock.advance(6)
    await open_client.send(chat_id=-1001)

    clock.advance(4)
    third = await open_client.send(chat_id=-1001)
    fourth = await open_client.send(chat_id=-1001)

    assert third.status == 200
    assert fourth.body["parameters"] == {"retry_after": 6}


async def test_limits_are_set_per_token(open_client):
    await open_client.control("tokens", {"platform": "telegram", "token": TOKEN, "limits": [{"count": 1, "per": 5}]})

    assert (await open_client.send(chat_id=-1001)).status == 200
    assert (await open_client.send(chat_id=-1002)).body["parameters"] == {"retry_after": 5}
    assert (await open_client.telegram("sendMessage", token="1002:b", chat_id=-1002, text="x")).status == 200


async def test_a_refused_message_takes_no_slot(open_client):
    await open_client.send("<p>", chat_id=-1001, parse_mode="HTML")

    assert (await open_client.send(chat_id=-1001)).status == 200


async def test_a_max_chat_takes_two_messages_a_second(open_client, clock):
    statuses = [(await open_client.post(chat_id=-9)).status for _ in range(3)]
    clock.advance(1)

    assert statuses == [200, 200, 429]
    assert (await open_client.post(chat_id=-9)).status == 200


async def test_max_counts_every_request_of_a_token(open_client):
    statuses = [(await open_client.max("GET", "/me")).status for _ in range(31)]

    assert statuses == [200] * 30 + [429]


async def test_a_limited_call_is_logged_as_such_and_shows_nothing(open_client):
    await open_client.send("first", chat_id=-1001)
    await open_client.send("second", chat_id=-1001)

    assert [entry["verdict"] for entry in await open_client.log()] == ["accepted", "rate_limited"]
    assert await open_client.shown(chat_id=-1001) == ["first"]
