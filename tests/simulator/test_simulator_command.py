"""The command: how it starts, what it prints, how it ends, and what a SIGKILL leaves behind."""

import asyncio
import contextlib
import itertools
import json
import signal
import sys
from pathlib import Path

import aiohttp
import pytest
from harness.eventually import eventually
from harness.simulator_process import running


async def test_it_says_where_it_listens_and_what_it_was_told_exists(tmp_path: Path):
    state = tmp_path / "state.json"
    chats = [{"platform": "telegram", "id": -1001, "title": "From the file"}]
    state.write_text(json.dumps({"tokens": [{"platform": "telegram", "token": "1:a"}], "chats": chats}))
    port_file = tmp_path / "port"

    async with (
        running("--state", str(state), "--port-file", str(port_file)) as (_, url),
        aiohttp.ClientSession() as http,
    ):
        answer = await (await http.post(f"{url}/bot1:a/getChat", json={"chat_id": -1001})).json()
        stranger = await http.post(f"{url}/bot2:b/getMe")

    assert url == f"http://127.0.0.1:{port_file.read_text().strip()}"
    assert answer["result"]["title"] == "From the file"
    assert stranger.status == 401


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_at_once_even_while_a_request_hangs(number):
    async with running("--open") as (process, url), aiohttp.ClientSession() as http:
        await http.post(f"{url}/_sim/faults", json={"effect": {"hang": True}, "method": "sendMessage"})
        hanging = asyncio.create_task(http.post(f"{url}/bot1:a/sendMessage", json={"chat_id": -1001, "text": "x"}))
        while not await (await http.get(f"{url}/_sim/log")).read():
            pass

        process.send_signal(number)
        async with asyncio.timeout(20):
            code = await process.wait()
        await asyncio.gather(hanging, return_exceptions=True)

    assert code == 0


async def test_after_a_sigkill_under_load_the_log_holds_every_answered_message(tmp_path: Path):
    log = tmp_path / "log"
    answered: list[str] = []

    async def post_until_it_dies(http: aiohttp.ClientSession, url: str, poster: int) -> None:
        with contextlib.suppress(aiohttp.ClientError):
            for number in itertools.count():
                body = {"chat_id": -1001 - poster, "text": f"tag-{poster}-{number}"}
                async with http.post(f"{url}/bot{1 + poster}:a/sendMessage", json=body) as response:
                    answered.append(json.loads(await response.read())["result"]["text"])

    state = tmp_path / "state.json"
    tokens = [{"platform": "telegram", "token": f"{1 + poster}:a", "limits": []} for poster in range(16)]
    chats = [{"platform": "telegram", "id": -1001 - poster, "limits": []} for poster in range(16)]
    state.write_text(json.dumps({"tokens": tokens, "chats": chats}))
    async with (
        running("--state", str(state), "--log", str(log)) as (process, url),
        aiohttp.ClientSession() as http,
    ):
        posters = asyncio.gather(*(post_until_it_dies(http, url, poster) for poster in range(16)))
        await eventually(lambda: len(answered) >= 500)
        process.kill()
        await posters

    whole_lines = log.read_text().rpartition("\n")[0].splitlines()
    assert set(answered) <= {json.loads(line)["text"] for line in whole_lines}


async def test_a_reset_is_a_reset_under_the_loop_of_the_command(tmp_path: Path):
    async with running("--open") as (_, url), aiohttp.ClientSession() as http:
        await http.post(f"{url}/_sim/faults", json={"effect": {"reset": "after"}})
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(b"GET /bot1:a/getMe HTTP/1.1\r\nHost: sim\r\n\r\n")

        with pytest.raises(ConnectionResetError):
            await reader.readuntil(b"\r\n")
        writer.close()


async def test_a_state_file_that_makes_no_sense_is_named(tmp_path: Path):
    state = tmp_path / "state.json"
    state.write_text('{"chats": [{"platform": "telegram", "id": -1, "state": "sulking"}]}')

    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "autopost_simulator", "--state", str(state), stderr=asyncio.subprocess.PIPE
    )
    _, said = await process.communicate()

    assert process.returncode == 2
    assert b"$.chats[0].state" in b"".join(said.split())


async def test_it_prints_nothing_but_its_address():
    async with running("--open") as (process, url), aiohttp.ClientSession() as http:
        await http.post(f"{url}/bot1:secret/sendMessage", json={"chat_id": -1001, "text": "x"})
        await http.post(f"{url}/bot1:secret/nonsense")
        process.terminate()
        out, err = await process.communicate()

    assert (out, err) == (b"", b"")
