"""Several dispatchers, each a process of its own, do the work of one: nothing twice, nothing too early."""

import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from autopost_contracts.plan import MediaPart, Plan, PlannedMedia, TextPart
from dispatcher.support.running_dispatcher import RunningDispatchers, replica
from harness.databases import Database
from harness.telegram_media import png

pytestmark = pytest.mark.time_limit(480)

PLENTY = timedelta(minutes=5)


def text_plan(text: str) -> Plan:
    return Plan(version=2, platform="telegram", parts=(TextPart(text=text),))


async def test_of_ten_thousand_deliveries_each_is_accepted_once(database: Database, stage: RunningDispatchers) -> None:
    chats = await stage.channels("telegram", 200, max_parallel=20)
    posts = [f"post {number}" for number in range(50)]
    await stage.enqueue(*map(text_plan, posts))

    async with replica(stage, database.url), replica(stage, database.url):
        assert await stage.settled(PLENTY) == {"sent": len(chats) * len(posts)}

    seen = Counter((line["chat"], line["text"]) for line in await stage.accepted())
    assert seen == Counter((chat, post) for chat in chats for post in posts)


async def test_a_retry_after_holds_for_all_replicas(database: Database, stage: RunningDispatchers) -> None:
    """What is claimed when the wait is written down cannot be called back; then nothing is taken until it is over."""
    chats = await stage.channels("telegram", 20, max_parallel=5)
    await stage.tenant.group(50, "telegram")
    await stage.enqueue(*(text_plan(f"post {number}") for number in range(20)))
    await stage.control("faults", {"nth": 100, "effect": {"status": 429, "retry_after": 2}})

    async with replica(stage, database.url), replica(stage, database.url):
        assert await stage.settled(PLENTY) == {"sent": len(chats) * 20}

    log = await stage.log()
    [told] = [line for line in log if line["status"] == 429]
    took = await stage.tenant.db.fetch(
        "SELECT e.ts, e.ts > w.ts AS later FROM events e, events w "
        "WHERE e.action = 'send_attempt' AND w.error ->> 'code' = 'rate_limited'"
    )
    later = [row["ts"] for row in took if row["later"]]
    assert len(later) > 200
    assert min(later) >= by_the_database(told["answered_ns"]) + timedelta(seconds=1.9)
    early = [line for line in log if line["arrived_ns"] < told["answered_ns"] + 1_900_000_000]
    assert len(early) <= len(took) - len(later)


def by_the_database(monotonic_ns: int) -> datetime:
    """A moment of the simulator's clock, by the clock that events are written with."""
    ahead = time.time_ns() - time.monotonic_ns()
    return datetime.fromtimestamp((monotonic_ns + ahead) / 1e9, UTC)


async def test_a_new_picture_goes_up_once_for_all_channels_of_a_bot(
    database: Database, stage: RunningDispatchers
) -> None:
    for platform in ("telegram", "max"):
        chats = await stage.channels(platform, 40)
        picture = PlannedMedia(type="image", blob_ref=await stage.store(png(), "image/png"), content_type="image/png")
        start = (await stage.log() or [{"seq": 0}])[-1]["seq"]
        await stage.enqueue(Plan(version=2, platform=platform, parts=(MediaPart(media=(picture,)),)))

        async with replica(stage, database.url), replica(stage, database.url):
            assert (await stage.settled(PLENTY)).keys() == {"sent"}

        log = await stage.log(after=start)
        assert sum(line["uploads"] for line in log) == 1
        assert {line["chat"] for line in log if line["message_ids"]} == set(chats)
        await stage.tenant.db.execute("UPDATE channels SET enabled = false")
        await stage.tenant.db.execute("DELETE FROM media_origin")


async def test_large_videos_go_through_in_bounded_memory(database: Database, stage: RunningDispatchers) -> None:
    size = 50 * 1024 * 1024
    videos = [await stage.store(bytes([number]) * size, "video/mp4") for number in range(4)]
    items = [PlannedMedia(type="video", blob_ref=ref, content_type="video/mp4", size=size) for ref in videos]
    for platform in ("telegram", "max"):
        await stage.channels(platform, 1, max_parallel=4)
    async with replica(stage, database.url) as process:
        small = PlannedMedia(type="image", blob_ref=await stage.store(png(), "image/png"), content_type="image/png")
        await _bring(stage, small)  # all that it needs is loaded then
        before = _peak(process.pid)

        await _bring(stage, *items)

        assert _peak(process.pid) - before < 32 * 1024
    brought = [line for line in await stage.log() if line["uploads"]][2:]
    assert len(brought) == 8
    for platform in ("telegram", "max"):
        four = [line for line in brought if line["platform"] == platform]
        assert max(line["arrived_ns"] for line in four) < min(line["answered_ns"] for line in four)


async def _bring(stage: RunningDispatchers, *items: PlannedMedia) -> None:
    """Each in a post of its own, to the channels of both platforms."""
    before = (await stage.statuses()).get("sent", 0)
    await stage.enqueue(*(Plan(version=2, platform="any", parts=(MediaPart(media=(item,)),)) for item in items))
    assert await stage.settled(PLENTY) == {"sent": before + 2 * len(items)}


def _peak(pid: int) -> int:
    """KiB that the process ever held at once."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
