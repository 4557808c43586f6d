"""The examples of the repository do what they say, against the running service."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness.databases import Database
from ingest.support.ingest_client import DEMO, Ear, IngestClient
from ingest.support.ingest_server import opened

EXAMPLES = Path(__file__).parents[3] / "examples"
RELEASE = {
    "github.repository": "we/shop",
    "github.event.release.name || github.event.release.tag_name": 'Spring "24" $(touch hacked) `id` \'; exit 3',
    "github.event.release.tag_name": "v1.4",
    "github.event.release.html_url": "https://git.example/we/shop/releases/v1.4",
}


@pytest.fixture
async def client(seeded_database: Database) -> Any:
    async with opened(seeded_database) as made:
        yield made


LOST = ["closed", "reset", "halfway"]


@asynccontextmanager
async def losing_the_first_answer(client: IngestClient, way: str) -> AsyncIterator[IngestClient]:
    """Stands before the client as a proxy does, and dies of its first answer."""
    answers = 0

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal answers
        answer = await forwarded(client, reader)
        answers += 1
        if answers == 1 and way == "reset":
            writer.transport.abort()
            return
        kept = {"closed": 0, "halfway": len(answer) - 10}[way] if answers == 1 else len(answer)
        writer.write(answer[:kept])
        writer.close()

    async with await asyncio.start_server(pass_on, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield IngestClient(f"http://127.0.0.1:{port}", client.http, client._database, Ear())
    assert answers == 2


async def forwarded(client: IngestClient, reader: asyncio.StreamReader) -> bytes:
    """The whole answer to the request that comes."""
    request = await whole(reader)
    there, back = await asyncio.open_connection("127.0.0.1", int(client.url.rpartition(":")[2]))
    back.write(request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
    answer = await there.read()
    back.close()
    return answer


async def whole(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    [length] = [int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return head + await reader.readexactly(length)


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[IngestClient]:
    """Not autopost."""

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await whole(reader)
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(say, "127.0.0.1", 0) as server:
        yield IngestClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", None, None, Ear())  # type: ignore[arg-type]


async def run(client: IngestClient, *command: str, cwd: Path, secret: str = DEMO, **env: str) -> tuple[int, str]:
    known = {"AUTOPOST_URL": client.url, "AUTOPOST_SECRET": secret, "PATH": os.environ["PATH"]}
    process = await asyncio.create_subprocess_exec(
        *command, cwd=cwd, env={**known, **env}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await asyncio.wait_for(process.communicate(), timeout=60)
    return process.returncode or 0, output.decode()


async def post(client: IngestClient) -> dict[str, Any]:
    """The one that is stored."""
    [row] = await client._database.pool.fetch("SELECT payload, tags, source_ref FROM messages")
    return {**json.loads(row["payload"]), "tags": row["tags"], "source_ref": row["source_ref"]}


async def test_the_script_posts_a_file_once_and_says_what_became_of_it(client: IngestClient, tmp_path: Path) -> None:
    command = (str(EXAMPLES / "post.sh"), str(EXAMPLES / "post.json"))

    first, again = [await run(client, *command, cwd=tmp_path) for _ in range(2)]

    assert (first[0], json.loads(first[1])["status"]) == (0, "accepted"), first
    assert (again[0], json.loads(again[1])["status"]) == (0, "duplicate")
    assert (await post(client))["text"].startswith("<b>We are open again</b>")


@pytest.mark.parametrize("way", LOST)
async def test_the_script_asks_again_for_an_answer_that_was_lost(
    client: IngestClient, tmp_path: Path, way: str
) -> None:
    async with losing_the_first_answer(client, way) as losing:
        code, output = await run(losing, str(EXAMPLES / "post.sh"), str(EXAMPLES / "post.json"), cwd=tmp_path)

    assert (code, '"status":"duplicate"' in output) == (0, True), output
    assert await post(client)


async def test_the_script_shows_what_would_happen(client: IngestClient, tmp_path: Path) -> None:
    command = (str(EXAMPLES / "post.sh"), str(EXAMPLES / "post.json"))

    code, output = await run(client, *command, cwd=tmp_path, DRY_RUN="1")

    assert (code, json.loads(output)["counts"]["enqueued"]) == (0, 40)
    assert await client.sql("SELECT count(*) FROM messages") == 0


async def test_the_script_fails_with_the_refusal_in_words(client: IngestClient, tmp_path: Path) -> None:
    code, output = await run(
        client, str(EXAMPLES / "post.sh"), str(EXAMPLES / "post.json"), cwd=tmp_path, secret="wrong"
    )

    assert code != 0
    assert output.count("unknown or missing secret") == 1


async def test_python_posts_and_asks_again_without_posting_twice(client: IngestClient, tmp_path: Path) -> None:
    command = (sys.executable, "-I", str(EXAMPLES / "post.py"), "Привет, «мир»", "--tag", "News", "--source-ref", "1")

    first, again = [await run(client, *command, cwd=tmp_path) for _ in range(2)]

    assert (first[0], json.loads(first[1])["status"]) == (0, "accepted"), first
    assert (again[0], json.loads(again[1])["status"]) == (0, "duplicate")
    stored = await post(client)
    assert (stored["text"], stored["tags"], stored["source_ref"]) == ("Привет, «мир»", ["news"], "1")


@pytest.mark.parametrize("way", LOST)
async def test_python_asks_again_for_an_answer_that_was_lost(client: IngestClient, tmp_path: Path, way: str) -> None:
    async with losing_the_first_answer(client, way) as losing:
        code, output = await run(losing, sys.executable, "-I", str(EXAMPLES / "post.py"), "Hello", cwd=tmp_path)

    assert (code, json.loads(output)["status"]) == (0, "duplicate"), output
    assert await post(client)


@pytest.mark.parametrize("status", ["200 OK", "404 Not Found"])
@pytest.mark.parametrize("body", [b"", b"<h1>Welcome</h1>", b"[]"])
async def test_python_survives_an_answer_that_is_not_ours(tmp_path: Path, status: str, body: bytes) -> None:
    async with answering(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body) as nobody:
        code, output = await run(nobody, sys.executable, "-I", str(EXAMPLES / "post.py"), "Hello", cwd=tmp_path)

    told = json.loads(output)
    assert (code, told["status"], told["detail"]) == (1, int(status[:3]), body.decode())


async def test_python_shows_what_would_happen_and_what_was_refused(client: IngestClient, tmp_path: Path) -> None:
    command = (sys.executable, "-I", str(EXAMPLES / "post.py"), "<b>a</b>", "--parse-mode", "HTML")

    dry = await run(client, *command, "--dry-run", cwd=tmp_path)
    refused = await run(client, *command, "--link", "nowhere", cwd=tmp_path)

    assert (dry[0], json.loads(dry[1])["verdict"]) == (0, "accepted")
    assert (refused[0], json.loads(refused[1])["field"]) == (1, "links[0]")
    assert await client.sql("SELECT count(*) FROM messages") == 0


async def test_python_needs_nothing_installed() -> None:
    imported = {
        line.split()[1].split(".")[0]
        for line in (EXAMPLES / "post.py").read_text().splitlines()
        if line.startswith(("import ", "from "))
    }

    assert imported <= set(sys.stdlib_module_names)


async def test_the_workflow_announces_a_release_once_whatever_it_is_called(
    client: IngestClient, tmp_path: Path
) -> None:
    workflow, step = release()
    env = {name: filled(value, client) for name, value in step["env"].items()}

    first, again = [await run(client, "bash", "-e", "-c", step["run"], cwd=tmp_path, **env) for _ in range(2)]

    assert workflow[True] == {"release": {"types": ["published"]}}  # what YAML makes of the word on
    assert "${{" not in step["run"]
    assert (first[0], json.loads(first[1])["status"]) == (0, "accepted"), first
    assert (again[0], json.loads(again[1])["status"]) == (0, "duplicate")
    stored = await post(client)
    assert stored["text"] == f"we/shop: {RELEASE['github.event.release.name || github.event.release.tag_name']}"
    assert stored["links"] == ["https://git.example/we/shop/releases/v1.4"]
    assert (stored["tags"], stored["source_ref"]) == (["release"], "release:we/shop:v1.4")
    assert not (tmp_path / "hacked").exists()


@pytest.mark.parametrize("way", LOST)
async def test_the_workflow_asks_again_for_an_answer_that_was_lost(
    client: IngestClient, tmp_path: Path, way: str
) -> None:
    _, step = release()
    async with losing_the_first_answer(client, way) as losing:
        env = {name: filled(value, losing) for name, value in step["env"].items()}
        code, output = await run(losing, "bash", "-e", "-c", step["run"], cwd=tmp_path, **env)

    assert (code, '"status":"duplicate"' in output) == (0, True), output
    assert await post(client)


async def test_the_workflow_fails_with_the_refusal_in_words(client: IngestClient, tmp_path: Path) -> None:
    _, step = release()
    env = {name: filled(value, client) for name, value in step["env"].items()} | {"AUTOPOST_SECRET": "wrong"}

    code, output = await run(client, "bash", "-e", "-c", step["run"], cwd=tmp_path, **env)

    assert code != 0
    assert output.count("unknown or missing secret") == 1


def release() -> tuple[dict[Any, Any], dict[str, Any]]:
    """The workflow and its only step."""
    workflow = yaml.safe_load((EXAMPLES / "release.yml").read_text())
    [step] = workflow["jobs"]["announce"]["steps"]
    return workflow, step


def filled(expression: str, client: IngestClient) -> str:
    """As the runner would."""
    known = {**RELEASE, "vars.AUTOPOST_URL": client.url, "secrets.AUTOPOST_SECRET": DEMO}
    return known[expression.removeprefix("${{").removesuffix("}}").strip()]
