"""Our services as they ship, in their own processes, on a database of the bench."""

import dataclasses

from autopost_cli.stack.services import SERVICES, ServiceSpec
from autopost_cli.stack.stack import Stack

from autopost_bench.machine.tenants import ENVIRONMENT, Tenant

OTHER_BOT = dataclasses.replace(ServiceSpec.of_package("bot", public=True), name="other_bot")
"""A second replica."""
NOWHERE = "http://127.0.0.1:1"


def services_at(tenant: Tenant, provider: str | None, *names: str, **settings: str) -> Stack:
    """With a NATS server of their own; ``provider`` stands in for Telegram."""

    async def nothing(_: str) -> None:
        """The schema is there, and no demo is wanted."""

    env = {
        "AUTOPOST_DATABASE_URL": tenant.url,
        "AUTOPOST_TELEGRAM_API_URL": provider or NOWHERE,
        "AUTOPOST_LOG_LEVEL": "warning",
        **ENVIRONMENT,
        **settings,
    }
    wanted = [service for service in (*SERVICES, OTHER_BOT) if service.name in names]
    return Stack(env=env, services=wanted, backends=("nats",), prepare=nothing)
