"""How many messages a second of the processor answers and logs; alone on a machine it is thousands."""

import asyncio
import json
import os
import time
from pathlib import Path

import pytest
from harness.simulator_process import running

pytestmark = pytest.mark.time_limit(480)

CONNECTIONS = 16
REQUESTS = 3_200
FLOOR = 500


async def test_hundreds_of_messages_a_second_are_answered_and_logged(tmp_path: Path):
    log, state = tmp_path / "log", tmp_path / "state.json"
    chats = [-1001 - number for number in range(CONNECTIONS)]
    state.write_text(
        json.dumps(
            {
                "tokens": [{"platform": "telegram", "token": "1:a", "limits": []}],
                "chats": [{"platform": "telegram", "id": chat, "limits": []} for chat in chats],
            }
        )
    )

    async with running("--state", str(state), "--log", str(log)) as (process, url):
        started, before = time.monotonic(), processor_time(process.pid)
        await asyncio.gather(*(post(url, chat, REQUESTS // CONNECTIONS) for chat in chats))
        took, worked = time.monotonic() - started, processor_time(process.pid) - before

        assert log.read_bytes().count(b'"verdict":"accepted"') == REQUESTS
    assert REQUESTS / worked > FLOOR
    assert REQUESTS / took > FLOOR / 10  # nor does it spend its time waiting


def processor_time(pid: int) -> float:
    """Seconds that the process has had, whatever else runs on the machine."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def post(url: str, chat: int, count: int) -> None:
    """A plain connection: a client library would be measured rather than the simulator."""
    body = json.dumps({"chat_id": chat, "text": "<b>Hello</b>, forty channels", "parse_mode": "HTML"})
    head = "POST /bot1:a/sendMessage HTTP/1.1\r\nHost: sim\r\nContent-Type: application/json"
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    for _ in range(count):
        writer.write(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert answer.startswith(b"http/1.1 200"), answer
        await reader.readexactly(int(answer.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
    writer.close()
