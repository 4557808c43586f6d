"""Postgres is restarted again and again under load: no process ends, nothing is lost, held or sent twice.

The load is posts, customers of the bot and publications.
"""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import httpx
from autopost_cli.development import TOKENS, WORKSPACE
from autopost_cli.embedded.postgres import PostgresServer
from autopost_cli.stack.prepare import create_database
from harness.eventually import eventually

from e2e.conftest import StartSystem
from e2e.system import System
from e2e.test_customers import Person

PLENTY = timedelta(minutes=2)
POSTS = 60
RESTARTS = 5
CUSTOMERS, QUESTIONS = 4, 4
PUBLICATIONS = 3
"""Of each channel, as far apart as publications of one channel are at least."""
APART = timedelta(seconds=3)
SERVICES = ("ingest", "dispatcher", "monitor", "bot")


async def _query(url: str, query: str, *values: Any) -> list[asyncpg.Record]:
    """Over a connection of its own: no other outlives a restart."""
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetch(query, *values)
    finally:
        await connection.close()


async def _prepare(system: System, url: str) -> int:
    """Two channels of each platform: without rates, and particular about what may have arrived. How many."""
    chosen = await _query(
        url,
        "UPDATE channels SET enabled = title ~ ' [12]$', rate_rps = NULL, max_parallel = 20, "
        "on_ambiguous = CASE WHEN title ~ ' 1$' THEN 'hold' ELSE 'verify' END "
        "WHERE workspace_id = $1 RETURNING enabled, platform, target_id",
        UUID(WORKSPACE),
    )
    await _query(url, "UPDATE platform_limits SET rate_rps = NULL")
    chats = [
        {"platform": row["platform"], "id": int(row["target_id"]), "limits": []} for row in chosen if row["enabled"]
    ]
    await system.control("chats", chats)
    tokens = {"telegram": TOKENS["AUTOPOST_DEMO_TELEGRAM_TOKEN"], "max": TOKENS["AUTOPOST_DEMO_MAX_TOKEN"]}
    await system.control("tokens", [{"platform": name, "token": token, "limits": []} for name, token in tokens.items()])
    await system.control("faults", {"name": "slow", "effect": {"delay": 0.05}})
    return len(chats)


async def _insist(system: System, text: str, answers: Counter[int]) -> None:
    """As a careful sender does: the same source_ref until it is taken in."""
    source_ref = uuid4().hex

    async def taken() -> bool:
        try:
            answer = await system.post(text=text, source_ref=source_ref)
        except httpx.TimeoutException:
            return False
        answers[answer.status_code] += 1
        return answer.status_code in (200, 202)

    await eventually(taken, within=PLENTY)


async def _schedule(system: System, url: str) -> set[str]:
    """Publications of every channel, due one after the other from now on. Their texts."""
    headers = {"Authorization": "Bearer demo-publications-secret-for-development", "If-Match": '"1"'}
    rows = await _query(
        url, "SELECT channel_id::text FROM channels WHERE workspace_id = $1 AND enabled", UUID(WORKSPACE)
    )
    begin, texts = datetime.now(UTC), set[str]()
    for row in rows:
        for number in range(1, PUBLICATIONS + 1):
            texts.add(text := f"advertisement {uuid4().hex}")
            draft = {"channel_id": row[0], "creative_draft": {"text": text}}
            path = f"{system.places['ingest']}/v1/publications"
            drafted = (await system.http.post(path, headers=headers, json=draft)).raise_for_status().json()
            path = f"{path}/{drafted['publication_id']}"
            (await system.http.post(f"{path}/approve", headers=headers)).raise_for_status()
            at = {"at": (begin + APART * number).isoformat()}
            (await system.http.post(f"{path}/schedule", headers=headers, json=at)).raise_for_status()
    return texts


async def _ask(person: Person) -> None:
    """Each question when the one before is answered: the platform calls the webhook again until it is taken in."""
    await person.does("start")
    for number in range(1, QUESTIONS + 1):
        await eventually(lambda number=number: _has_answers(person, number), within=PLENTY)  # type: ignore[misc]
        await person.does("write", text=f"доставка {number}")
    await eventually(lambda: _has_answers(person, QUESTIONS + 1), within=PLENTY)


async def _has_answers(person: Person, count: int) -> bool:
    return len(await person.calls()) >= count


async def test_restarts_of_postgres_end_no_process_and_leave_nothing_in_doubt(
    start_system: StartSystem, own_cluster: PostgresServer
) -> None:
    await create_database(own_cluster.url(), "autopost")
    url = own_cluster.url("autopost")
    system = await start_system(AUTOPOST_DATABASE_URL=url, AUTOPOST_POLL_INTERVAL="500ms")
    channels = await _prepare(system, url)
    pids = {name: system.stack.pid(name) for name in SERVICES}
    texts = [f"post {number} {uuid4().hex}" for number in range(POSTS)]
    answers: Counter[int] = Counter()

    async def post_all() -> None:
        for text in texts:
            await _insist(system, text, answers)

    advertised = await _schedule(system, url)
    customers = [Person(system, 900 + number) for number in range(CUSTOMERS)]
    working = asyncio.gather(post_all(), *map(_ask, customers))
    for nth in range(1, RESTARTS + 1):
        due = nth * POSTS * channels // (RESTARTS + 2)
        await eventually(lambda due=due: _has_accepted(system, due), within=PLENTY)  # type: ignore[misc]
        await own_cluster.stop()
        await own_cluster.start()
    await working

    await eventually(lambda: _is_settled(url, POSTS * channels + len(advertised)), within=PLENTY)
    held = await _query(url, "SELECT count(*) FROM events WHERE action = 'held'")
    calls = await system.accepted()
    arrived = Counter((call["text"], call["chat"]) for call in calls if call["text"] in texts)
    published = Counter(call["text"] for call in calls if call["text"] in advertised)
    standing = await _query(url, "SELECT DISTINCT status FROM publications")

    assert {name: system.stack.pid(name) for name in SERVICES} == pids
    assert answers.keys() <= {200, 202, 503}
    assert held[0][0] == 0
    assert (len(arrived), set(arrived.values())) == (POSTS * channels, {1})
    assert published == Counter(advertised)
    assert [row["status"] for row in standing] == ["published"]
    assert [len(await one.calls()) for one in customers] == [QUESTIONS + 1] * CUSTOMERS


async def _has_accepted(system: System, calls: int) -> bool:
    return len(await system.accepted()) >= calls


async def _is_settled(url: str, deliveries: int) -> bool:
    rows = await _query(
        url, "SELECT status::text, count(*) FROM deliveries WHERE workspace_id = $1 GROUP BY 1", UUID(WORKSPACE)
    )
    return {row["status"]: row["count"] for row in rows} == {"sent": deliveries}
