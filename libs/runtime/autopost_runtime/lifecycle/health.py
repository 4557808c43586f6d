"""``/healthz``, ``/readyz`` and ``/metrics`` on a separate port, without spans.

Alive: the event loop responds. Ready: the service has started and every check passes. The state of NATS is shown but
never makes a service unready: without NATS it is only slower.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
from aiohttp import web

from autopost_runtime.http.web import Site, serve
from autopost_runtime.secrets.redaction import redact
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

Check = Callable[[], Awaitable[object]]
"""Passes unless it raises or returns ``False``."""

Fact = Callable[[], object]

CHECK_LIMIT = timedelta(seconds=2)
STOP_LIMIT = timedelta(seconds=0.5)
HEAD_TIMEOUT = timedelta(seconds=5)
CONNECTIONS = 64
CONNECTIONS_PER_ADDRESS = 32
"""For probes and scrapers; more connections get 503, so that they cannot exhaust the file descriptors."""


class Health:
    def __init__(self, check_limit: timedelta = CHECK_LIMIT, head_timeout: timedelta = HEAD_TIMEOUT) -> None:
        self.port = 0
        self._head_timeout = head_timeout
        self._limit = check_limit.total_seconds()
        self._checks: dict[str, Check] = {}
        self._facts: dict[str, Fact] = {}
        self._site: Site | None = None
        self._begun = False
        self.check("begun", self._has_begun)

    def begun(self) -> None:
        """Call when the service accepts requests; until then it is not ready."""
        self._begun = True

    async def _has_begun(self) -> bool:
        return self._begun

    def check(self, name: str, check: Check) -> None:
        self._checks[name] = check

    def forget(self, name: str) -> None:
        """Remove a check that was needed only during the start."""
        self._checks.pop(name, None)

    def inform(self, name: str, fact: Fact) -> None:
        self._facts[name] = fact

    async def start(self, host: str, port: int) -> None:
        app = web.Application()
        app.add_routes(
            [
                web.get("/healthz", self._alive),
                web.get("/readyz", self._ready),
                web.get("/metrics", self._metrics),
            ]
        )
        self._site = await serve(
            app,
            host,
            port,
            stop_limit=STOP_LIMIT,
            head_timeout=self._head_timeout,
            connections=CONNECTIONS,
            connections_per_address=CONNECTIONS_PER_ADDRESS,
        )
        self.port = self._site.port
        get_logger().info("health.listening", host=host, port=self.port)

    async def stop(self) -> None:
        if self._site is not None:
            await self._site.stop()

    async def readiness(self) -> tuple[bool, dict[str, Any]]:
        names = list(self._checks)
        verdicts = await asyncio.gather(*(self._run(name) for name in names))
        ready = all(verdict == "ok" for verdict in verdicts)
        facts = {name: _ask(fact) for name, fact in self._facts.items()}
        return ready, {"ready": ready, "checks": dict(zip(names, verdicts, strict=True)), "info": facts}

    async def _run(self, name: str) -> str:
        try:
            async with asyncio.timeout(self._limit):
                passed = await self._checks[name]()
        except TimeoutError:
            return f"no response within {self._limit:g} s"
        except Exception as exc:
            return redact(f"{type(exc).__name__}: {exc}")[:200]
        return "failed" if passed is False else "ok"

    async def _alive(self, _: web.Request) -> web.Response:
        return web.json_response({"alive": True})

    async def _ready(self, _: web.Request) -> web.Response:
        ready, body = await self.readiness()
        return web.Response(
            status=200 if ready else 503, body=msgspec.json.encode(body), content_type="application/json"
        )

    async def _metrics(self, _: web.Request) -> web.Response:
        body = await asyncio.to_thread(metrics.render)
        return web.Response(body=body, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})


def _ask(fact: Fact) -> object:
    try:
        answer = fact()
        msgspec.json.encode(answer)
    except Exception as exc:
        return type(exc).__name__
    return answer
