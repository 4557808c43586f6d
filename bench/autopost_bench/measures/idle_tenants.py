"""Ten thousand tenants that have sent what they had: what they cost a dispatcher while nothing comes."""

import asyncio

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.postgres.identity import new_id
from msgspec import Struct

from autopost_bench.machine import processor_time
from autopost_bench.machine.server import BenchServer, Connection, connected, settled, vacuum
from autopost_bench.machine.tenants import Rates, make_tenant
from autopost_bench.measures.busy_tenants import TenantsCase, make_tenants
from autopost_bench.measures.replicas import replicas
from autopost_bench.programs.children import Child
from autopost_bench.programs.receiver import receiving
from autopost_bench.report.figures import Figures

IDLE = TenantsCase(name="idle", workspaces=10_000, rate=27)
CHANNELS = 4
REST = 12.0
"""Seconds after the last call: then tokens and paces are forgotten."""
SENT_WITHIN = 120.0
BACKENDS = "SELECT array_agg(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


class Use(Struct, frozen=True):
    cores: float
    megabytes: float


async def measure(server: BenchServer, figures: Figures) -> None:
    seconds = server.counts.idle_period.total_seconds()
    async with server.database("migrated") as url, connected(url) as connection, receiving(remembers=False) as provider:
        rates = Rates(group=IDLE.rate, channel=IDLE.channel_rate, max_parallel=1)
        one = (await make_tenant(connection, WorkspaceId(new_id()), 1, rates)).at(url)
        async with replicas(1, one, provider.url) as [replica]:
            replica.tell("go")
            server.say("a dispatcher without tenants")
            before = await _use(connection, replica, seconds)
            server.say(f"{IDLE.workspaces:,} tenants, each with a post for {CHANNELS} channels")
            await make_tenants(one, IDLE, CHANNELS, posts=1)
            await settled(lambda: _is_empty(connection), SENT_WITHIN, "the tenants' posts are not sent")
            await vacuum(url)
            server.say(f"{IDLE.workspaces:,} idle tenants")
            after = await _use(connection, replica, seconds)
    figures.record("tenants.idle.cores", max(0.0, after.cores - before.cores), "of a core")
    figures.record("tenants.idle.megabytes", max(0.0, after.megabytes - before.megabytes), "MB")


async def _is_empty(connection: Connection) -> bool:
    return not await connection.fetchval("SELECT EXISTS (SELECT FROM delivery_queue)")


async def _use(connection: Connection, replica: Child, seconds: float) -> Use:
    """Of the dispatcher, and of the database for it."""
    await asyncio.sleep(REST)
    processes = [replica.pid, *await connection.fetchval(BACKENDS)]
    before = processor_time.of(processes)
    await asyncio.sleep(seconds)
    return Use((processor_time.of(processes) - before) / seconds, processor_time.resident(replica.pid) / 1e6)
