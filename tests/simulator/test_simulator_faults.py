"""Scripted faults: which calls they strike and what the client and the log then see."""

import asyncio

import aiohttp
import msgspec
import pytest

TOKEN = "1001:telegram-token"
CHANNEL = -1001000000001


async def test_a_scripted_429_looks_like_the_real_one(client):
    await client.fault({"status": 429, "retry_after": 3}, platform="telegram", times=1)

    refused, accepted = await client.send(), await client.send()

    assert (refused.status, refused.headers["Retry-After"]) == (429, "3")
    assert refused.body["description"] == "Too Many Requests: retry after 3"
    assert refused.body["parameters"] == {"retry_after": 3}
    assert accepted.status == 200


async def test_a_status_has_the_shape_of_its_platform(client):
    await client.fault({"status": 503})

    assert (await client.send()).body == {"ok": False, "error_code": 503, "description": "Service Unavailable"}
    assert (await client.post()).body == {"code": "service.unavailable", "message": ""}


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("telegram.bot_was_kicked", 403, "Forbidden: bot was kicked from the channel chat"),
        ("telegram.chat_not_found", 400, "Bad Request: chat not found"),
        ("telegram.unauthorized", 401, "Unauthorized"),
    ],
)
async def test_an_error_is_chosen_by_its_name(client, name, status, words):
    await client.fault({"catalogue": name})

    answer = await client.send()

    assert (answer.status, answer.body["description"]) == (status, words)


async def test_every_name_in_the_catalogue_can_be_answered_with(client):
    names = (await client.ask("GET", "/_sim/catalogue")).body["names"]
    assert len(names) > 40

    for name in names:
        await client.fault({"catalogue": name}, name="one", times=1)
        answer = await (client.send() if name.startswith("telegram") else client.post())
        assert answer.status >= 400, name
        assert "{" not in str(answer.body).strip("{}"), name


async def test_the_nth_matching_call_is_struck(client):
    await client.fault({"status": 500}, method="sendmessage", nth=2)

    await client.telegram("getMe")
    statuses = [(await client.send()).status for _ in range(4)]

    assert statuses == [200, 500, 200, 200]


async def test_times_counts_from_the_nth_on(client):
    await client.fault({"status": 500}, nth=2, times=2)

    assert [(await client.send()).status for _ in range(5)] == [200, 500, 500, 200, 200]


async def test_a_fault_ends_at_the_time_it_was_given(client, clock):
    await client.fault({"status": 500}, until="2026-03-01T03:00:10+03:00")

    before = await client.send()
    clock.advance(9.999)
    last = await client.send()
    clock.advance(0.001)
    after = await client.send()

    assert [before.status, last.status, after.status] == [500, 500, 200]


async def test_the_first_fault_that_strikes_wins(client):
    await client.fault({"status": 500}, times=1)
    await client.fault({"status": 502}, times=1)

    assert [(await client.send()).status for _ in range(3)] == [500, 502, 200]


async def test_a_fault_said_again_under_its_name_replaces_the_old_one(client):
    await client.fault({"status": 500}, name="one")
    await client.fault({"status": 503}, name="one")

    assert (await client.send()).status == 503
    assert len((await client.ask("GET", "/_sim/faults")).body["faults"]) == 1


async def test_a_refusal_of_one_platform_never_strikes_the_other(client):
    await client.fault({"catalogue": "telegram.chat_not_found"})

    assert ((await client.post()).status, (await client.send()).status) == (200, 400)


async def test_probability_with_a_seed_repeats_itself(client):
    async def statuses():
        await client.fault({"status": 500}, name="dice", probability=0.5, seed=7)
        return [(await client.send()).status for _ in range(30)]

    first, second = await statuses(), await statuses()

    assert first == second
    assert {200, 500} == set(first)


@pytest.mark.parametrize(
    ("matcher", "struck"),
    [
        ({"platform": "max"}, False),
        ({"platform": "telegram"}, True),
        ({"method": "getMe"}, False),
        ({"chat": str(CHANNEL)}, True),
        ({"chat": CHANNEL}, True),
        ({"chat": -5}, False),
        ({"token": TOKEN}, True),
        ({"token": "1001:somebody-else"}, False),
    ],
)
async def test_a_fault_strikes_only_what_it_matches(client, matcher, struck):
    await client.fault({"status": 500}, **matcher)

    assert ((await client.send()).status == 500) is struck


async def test_a_reset_before_leaves_nothing_behind(client):
    await client.fault({"reset": "before"}, times=1)

    with pytest.raises((aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)):
        await client.ask("POST", f"/bot{TOKEN}/sendMessage", json={"chat_id": CHANNEL, "text": "lost"})

    assert await client.shown() == []
    assert [(entry["verdict"], entry["message_ids"]) for entry in await client.log()] == [("reset", [])]


@pytest.mark.parametrize("chat", [None, CHANNEL])
async def test_a_reset_before_can_be_aimed_at_a_chat(client, chat):
    await client.fault({"reset": "before"}, chat=chat, times=1)

    with pytest.raises((aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)):
        await client.send("lost")

    assert await client.shown() == []


async def test_a_reset_before_does_not_wait_for_the_body(client):
    await client.fault({"reset": "before"}, times=1)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(client.base.rpartition(":")[2]))

    writer.write(f"POST /bot{TOKEN}/sendMessage HTTP/1.1\r\nHost: sim\r\nContent-Length: 1000\r\n\r\n".encode())

    with pytest.raises(ConnectionResetError):
        async with asyncio.timeout(10):
            await reader.readuntil(b"\r\n")
    writer.close()


async def test_a_reset_after_keeps_the_message_the_client_never_heard_of(client):
    await client.fault({"reset": "after"}, times=1)

    with pytest.raises((aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)):
        await client.send("kept")

    assert await client.shown() == ["kept"]
    [entry] = await client.log()
    assert (entry["verdict"], entry["message_ids"], entry["text"]) == ("reset", [1], "kept")


async def test_a_hanging_call_is_logged_and_never_answered(client):
    await client.fault({"hang": True}, times=1)
    waiting = asyncio.create_task(client.send("waiting"))

    while not await client.log():
        assert not waiting.done()
    [entry] = await client.log()

    assert (entry["verdict"], entry["status"], entry["answered_ns"]) == ("hung", None, None)
    assert not waiting.done()
    waiting.cancel()


async def test_a_delayed_call_is_answered_honestly(client):
    await client.fault({"delay": 0.01}, name="slow", times=1)

    answer = await client.send("late")

    assert answer.status == 200
    assert [(entry["verdict"], entry["fault"]) for entry in await client.log()] == [("accepted", "slow")]


async def test_a_dripping_answer_is_honest_and_comes_byte_by_byte(client):
    await client.fault({"drip": 0.001}, name="tap", times=1)
    body = {"chat_id": CHANNEL, "text": "slow"}

    async with client.session.post(f"{client.base}/bot{TOKEN}/sendMessage", json=body) as response:
        pieces = [piece async for piece in response.content.iter_any()]

    assert msgspec.json.decode(b"".join(pieces))["result"]["text"] == "slow"
    assert len(pieces) > 10
    assert response.content_length == len(b"".join(pieces))
    assert [(entry["verdict"], entry["fault"]) for entry in await client.log()] == [("accepted", "tap")]


async def test_a_spoiled_answer_can_drip_too(client):
    await client.fault({"html": 502, "drip": 0.0001}, times=1)

    answer = await client.send()

    assert (answer.status, answer.headers["Content-Type"]) == (502, "text/html; charset=utf-8")
    assert "502 Bad Gateway" in answer.body


async def test_nobody_is_dripped_at_who_has_hung_up(client):
    await client.fault({"drip": 0.001}, times=1)
    listening = await asyncio.open_connection("127.0.0.1", int(client.base.rpartition(":")[2]))
    listening[1].write(f"GET /bot{TOKEN}/getMe HTTP/1.1\r\nHost: sim\r\n\r\n".encode())
    await listening[0].readuntil(b"\r\n\r\n{")

    listening[1].transport.abort()

    assert (await client.telegram("getMe")).status == 200


async def test_garbage_is_no_json(client):
    await client.fault({"garbage": True}, times=1)

    async with client.session.post(f"{client.base}/bot{TOKEN}/sendMessage", json={}) as response:
        assert response.status == 200
        with pytest.raises((ValueError, UnicodeDecodeError)):
            await response.json()


async def test_a_gateway_answers_with_a_page_of_html(client):
    await client.fault({"html": 502}, times=1)

    answer = await client.send()

    assert (answer.status, answer.headers["Content-Type"]) == (502, "text/html; charset=utf-8")
    assert "<h1>502 Bad Gateway</h1>" in answer.body
    assert await client.shown() == []


async def test_a_spoiled_answer_may_hide_an_accepted_message(client):
    await client.fault({"html": 504, "accept": True}, times=1)

    answer = await client.send("hidden")

    assert answer.status == 504
    assert await client.shown() == ["hidden"]
    assert [(entry["verdict"], entry["message_ids"]) for entry in await client.log()] == [("faulted", [1])]


async def test_a_mistyped_removal_removes_nothing(client):
    await client.fault({"status": 500}, name="first")

    answer = await client.ask("DELETE", "/_sim/faults?nmae=first")

    assert (answer.status, "`nmae`" in answer.body["error"]) == (400, True)
    assert (await client.send()).status == 500


async def test_faults_are_listed_with_their_counts_and_removed(client):
    await client.fault({"status": 500}, name="first", token=TOKEN)
    await client.fault({"delay": 0.001}, name="second")
    await client.send()

    listed = (await client.ask("GET", "/_sim/faults")).body["faults"]
    one = await client.ask("DELETE", "/_sim/faults?name=first")
    rest = await client.ask("DELETE", "/_sim/faults")

    assert [(fault["name"], fault["matched"], fault["struck"]) for fault in listed] == [
        ("first", 1, 1),
        ("second", 0, 0),
    ]
    assert TOKEN not in str(listed)
    assert (one.body, rest.body) == ({"removed": 1}, {"removed": 1})
    assert (await client.send()).status == 200


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "effect"),
        ({"effect": {}}, "effect"),
        ({"effect": {"status": 200}}, "status"),
        ({"effect": {"catalogue": "telegram.nonsense"}}, "catalogue"),
        ({"effect": {"reset": "sideways"}}, "reset"),
        ({"effect": {"status": 500, "hang": True}}, "hang"),
        ({"effect": {"status": 500}, "nth": 0}, "nth"),
        ({"effect": {"status": 500}, "probability": 2}, "probability"),
        ({"effect": {"status": 500}, "wether": 1}, "wether"),
        ({"effect": {"status": 500}, "times": 0}, "times"),
        ({"effect": {"status": 500}, "until": "tomorrow"}, "until"),
        ({"effect": {"status": 500}, "until": "2026-03-01T00:00:00"}, "until"),
        ({"effect": {"status": 500}, "seed": "x"}, "seed"),
        ({"effect": {"status": 500}, "chat": 1.5}, "chat"),
        ({"effect": {"status": 500}, "platform": "icq"}, "platform"),
        ({"effect": {"catalogue": "telegram.chat_not_found"}, "platform": "max"}, "platform"),
        ({"effect": {"drip": 0}}, "drip"),
        ({"effect": {"drip": 1, "hang": True}}, "drip"),
        ({"effect": {"delay": -1}}, "delay"),
        ({"effect": {"delay": 1, "retry_after": 3}}, "retry_after"),
        ({"effect": {"hang": True, "description": "x"}}, "description"),
        ({"effect": {"delay": 1, "accept": True}}, "accept"),
        ({"effect": {"html": 302}}, "html"),
    ],
)
async def test_a_senseless_fault_is_refused_by_name(client, body, named):
    answer = await client.control("faults", body)

    assert answer.status == 400
    assert f"{named}`" in answer.body["error"]
