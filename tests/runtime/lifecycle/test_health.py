"""Alive, ready, measured: three different answers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import aiohttp
import pytest
from autopost_runtime.lifecycle.health import Health
from autopost_runtime.telemetry import metrics

Get = Callable[[str], Awaitable[tuple[int, Any]]]


@pytest.fixture
async def health() -> AsyncIterator[Health]:
    made = Health(check_limit=timedelta(milliseconds=100))
    await made.start("127.0.0.1", 0)
    made.begun()
    yield made
    await made.stop()


@pytest.fixture
async def get(health: Health) -> AsyncIterator[Get]:
    async with aiohttp.ClientSession(f"http://127.0.0.1:{health.port}") as session:

        async def ask(path: str) -> tuple[int, Any]:
            async with session.get(path) as answer:
                plain = path == "/metrics"
                return answer.status, await answer.text() if plain else await answer.json()

        yield ask


async def passing() -> None:
    return None


async def failing() -> None:
    raise ConnectionError("postgresql://u:hunter2@db is away")


async def hanging() -> None:
    await asyncio.Event().wait()


async def refusing() -> bool:
    return False


async def test_ready_when_every_check_passes(health, get):
    health.check("database", passing)
    health.inform("nats", lambda: {"connected": False})

    status, body = await get("/readyz")

    assert status == 200
    assert body == {"ready": True, "checks": {"begun": "ok", "database": "ok"}, "info": {"nats": {"connected": False}}}


async def test_a_service_that_has_not_begun_is_alive_and_not_ready():
    """Its checks are made while it starts: that none fails yet says nothing."""
    health = Health()

    ready, told = await health.readiness()

    assert (ready, told["checks"]) == (False, {"begun": "failed"})


@pytest.mark.parametrize(
    ("check", "word"), [(failing, "ConnectionError"), (hanging, "no response"), (refusing, "failed")]
)
async def test_one_failing_check_makes_it_unready_and_is_named(health, get, check, word):
    health.check("database", passing)
    health.check("consumer", check)

    status, body = await get("/readyz")

    assert status == 503
    assert body["checks"]["database"] == "ok"
    assert word in body["checks"]["consumer"]
    assert "hunter2" not in str(body)


async def test_information_never_makes_it_unready(health, get):
    def broken() -> object:
        raise ValueError

    health.inform("nats", broken)
    health.inform("odd", object)

    status, body = await get("/readyz")

    assert status == 200
    assert body["info"] == {"nats": "ValueError", "odd": "TypeError"}


async def test_alive_asks_nobody(health, get):
    health.check("database", failing)

    assert await get("/healthz") == (200, {"alive": True})


async def test_metrics_are_prometheus_text(health, get, measured):
    metrics.counter("autopost_test_scraped", "Scraped.").add(1)

    status, text = await get("/metrics")

    assert status == 200
    assert "# TYPE autopost_test_scraped_total counter" in text
    assert "process_resident_memory_bytes" in text
