"""A dispatcher killed anywhere inside a delivery of several parts: every part arrives, and at most one twice."""

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from autopost_contracts.payload import Button
from autopost_contracts.plan import MediaPart, Plan, PlannedMedia, TextPart
from dispatcher.support.killed_dispatcher import LEASE
from dispatcher.support.running_dispatcher import RunningDispatchers, configured, running_dispatcher
from harness.databases import Database
from harness.eventually import eventually
from harness.full import FULL
from harness.telegram_media import png

pytestmark = pytest.mark.time_limit(480)

KILLS = 20 if FULL else 4
PARTS = 3
PLENTY = 60.0
BETWEEN = [
    "claimed",
    *(f"{moment}:{part}" for part in range(PARTS) for moment in ("unrecorded", "recorded")),
    "uncommitted",
    "committed",
]
"""Where a dispatcher kills itself; an answer that was not recorded is all that may be lost."""
METHODS = {
    "telegram": [("sendMessage", 1), ("sendMediaGroup", 1), ("sendMessage", 2)],
    "max": [("POST /messages", 1), ("POST /messages", 2), ("POST /messages", 3)],
}
"""By part: the call that brings it, and the how manieth of its kind in a chat that is."""


class Grave:
    """Forks dispatchers and tells how they ended."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def bear(self, point: str) -> int:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(f"{point}\n".encode())
        return int(await self._process.stdout.readline())

    async def bury(self) -> int:
        assert self._process.stdout
        async with asyncio.timeout(PLENTY):
            return int(await self._process.stdout.readline())


@pytest.fixture
async def grave(database: Database, stage: RunningDispatchers) -> AsyncIterator[Grave]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dispatcher.support.killed_dispatcher", database.url, stage.simulator),
        msgspec.json.encode(stage.bucket).decode(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )
    yield Grave(process)
    os.killpg(process.pid, signal.SIGKILL)  # with whatever it has forked
    await process.wait()


@pytest.fixture(params=["telegram", "max"])
async def chats(request: pytest.FixtureRequest, stage: RunningDispatchers) -> list[str]:
    """One for each death, each with the same post: a long text, an album, buttons."""
    platform: str = request.param
    chats = await stage.channels(platform, KILLS)
    pictures = [await stage.store(png(2, height), "image/png") for height in (2, 3)]
    media = tuple(PlannedMedia(type="image", blob_ref=ref, content_type="image/png") for ref in pictures)
    buttons = TextPart(text="buttons", buttons=((Button("Go", "https://example.org/"),),))
    parts = (TextPart(text="text"), MediaPart(media=media), buttons)
    await stage.enqueue(Plan(version=2, platform=platform, parts=parts))
    return chats


async def recover(database: Database, stage: RunningDispatchers) -> None:
    """What the monitor does when the leases are over, and the wait that follows, without waiting."""
    tenant = stage.tenant
    await tenant.db.execute(
        "SELECT recover_sending_leases($1, clock_timestamp() + $2::interval)", tenant.workspace, LEASE * 2
    )
    await tenant.db.execute("UPDATE deliveries SET next_retry_at = now() WHERE status = 'retry'")
    async with running_dispatcher(configured(database.url, stage.simulator, stage.bucket)):
        assert await stage.settled() == {"sent": KILLS}


def arrived(accepted: list[dict[str, Any]], chat: str) -> Counter[str]:
    """Of each part, how often; an album is known by having no text."""
    return Counter(line["text"] or "album" for line in accepted if line["chat"] == chat)


@pytest.mark.parametrize("point", BETWEEN)
async def test_a_kill_between_two_steps_repeats_at_most_what_was_not_recorded(
    database: Database, stage: RunningDispatchers, grave: Grave, chats: list[str], point: str
) -> None:
    for _ in chats:
        await grave.bear(point)
        assert await grave.bury() == -signal.SIGKILL

    await recover(database, stage)

    once = Counter(text=1, album=1, buttons=1)
    kind, _, part = point.partition(":")
    again = Counter([list(once)[int(part)]]) if kind == "unrecorded" else Counter[str]()
    accepted = await stage.accepted()
    assert [arrived(accepted, chat) for chat in chats] == [once + again] * KILLS


@pytest.mark.parametrize("part", range(PARTS))
async def test_a_kill_inside_a_call_repeats_at_most_that_part(
    database: Database, stage: RunningDispatchers, grave: Grave, chats: list[str], part: int
) -> None:
    """The platform has accepted it and does not answer."""
    method, nth = METHODS["max" if chats[0].startswith("-7") else "telegram"][part]
    for chat in chats:
        fault = {"method": method, "chat": int(chat), "nth": nth, "effect": {"hang": True, "accept": True}}
        await stage.control("faults", {"name": chat} | fault)

    for number in range(KILLS):
        child = await grave.bear("hang")

        async def hung(wanted: int = number + 1) -> bool:
            return sum(line["verdict"] == "hung" for line in await stage.log()) == wanted

        await eventually(hung, within=timedelta(seconds=30))
        os.kill(child, signal.SIGKILL)
        await grave.bury()
        await stage.tenant.db.execute(
            "UPDATE media_blobs SET updated_at = 'epoch'"
        )  # nobody waits for the dead for long
    await recover(database, stage)

    once = Counter(text=1, album=1, buttons=1)
    accepted = await stage.accepted()
    assert [arrived(accepted, chat) for chat in chats] == [once + Counter([list(once)[part]])] * KILLS
