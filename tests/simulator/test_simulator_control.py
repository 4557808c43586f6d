"""Setting the scene: tokens, chats and reset."""

import pytest

TOKEN = "1001:telegram-token"
CHANNEL = -1001000000001


async def test_saying_the_same_twice_changes_nothing(client):
    await client.send("kept")
    body = {"platform": "telegram", "id": CHANNEL, "title": "News"}

    first = await client.control("chats", body)
    second = await client.control("chats", body)

    assert first.body == second.body
    assert await client.shown() == ["kept"]


async def test_an_update_leaves_alone_what_it_does_not_mention(client):
    await client.control("chats", {"platform": "telegram", "id": str(CHANNEL), "state": "kicked"})

    [chat] = [chat for chat in (await client.ask("GET", "/_sim/chats")).body["chats"] if chat["id"] == str(CHANNEL)]

    assert (chat["title"], chat["state"], chat["limits"]) == ("News", "kicked", [])


async def test_many_chats_are_registered_at_once(client):
    answer = await client.control("chats", [{"platform": "max", "id": -n} for n in range(1, 41)])

    assert [chat["id"] for chat in answer.body["chats"]] == [str(-n) for n in range(1, 41)]


async def test_one_wrong_chat_in_a_list_registers_none(client):
    answer = await client.control("chats", [{"platform": "max", "id": -50}, {"platform": "max", "id": "x"}])

    assert answer.status == 400
    assert (await client.ask("GET", "/_sim/chats/max/-50/messages")).status == 404


async def test_the_answer_shows_a_fingerprint_and_not_the_token(client):
    answer = await client.control("tokens", {"platform": "telegram", "token": TOKEN})

    assert TOKEN not in str(answer.body)
    assert len(answer.body["tokens"][0]["token"]) == 8


async def test_the_bots_are_listed_without_their_tokens(client):
    answer = await client.ask("GET", "/_sim/tokens")

    assert [bot["platform"] for bot in answer.body["tokens"]] == ["telegram", "max"]
    assert TOKEN not in str(answer.body)


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        ("tokens", {"platform": "telegram"}, "token"),
        ("tokens", {"platform": "icq", "token": "x"}, "platform"),
        ("tokens", {"platform": "max", "token": "two words"}, "token"),
        ("chats", {"platform": "telegram", "id": -1, "state": "sulking"}, "state"),
        ("chats", {"platform": "telegram", "id": -1, "state": "blocked"}, "state"),
        ("chats", {"platform": "telegram", "id": 1, "type": "channel"}, "type"),
        ("chats", {"platform": "max", "id": -1, "type": "supergroup"}, "type"),
        ("chats", {"platform": "max", "id": "one"}, "id"),
        ("chats", {"platform": "max", "id": -1, "limits": [{"count": -1, "per": 1}]}, "count"),
        ("chats", {"platform": "max", "id": -1, "limits": [{"count": 1, "per": 0}]}, "per"),
        ("chats", {"platform": "max", "id": -1, "titel": "x"}, "titel"),
    ],
)
async def test_wrong_input_is_refused_with_the_name_of_the_field(client, path, body, named):
    answer = await client.control(path, body)

    assert answer.status == 400
    assert f"{named}`" in answer.body["error"]


async def test_a_body_that_is_no_json_is_refused(client):
    assert (await client.ask("POST", "/_sim/chats", data=b"\xff{")).status == 400


async def test_reset_returns_to_the_start_state_and_the_log_goes_on(start, log_file):
    client = await start(open_to_all=True, log=log_file)
    await client.send("before", chat_id=-1001)
    await client.fault({"status": 500})

    reset = await client.control("reset", {})
    again = await client.send("after", chat_id=-1001)

    assert reset.body == {"seq": 1}
    assert again.status == 200
    assert await client.shown(chat_id=-1001) == ["after"]
    assert [(entry["seq"], entry["text"]) for entry in await client.log()] == [(2, "after")]
    assert [entry["seq"] for entry in await client.log("?after=0")] == [1, 2]


async def test_health_answers_with_the_last_number_of_the_log(client):
    await client.send()

    assert (await client.ask("GET", "/_sim/health")).body == {"status": "ok", "seq": 1}


async def test_chats_come_with_their_newest_posts_when_asked(client):
    for text in ("one", "two", "three"):
        await client.send(text)

    chats = (await client.ask("GET", "/_sim/chats?posts=2")).body["chats"]

    assert [post["text"] for post in chats[0]["posts"]] == ["two", "three"]
