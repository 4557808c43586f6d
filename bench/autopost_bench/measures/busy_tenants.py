"""Tenants in the same database, each with its token, its channels and more to send than its rate allows."""

from typing import Any

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.postgres.identity import new_id
from msgspec import Struct

from autopost_bench.machine.tenants import Tenant, Writer, owned, sealed, statement

CHANNELS = 40
FIRST_CHAT = 1_001_000_000_000
CHANNEL_SHARE = 1 / 30
"""Of the rate of the group: so the group binds, and forty channels together could send a third more."""


class TenantsCase(Struct, frozen=True, kw_only=True):
    name: str
    workspaces: int
    rate: float
    """Calls a second of each tenant's token."""
    replicas: int = 1
    is_saturated: bool = False
    """More is asked than the machine can do."""
    has_neighbours: bool = False
    """See ``neighbours``; what they do is not judged."""

    @property
    def channel_rate(self) -> float:
        return self.rate * CHANNEL_SHARE


async def make_busy(beside: Tenant, case: TenantsCase, seconds: float) -> list[WorkspaceId]:
    """Tenants with more than they may send in that time, in the database of another one."""
    posts = 2 + round(case.rate * seconds * (0.6 if case.is_saturated else 1.1) / CHANNELS)
    return await make_tenants(beside, case, CHANNELS, posts)


async def make_tenants(
    beside: Tenant, case: TenantsCase, channels: int, posts: int, *, platform: str = "telegram", first: int = 1
) -> list[WorkspaceId]:
    """``first``: the number after which their chats are numbered."""
    workspaces = [WorkspaceId(new_id()) for _ in range(case.workspaces)]
    tokens = [sealed(one, platform) for one in workspaces]
    async with owned(beside) as database:
        [post] = (await Writer.of(database, beside)).write(1)
        rendering = post["renderings"][0]
        plan: tuple[Any, ...] = (rendering["plan_hash"], rendering["rendered_text"], rendering["plan"])
        gates = (channels, case.rate, case.channel_rate, first, platform)
        await database.execute(statement("many_tenants"), workspaces, tokens, *gates)
        await database.execute(statement("many_backlogs"), workspaces, posts, post["payload"], *plan)
    return workspaces
