"""Posts keep streaming while every service is killed again and again: nothing accepted is lost."""

import asyncio
import random
import signal
from collections import Counter
from datetime import timedelta
from uuid import UUID, uuid4

import httpx
import pytest
from autopost_cli.development import TOKENS, WORKSPACE
from harness.eventually import eventually

from e2e.conftest import StartSystem
from e2e.system import System

pytestmark = pytest.mark.time_limit(480)

PLENTY = timedelta(minutes=2)
POSTS = 300
KILLS_EACH = 5
SERVICES = ("ingest", "dispatcher", "monitor", "bot")
FAST_LEASES = {
    "AUTOPOST_SENDING_LEASE": "12s",
    "AUTOPOST_PROVIDER_TIMEOUT": "8s",
    "AUTOPOST_RECOVER_INTERVAL": "500ms",
    "AUTOPOST_LOG_LEVEL": "error",
}


async def _unlimit(system: System, channels: list[UUID]) -> None:
    """Four channels without rates, so that the kills and not the limits decide what happens."""
    await system.database.execute(
        "UPDATE channels SET enabled = channel_id = ANY ($2), rate_rps = NULL, max_parallel = 20 "
        "WHERE workspace_id = $1",
        UUID(WORKSPACE),
        channels,
    )
    await system.database.execute("UPDATE platform_limits SET rate_rps = NULL WHERE workspace_id = $1", UUID(WORKSPACE))
    rows = await system.database.fetch("SELECT platform, target_id FROM channels WHERE channel_id = ANY ($1)", channels)
    chats = [{"platform": row["platform"], "id": int(row["target_id"]), "limits": []} for row in rows]
    await system.control("chats", chats)
    await system.control("faults", {"name": "slow", "effect": {"delay": 0.03}})
    tokens = {"telegram": TOKENS["AUTOPOST_DEMO_TELEGRAM_TOKEN"], "max": TOKENS["AUTOPOST_DEMO_MAX_TOKEN"]}
    await system.control("tokens", [{"platform": name, "token": token, "limits": []} for name, token in tokens.items()])


async def _insist(system: System, text: str) -> str:
    """Posts until it is taken in, as a careful sender does: the same source_ref each time."""
    source_ref = uuid4().hex

    async def taken() -> str | None:
        try:
            answer = await system.post(text=text, source_ref=source_ref)
        except httpx.HTTPError:
            return None
        return text if answer.status_code in (200, 202) else None

    return await eventually(taken, within=PLENTY)


async def _kill(system: System, name: str) -> int:
    """How many sends were in flight when the dispatcher died; nobody else holds any."""
    system.stack.kill(name, signal.SIGKILL)
    return (await system.statuses()).get("sending", 0) if name == "dispatcher" else 0


async def test_every_accepted_post_arrives_although_each_service_is_killed_five_times(
    start_system: StartSystem,
) -> None:
    system = await start_system(**FAST_LEASES)
    rows = await system.database.fetch(
        "SELECT channel_id FROM channels WHERE workspace_id = $1 AND title ~ ' [12]$'", UUID(WORKSPACE)
    )
    await _unlimit(system, [row["channel_id"] for row in rows])
    kills = [name for name in SERVICES for _ in range(KILLS_EACH)]
    random.Random(20261116).shuffle(kills)

    taken: list[str] = []
    in_flight = 0
    per_kill = POSTS // len(kills)
    for number, name in enumerate(kills):
        posts = [
            asyncio.create_task(_insist(system, f"post {number * per_kill + nth:03d}.")) for nth in range(per_kill)
        ]
        await asyncio.wait(posts, return_when=asyncio.FIRST_COMPLETED)
        in_flight += await _kill(system, name)
        taken += await asyncio.gather(*posts)
    for name in SERVICES:
        await system.stack.ready(name)

    async def quiet() -> bool:
        return not set(await system.statuses()) & {"queued", "retry", "claimed", "sending"}

    await eventually(quiet, within=PLENTY)
    accepted = Counter((call["text"], call["chat"]) for call in await system.accepted())
    assert await system.statuses() == {"sent": POSTS * len(rows)}
    assert {text for text, _ in accepted} == set(taken)
    assert len(accepted) == POSTS * len(rows)
    assert accepted.total() - len(accepted) <= in_flight
