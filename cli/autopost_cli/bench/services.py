"""Our services as they ship, in their own processes, on a database of the bench."""

from collections.abc import Awaitable, Callable

import aiohttp

from autopost_cli.bench.tenants import TOKEN, Tenant, text
from autopost_cli.services import SERVICES
from autopost_cli.stack import Stack

NOWHERE = "http://127.0.0.1:1"

Send = Callable[[], Awaitable[int]]


def services_at(tenant: Tenant, provider: str | None, *names: str) -> Stack:
    """With a NATS server of their own; ``provider`` stands in for Telegram."""

    async def nothing(_: str) -> None:
        """The schema is there, and no demo is wanted."""

    env = {
        "AUTOPOST_DATABASE_URL": tenant.url,
        "AUTOPOST_TELEGRAM_API_URL": provider or NOWHERE,
        "AUTOPOST_LOG_LEVEL": "warning",
        **TOKEN,
    }
    wanted = [service for service in SERVICES if service.name in names]
    return Stack(env=env, services=wanted, backends=("nats",), prepare=nothing)


def posting(session: aiohttp.ClientSession, ingest: str, tenant: Tenant) -> Send:
    """One post of its own through the front door; the status of the answer."""
    headers = {"Authorization": f"Bearer {tenant.secret}"}

    async def send() -> int:
        async with session.post(f"{ingest}/v1/posts", json={"text": text(0)}, headers=headers) as answer:
            await answer.read()
            return answer.status

    return send
