"""The shop bot: an update to its call, turns a second by one and by two replicas, and one decision."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from http import HTTPStatus
from statistics import median
from uuid import uuid4

import aiohttp
from autopost_bot.engine.next_turns import next_turns
from autopost_bot.engine.ruleset import load_ruleset
from autopost_bot.engine.turn import Conversation, Update
from autopost_contracts.ids import EndpointId, WorkspaceId

from autopost_bench.machine import anchors
from autopost_bench.machine.server import BenchError, BenchServer, connected, vacuum
from autopost_bench.machine.tenants import Tenant, statement
from autopost_bench.measures.latency import WARM_UP, latencies
from autopost_bench.programs import bare_chain, receiver
from autopost_bench.programs.children import child
from autopost_bench.programs.receiver import receiving
from autopost_bench.programs.services import services_at
from autopost_bench.report.figures import Figures, percentile

WORKSPACES = 200
PAUSED = 100_000
RULES, KEYWORDS, LENGTH = 200, 10, 200
DECISIONS = 2_000
ENDPOINT = """
INSERT INTO workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, ingress_rps)
SELECT workspace_id, $1, 'bot_webhook', encode(sha256(convert_to(workspace_id::text, 'UTF8')), 'hex'), NULL
FROM workspaces
RETURNING workspace_id
"""


async def measure(server: BenchServer, figures: Figures) -> None:
    await answering(server, figures)
    for repetition in range(server.counts.repetitions):
        server.say(f"bot, {repetition + 1} of {server.counts.repetitions}")
        await anchors.measure(server, figures, beside="bot.")
        async with shops(server) as url:
            figures.record("bot.turns", await drained(server, url, 1))
            figures.record("bot.turns_of_two", await drained(server, url, 2))
        async with shops(server) as url:
            async with connected(url) as connection:
                await connection.execute(statement("bot_history"), server.counts.idle_chats, PAUSED)
            await vacuum(url)
            figures.record("bot.turns_late", await drained(server, url, 1))
        figures.record("bot.decide", decision() * 1e6, "microseconds")


@contextlib.asynccontextmanager
async def shops(server: BenchServer, workspaces: int = WORKSPACES) -> AsyncIterator[str]:
    async with server.database("migrated") as url:
        async with connected(url) as connection:
            await connection.execute(statement("bot_tenants"), workspaces, server.counts.bot_chats)
            await connection.execute(statement("bot_settings"))
        yield url


async def drained(server: BenchServer, url: str, replicas: int) -> float:
    """Turns per second, from the start to the last reply that is recorded."""
    updates = server.counts.bot_updates
    async with connected(url) as connection:
        await connection.execute(statement("bot_updates"), updates)
        wanted = WORKSPACES * server.counts.bot_chats * updates
    await vacuum(url)
    async with contextlib.AsyncExitStack() as running:
        started = [await running.enter_async_context(child("bot_replica", url)) for _ in range(replicas)]
        for one in started:
            await one.expect("ready")
        begun, committed = time.perf_counter(), [0] * replicas
        enough = asyncio.Event()

        async def count(place: int) -> None:
            while not enough.is_set():
                committed[place] = int(await started[place].read())
                if sum(committed) >= wanted:
                    enough.set()

        for one in started:
            one.tell("go")
        counting = [asyncio.create_task(count(place)) for place in range(replicas)]
        async with asyncio.timeout(120):
            await enough.wait()
        seconds = time.perf_counter() - begun
        for task in counting:
            task.cancel()
        await asyncio.gather(*counting, return_exceptions=True)
    await check(url)
    return wanted / seconds


async def check(url: str) -> None:
    async with connected(url) as connection:
        left = await connection.fetchval(
            "SELECT (SELECT count(*) FROM bot_inbox WHERE processed_at IS NULL) "
            "+ (SELECT count(*) FROM bot_outbox WHERE sent_at IS NULL)"
        )
    if left:
        raise BenchError(f"{left} updates or replies are left")


def decision() -> float:
    """Seconds of the engine, for a text that only the last rule matches."""
    rows = [
        {
            "rule_id": f"rule{rule}",
            "intent": "bench",
            "pattern": {"mode": "contains", "keywords": [f"ключ{rule}слово{word}" for word in range(KEYWORDS)]},
            "response_template": "Answer",
        }
        for rule in range(RULES)
    ]
    ruleset = load_ruleset(rows, {})
    text = ("привет скажите пожалуйста " * LENGTH)[: LENGTH - 20] + f" ключ{RULES - 1}слово{KEYWORDS - 1}"
    now = time.time()
    times = []
    for number in range(DECISIONS):
        update = Update(key=str(number), kind="message", at=_utc(now), text=text)
        started = time.perf_counter()
        [turn] = next_turns(ruleset, Conversation(), [update])
        times.append(time.perf_counter() - started)
        if turn.outcome != "matched":
            raise BenchError("the engine did not find the rule")
    return median(times)


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


async def answering(server: BenchServer, figures: Figures) -> None:
    """All repetitions in one call: the services are started once."""
    server.say("bot: starting the services and the bare bot chain")
    async with shops(server, 1) as url, receiving(body=receiver.MAX) as provider:
        endpoint = EndpointId(uuid4())
        async with connected(url) as connection:
            workspace = WorkspaceId(await connection.fetchval(ENDPOINT, endpoint))
        tenant = Tenant(url=url, workspace_id=workspace, endpoint_id=endpoint, channels=0)
        settings = {"AUTOPOST_MAX_API_URL": provider.url, "AUTOPOST_BENCH_TOKEN": "opens-nothing"}
        async with services_at(tenant, None, "ingest", "bot", **settings) as stack:
            nats_url = str(stack.backends.nats_url)
            await bare_chain.prepare(url, nats_url)
            where = (url, nats_url, provider.url)
            async with (
                child("bare_chain", "webhook", *where) as webhook,
                child("bare_chain", "answerer", *where) as answerer,
                aiohttp.ClientSession(headers={"X-Max-Bot-Api-Secret": tenant.secret}) as session,
            ):
                await answerer.expect("ready")
                chains = {
                    "bot": writing(session, f"{stack.urls['ingest']}/v1/bot/max"),
                    "bare_bot": writing(session, await webhook.read()),
                }
                for send in chains.values():
                    await latencies(send, provider, WARM_UP)
                for _ in range(server.counts.repetitions):
                    for name, send in chains.items():
                        found = await latencies(send, provider, server.counts.latencies)
                        for label, part in (("p50", 0.5), ("p99", 0.99)):
                            figures.record(f"{name}.{label}", percentile(found, part) * 1e3, "milliseconds")


def writing(session: aiohttp.ClientSession, url: str) -> Callable[[], Awaitable[float]]:
    """A message of another customer each time, as MAX sends it."""
    number = 0

    async def send() -> float:
        nonlocal number
        number += 1
        body = json.dumps(update(number)).encode()
        started = time.monotonic()
        async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as answer:
            await answer.read()
        if answer.status not in (HTTPStatus.OK, HTTPStatus.ACCEPTED):
            raise BenchError(f"an update was answered with {answer.status}")
        return started

    return send


def update(number: int) -> dict[str, object]:
    now = int(time.time() * 1000)
    return {
        "update_type": "message_created",
        "timestamp": now,
        "message": {
            "sender": {"user_id": number, "name": "Customer", "is_bot": False},
            "recipient": {"chat_id": 1_000_000 + number, "chat_type": "dialog", "user_id": 1},
            "timestamp": now,
            "body": {"mid": f"mid.{uuid4().hex}", "seq": number, "text": "please tell me about word1"},
        },
    }
