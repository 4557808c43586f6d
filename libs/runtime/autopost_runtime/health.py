"""``/healthz``, ``/readyz`` and ``/metrics`` on a port of their own; none of them makes a span.

Alive means the event loop answers and asks nothing else. Ready means the service has begun its work and every check
passes. NATS is only ever information: a service without it is slower, not unready.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
from aiohttp import web

from autopost_runtime import metrics
from autopost_runtime.logs import get_logger
from autopost_runtime.redaction import redact

Check = Callable[[], Awaitable[object]]
"""Passes unless it raises or answers ``False``."""

Fact = Callable[[], object]

CHECK_LIMIT = timedelta(seconds=2)


class Health:
    def __init__(self, check_limit: timedelta = CHECK_LIMIT) -> None:
        self.port = 0
        self._limit = check_limit.total_seconds()
        self._checks: dict[str, Check] = {}
        self._facts: dict[str, Fact] = {}
        self._runner: web.AppRunner | None = None
        self._begun = False
        self.check("begun", self._has_begun)

    def begun(self) -> None:
        """To be said once all is open that others reach the service by: before, nobody may be sent here."""
        self._begun = True

    async def _has_begun(self) -> bool:
        return self._begun

    def check(self, name: str, check: Check) -> None:
        self._checks[name] = check

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
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()
        self.port = self._runner.addresses[0][1]
        get_logger().info("health.listening", host=host, port=self.port)

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

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
            return f"no answer within {self._limit:g} s"
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
