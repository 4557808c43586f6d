"""The log: complete, in order, without secrets, on disk before the answer, and bounded in memory."""

import asyncio
import hashlib
import time

import msgspec
import pytest
from autopost_simulator.journal import Entry, Journal

TOKEN = "1001:telegram-token"
CHANNEL = -1001000000001


async def test_an_entry_tells_the_whole_call(client, clock):
    body = b'{"chat_id":-1001000000001,"text":"tag-1"}'
    await client.ask("POST", f"/bot{TOKEN}/sendMessage", data=body, headers={"Content-Type": "application/json"})

    [entry] = await client.log()

    assert entry == {
        "seq": 1,
        "platform": "telegram",
        "token": hashlib.sha256(TOKEN.encode()).hexdigest()[:8],
        "method": "sendMessage",
        "chat": str(CHANNEL),
        "arrived_ns": clock.monotonic_ns(),
        "arrived_at": "2026-03-01T00:00:00+00:00",
        "answered_ns": clock.monotonic_ns(),
        "answered_at": "2026-03-01T00:00:00+00:00",
        "status": 200,
        "verdict": "accepted",
        "error": None,
        "text": "tag-1",
        "body_sha256": hashlib.sha256(body).hexdigest(),
        "message_ids": [1],
        "uploads": 0,
        "fault": None,
    }


async def test_a_refusal_is_logged_with_its_words(client):
    await client.send("x", chat_id=-404)

    [entry] = await client.log()

    assert (entry["status"], entry["verdict"], entry["error"]) == (400, "refused", "Bad Request: chat not found")


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ("", ["a", "b", "c", "d"]),
        ("?after=2", ["c", "d"]),
        ("?limit=1", ["a"]),
        ("?after=1&limit=2", ["b", "c"]),
        ("?last=2", ["c", "d"]),
        ("?platform=max", ["b"]),
        (f"?chat={CHANNEL}", ["a", "d"]),
        ("?method=sendmessage", ["a", "c", "d"]),
        ("?verdict=refused", ["c"]),
        (f"?token={hashlib.sha256(b'max-token').hexdigest()[:8]}", ["b"]),
        ("?verdict=refused&platform=max", []),
    ],
)
async def test_the_log_is_read_through_filters(client, query, texts):
    await client.send("a")
    await client.post("b")
    await client.send("c", chat_id=-404)
    await client.send("d")

    assert [entry["text"] for entry in await client.log(query)] == texts


@pytest.mark.parametrize("query", ["after=x", "limit=-1", "verdcit=accepted", "follow=yes"])
async def test_a_wrong_filter_is_refused_by_name(client, query):
    answer = await client.ask("GET", f"/_sim/log?{query}")

    assert answer.status == 400
    assert f"`{query.partition('=')[0]}`" in answer.body["error"]


async def test_a_line_is_on_disk_when_the_answer_is_read(start, log_file):
    client = await start(open_to_all=True, log=log_file)

    for number in range(5):
        await client.send(f"tag-{number}", chat_id=-1001 - number)
        assert msgspec.json.decode(log_file.read_bytes().splitlines()[-1])["text"] == f"tag-{number}"


async def test_times_are_of_the_one_clock_that_a_client_on_this_machine_reads(start):
    client = await start(open_to_all=True, clock=None)

    before = time.monotonic_ns()
    await asyncio.gather(*(client.send(chat_id=-1001 - number) for number in range(20)))
    after = time.monotonic_ns()
    entries = await client.log()

    answered = [entry["answered_ns"] for entry in entries]
    assert answered == sorted(set(answered))
    assert all(before < entry["arrived_ns"] < entry["answered_ns"] < after for entry in entries)
    assert any(entry["arrived_ns"] % 1_000 for entry in entries)


async def test_no_token_is_ever_written(start, log_file, caplog, capfd):
    client = await start(open_to_all=True, log=log_file)
    caplog.set_level("DEBUG", logger="aiohttp")

    await client.send()
    await client.post()
    await client.telegram("getMe", token="1001:another-secret")
    seen = log_file.read_text() + caplog.text + "".join(capfd.readouterr()) + str(await client.log())

    assert "secret" not in seen
    assert TOKEN not in seen
    assert "max-token" not in seen


def entry(seq: int) -> Entry:
    return Entry(
        seq=seq,
        platform="telegram",
        token="0" * 8,
        method="sendMessage",
        chat="1",
        arrived_ns=0,
        arrived_at="",
        answered_ns=0,
        answered_at="",
        status=200,
        verdict="accepted",
        error=None,
        text=None,
        body_sha256="",
        message_ids=[],
        fault=None,
    )


def numbers(lines) -> list[int]:
    return [msgspec.json.decode(line)["seq"] for line in lines]


def read_all(journal: Journal, after: int = 0, count: int = 100) -> list[int]:
    seen = []
    while after < journal.last:
        lines, after = journal.read(after, count)
        seen += numbers(lines)
    return seen


def test_memory_holds_the_newest_lines_and_the_file_all_of_them(log_file):
    with Journal(log_file, lines_kept=10) as journal:
        for seq in range(1, 3001):
            journal.append(entry(seq))

        assert len(journal._lines) == 10
        assert read_all(journal) == list(range(1, 3001))
        assert read_all(journal, after=1023, count=512) == list(range(1024, 3001))
        assert read_all(journal, after=2995) == list(range(2996, 3001))
        assert journal.read(3000, 100) == ([], 3000)
        assert journal.read(4000, 100) == ([], 4000)


def test_without_a_file_only_the_newest_lines_remain():
    journal = Journal(lines_kept=10)
    for seq in range(1, 31):
        journal.append(entry(seq))

    assert read_all(journal, count=3) == list(range(21, 31))
    assert read_all(journal, after=25) == list(range(26, 31))


def test_large_lines_are_bounded_by_their_bytes():
    journal = Journal(bytes_kept=5_000)
    for seq in range(1, 101):
        journal.append(entry(seq))

    assert sum(map(len, journal._lines)) <= 5_000


def test_a_new_run_goes_on_after_the_last_whole_line(log_file):
    with Journal(log_file) as journal:
        for seq in (1, 2):
            journal.append(entry(seq))
    with log_file.open("ab") as torn:
        torn.write(b'{"seq":3,"plat')

    with Journal(log_file) as journal:
        journal.append(entry(journal.next_seq()))

    assert numbers(log_file.read_bytes().splitlines()) == [1, 2, 3]
