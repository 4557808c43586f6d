"""Growth: what a delivery costs, claimed and committed, as backlog, history and blocked rows grow.

Each situation is made once and kept; what a repetition takes out is put back before the next.
"""

import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

from autopost_contracts.ids import RunId
from autopost_dispatcher.config import DispatcherConfig
from autopost_dispatcher.gateway import Gateway
from autopost_runtime.postgres.identity import new_id
from autopost_runtime.postgres.pool import Database, open_database

from autopost_bench.machine.server import BenchError, BenchServer, connected, vacuum
from autopost_bench.machine.tenants import Tenant, add_backlog, add_history, owned, statement
from autopost_bench.measures.watched import watch
from autopost_bench.report.figures import Figures

ONE_CHANNEL = "^-1001000000001$"
OTHERS = "^(?!-1001000000001$)"
CHUNK = 50_000
BITE = 100
"""Deliveries that are taken at a time while somebody looks."""
COPIES = 100
"""Of each post in the blocked channel: it is the rows that matter, and posts take longer to make."""

WRONG_STATISTICS = {
    "no_statistics": ("forget_statistics",),
    "empty_statistics": ("forget_statistics", "empty_statistics"),
}

Grow = Callable[[BenchServer, Tenant, Database], Awaitable[None]]


async def measure(server: BenchServer, figures: Figures) -> None:
    """All repetitions in one call: the situations take longer to make than to measure."""
    async with contextlib.AsyncExitStack() as situations:
        tenants = {}
        for name, grow in SITUATIONS.items():
            server.say(f"making a situation: {name.replace('_', ' ')}")
            tenants[name] = await situations.enter_async_context(_grown(server, grow))
        for repetition in range(server.counts.repetitions):
            server.say(f"cost per delivery, {repetition + 1} of {server.counts.repetitions}")
            for name, tenant in tenants.items():
                figures.record(f"cost.{name}", await cost(tenant, server.counts.sampled) * 1e6, "microseconds")
                await _put_back(tenant, server.counts.sampled)
            await _without_statistics(server, tenants["long_backlog"], figures)
        server.say("looking at a long backlog")
        await _watched(server, tenants["long_backlog"], figures)


async def _without_statistics(server: BenchServer, tenant: Tenant, figures: Figures) -> None:
    """Never analysed, then analysed while it was empty, as when a burst follows a quiet night; each time the tables are
    analysed again afterwards."""
    for name, statements in WRONG_STATISTICS.items():
        async with connected(tenant.url) as connection:
            for each in statements:
                await connection.execute(statement(each))
        figures.record(f"cost.{name}", await cost(tenant, server.counts.sampled) * 1e6, "microseconds")
        await _put_back(tenant, server.counts.sampled)


async def _watched(server: BenchServer, tenant: Tenant, figures: Figures) -> None:
    config = DispatcherConfig(database_url=tenant.url, dispatcher_limit_per_workspace=BITE)
    async with open_database(config, "bench") as database:
        await watch(server, tenant, figures, partial(_claim_and_commit, Gateway(database), tenant, config))


async def cost(tenant: Tenant, deliveries: int) -> float:
    """Seconds per delivery, in the batches that the dispatcher claims by default."""
    config = DispatcherConfig(database_url=tenant.url)
    async with open_database(config, "bench") as database:
        gateway = Gateway(database)
        await _claim_and_commit(gateway, tenant, config)
        done, started = 0, time.perf_counter()
        while done < deliveries:
            done += await _claim_and_commit(gateway, tenant, config)
        return (time.perf_counter() - started) / done


async def _claim_and_commit(gateway: Gateway, tenant: Tenant, config: DispatcherConfig) -> int:
    run_id = RunId(new_id())
    claimed = await gateway.claim_deliveries(
        tenant.workspace_id, run_id, config.dispatcher_limit_per_workspace, config.sending_lease
    )
    if not claimed.claims:
        raise BenchError("nothing to claim in a backlog")
    left = await gateway.commit_sent(
        tenant.workspace_id,
        run_id,
        [claim.delivery_id for claim in claimed.claims],
        [claim.claim_token for claim in claimed.claims],
        ["1"] * len(claimed.claims),
    )
    if left:
        raise BenchError(f"{len(left)} of {len(claimed.claims)} were not committed")
    return len(claimed.claims)


@contextlib.asynccontextmanager
async def _grown(server: BenchServer, grow: Grow) -> AsyncIterator[Tenant]:
    """One channel more than is used: it is where the blocked rows are, in the one situation that has some."""
    async with server.tenant(server.counts.channels[0] + 1) as tenant:
        async with owned(tenant) as database:
            await database.execute(
                "UPDATE channels SET paused_until = now() + interval '1 year' WHERE target_id ~ $1", ONE_CHANNEL
            )
            await grow(server, tenant, database)
        await vacuum(tenant.url)
        yield tenant


async def _put_back(tenant: Tenant, deliveries: int) -> None:
    async with owned(tenant) as database:
        await _add(database, tenant, deliveries)
    await vacuum(tenant.url)


async def _add(database: Database, tenant: Tenant, deliveries: int) -> None:
    channels = tenant.channels - 1
    for start in range(0, deliveries, CHUNK):
        await add_backlog(database, tenant, -(-min(CHUNK, deliveries - start) // channels), OTHERS)


async def _backlog(server: BenchServer, tenant: Tenant, database: Database) -> None:
    await _add(database, tenant, server.counts.backlog)


async def _long_backlog(server: BenchServer, tenant: Tenant, database: Database) -> None:
    await _add(database, tenant, server.counts.long_backlog)


async def _history(server: BenchServer, tenant: Tenant, database: Database) -> None:
    for start in range(0, server.counts.history, CHUNK):
        await add_history(database, tenant, -(-min(CHUNK, server.counts.history - start) // tenant.channels))
    await _add(database, tenant, server.counts.backlog)


async def _blocked(server: BenchServer, tenant: Tenant, database: Database) -> None:
    for start in range(0, server.counts.blocked, CHUNK):
        rows = min(CHUNK, server.counts.blocked - start)
        await add_backlog(database, tenant, -(-rows // COPIES), ONE_CHANNEL, copies=COPIES)
    await _add(database, tenant, server.counts.backlog)


SITUATIONS: dict[str, Grow] = {
    "backlog": _backlog,
    "long_backlog": _long_backlog,
    "history": _history,
    "blocked": _blocked,
}
