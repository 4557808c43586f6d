"""``@maxhub/max-bot-api``, the official client of MAX, used as it is: only the base URL is ours.

It needs node, and the first time the registry of npm; afterwards the packages come from pytest's cache.
"""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from harness.foreign_programs import NPM, npm_packages, results

pytestmark = pytest.mark.time_limit(480)

CHANNEL = -7001
TOKEN = "max-token"
VIDEO = bytes(range(256)) * 800


def refused(status: int, code: str | None, message: str) -> dict[str, Any]:
    known = {"status": status, "message": message, "raised": "MaxError"}
    return known if code is None else known | {"code": code}


RESULTS = {
    "me": True,
    "chat": "News",
    "rights": True,
    "action": {"success": True},
    "text": {"text": "plain", "kinds": []},
    "formatted": {"text": "bold", "kinds": []},
    "picture": {"text": "caption", "kinds": ["image"]},
    "pictureFromMemory": {"text": "caption", "kinds": ["image"]},
    "pictureByAddress": {"text": None, "kinds": ["image"]},
    "album": {"text": "album", "kinds": ["image", "image", "video"]},
    "sound": {"text": None, "kinds": ["audio"]},
    "fileWithButtons": {"text": "read", "kinds": ["inline_keyboard", "file"]},
    "editAndDelete": [True, {"text": "new", "kinds": ["inline_keyboard"]}, True, False],
    "answer": ["yes", True, {"text": "done", "kinds": []}],
    "subscriptions": [True, [["https://bot.example.org/hook", ["message_created"]]], True],
    "deadToken": refused(401, "verify.token", "Invalid access_token"),
    "nobody": refused(404, "chat.not.found", "Chat -404 not found"),
    "tooLong": refused(400, "proto.payload", "text: size must be between 0 and 4000"),
    "wideRow": refused(400, "proto.payload", "buttons: at most 3 buttons are allowed in this row"),
    "fileAndPicture": refused(400, "proto.payload", "attachments: `file` must be the only attachment in message"),
    "forbiddenFile": refused(415, "", "File extension is forbidden"),
    "neverReady": {"text": "ready at last", "kinds": ["image"]},
}


@pytest.fixture(scope="module")
def packages(pytestconfig: pytest.Config) -> Path:
    return npm_packages(pytestconfig)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in {"a.png": b"\x89PNG\r\n", "a.mp4": VIDEO, "a.mp3": b"ID3", "a.txt": b"words"}.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


async def run(packages: Path, *arguments: str) -> dict[str, Any]:
    return await results(["node", str(NPM / "calls.mjs"), *arguments], packages)


async def test_every_call_of_the_official_client_ends_as_it_should(client, packages, folder):
    await client.control("chats", {"platform": "max", "id": 9 ^ 1 << 40, "type": "dialog", "limits": []})

    results = await run(packages, client.base, TOKEN, str(CHANNEL), str(folder))

    assert list(results) == list(RESULTS)
    assert results == RESULTS


async def test_the_official_client_uploads_a_video_in_pieces(client, packages, folder):
    await client.control("chats", {"platform": "max", "id": 9 ^ 1 << 40, "type": "dialog", "limits": []})

    await run(packages, client.base, TOKEN, str(CHANNEL), str(folder))

    pieces = await client.log("?method=POST%20/upload/video")
    known = [file for file in (await client.ask("GET", "/_sim/max/files")).body["files"] if file["type"] == "video"]
    assert [entry["status"] for entry in pieces] == [201] * (len(pieces) - 1) + [200]
    assert len(pieces) > 1
    assert [file["sha256"] for file in known] == [hashlib.sha256(VIDEO).hexdigest()]
