"""Requests in the forms that clients send them: long queries, odd file names, MAX without a path of its own."""

import pytest

TOKEN = "1001:telegram-token"
MAX_TOKEN = "max-token"
CHANNEL = -1001000000001
MAX_CHANNEL = -7001


async def test_a_long_text_comes_in_the_query(client):
    text = "я" * 4096
    query = {"chat_id": str(CHANNEL), "text": text, "reply_markup": '{"inline_keyboard": []}' + " " * 200_000}

    answer = await client.ask("POST", f"/bot{TOKEN}/sendMessage", params=query)

    assert (answer.status, answer.body["result"]["text"]) == (200, text)


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        ('name="document"; filename="a b.txt"', "a b.txt"),
        ("name=document; filename=plain name.txt ; x=y", "plain name.txt"),
        ('name="document"; filename="отчёт.txt"', "отчёт.txt"),
        ("name=document; filename=отчёт.txt", "отчёт.txt"),
        ('name="document"; filename="100%25 \\"sure\\".txt"', '100% "sure".txt'),
        ('name="document"; filename="a.txt"; filename*=UTF-8\'\'b.txt', "a.txt"),
        ('filename="a.txt"; name="document"', "a.txt"),
    ],
)
async def test_a_file_name_is_read_as_the_server_reads_it(client, disposition, name):
    answer = await post(client, disposition)

    assert (answer.status, answer.body["result"]["document"]["file_name"]) == (200, name)


@pytest.mark.parametrize(
    ("disposition", "description"),
    [
        (
            "name=\"document\"; filename*=UTF-8''a.txt",
            "wrong remote file identifier specified: can't unserialize it. Wrong last symbol",
        ),
        ('name="document"; filename="a.txt', "unclosed quoted string in Content-Disposition header"),
        ('name="document" filename="a.txt"', "expected ';' in Content-Disposition header"),
        ('filename="a.txt"', "field name in multipart/form-data not found"),
    ],
)
async def test_what_names_no_file_is_refused(client, disposition, description):
    answer = await post(client, disposition)

    assert (answer.status, answer.body["description"]) == (400, f"Bad Request: {description}")


async def post(client, disposition):
    parts = [
        f'--X\r\nContent-Disposition: form-data; name="chat_id"\r\n\r\n{CHANNEL}\r\n',
        f"--X\r\nContent-Disposition: form-data; {disposition}\r\n\r\ncontent\r\n--X--\r\n",
    ]
    headers = {"Content-Type": "multipart/form-data; boundary=X"}
    return await client.ask("POST", f"/bot{TOKEN}/sendDocument", data="".join(parts).encode(), headers=headers)


async def test_max_answers_without_a_path_of_its_own(client):
    headers = {"Authorization": MAX_TOKEN}

    me = await client.ask("GET", "/me", headers=headers)
    sent = await client.ask("POST", f"/messages?chat_id={MAX_CHANNEL}", json={"text": "hello"}, headers=headers)

    assert (me.status, me.body["is_bot"]) == (200, True)
    assert sent.body["message"]["body"]["text"] == "hello"
    assert [entry["method"] for entry in await client.log()] == ["GET /me", "POST /messages"]
