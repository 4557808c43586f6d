"""How much there is to do, as metrics: of all, and of a bounded number of tenants."""

from collections.abc import AsyncIterator

import pytest
from autopost_monitor.gateway import Gateway
from autopost_monitor.status.queue_metrics import QueueMetrics
from autopost_runtime.config.load import ServiceConfig
from autopost_runtime.postgres.pool import open_database
from autopost_runtime.telemetry import metrics
from db.support.builders import Tenant
from harness.databases import Database


@pytest.fixture
async def gateway(database: Database) -> AsyncIterator[Gateway]:
    config = ServiceConfig(database_url=database.url, database_role="autopost_monitor", database_pool=2)
    async with open_database(config, "monitor") as opened:
        yield Gateway(opened)


@pytest.fixture
async def tenants(database: Database) -> list[Tenant]:
    """The first has one due, the second two and so on."""
    made = []
    for count in range(1, 5):
        tenant = await Tenant.create(database.pool)
        await tenant.backlog(await tenant.channel(), count)
        made.append(tenant)
    return made


def shown(state: str = "due") -> dict[str, float]:
    lines = [line for line in metrics.render().decode().splitlines() if f'{{state="{state}",workspace=' in line]
    return {line.split('"')[3]: float(line.split()[-1]) for line in lines}


async def test_the_workspaces_with_most_to_do_are_named_and_the_rest_is_one(
    gateway: Gateway, tenants: list[Tenant]
) -> None:
    await QueueMetrics(gateway, 2).run_once()

    most, second = (str(tenant.workspace) for tenant in reversed(tenants[2:]))
    assert shown() == {most: 4, second: 3, "other": 3}


async def test_nobody_is_other_when_all_are_named(gateway: Gateway, tenants: list[Tenant]) -> None:
    await QueueMetrics(gateway, 10).run_once()

    assert shown() == {str(tenant.workspace): count for count, tenant in enumerate(tenants, 1)}


async def test_what_waits_and_what_is_claimed_is_told_apart_from_what_is_due(
    gateway: Gateway, tenants: list[Tenant]
) -> None:
    tenant = tenants[-1]
    await tenant.claim(limit=1)
    [waits] = await tenant.db.fetch(
        "SELECT delivery_id FROM delivery_queue WHERE workspace_id = $1 AND claim_token IS NULL LIMIT 1",
        tenant.workspace,
    )
    await tenant.set_delivery(waits["delivery_id"], "scheduled_for = now() + interval '1 day'")

    await QueueMetrics(gateway, 10).run_once()

    name = str(tenant.workspace)
    assert (shown("due")[name], shown("claimed")[name], shown("later")[name]) == (2, 1, 1)
    oldest = [
        line for line in metrics.render().decode().splitlines() if f'oldest_due_seconds{{workspace="{name}"' in line
    ]
    assert float(oldest[0].split()[-1]) > 0


async def test_no_workspace_is_named_unless_it_is_asked_for(gateway: Gateway, tenants: list[Tenant]) -> None:
    await QueueMetrics(gateway).run_once()

    assert await gateway.queue_depth()
    assert not [line for line in metrics.render().decode().splitlines() if str(tenants[0].workspace) in line]


async def test_platforms_that_do_not_answer_are_counted_and_others_are_nought(
    gateway: Gateway, tenants: list[Tenant]
) -> None:
    await tenants[0].db.execute(
        "UPDATE platform_limits SET circuit = 'open', opened_at = now(), probe_at = now() WHERE workspace_id = $1",
        tenants[0].workspace,
    )
    await QueueMetrics(gateway).run_once()

    lines = metrics.render().decode().splitlines()
    assert sorted(line for line in lines if line.startswith("autopost_circuits{")) == [
        'autopost_circuits{circuit="closed",platform="telegram"} 3.0',
        'autopost_circuits{circuit="half",platform="telegram"} 0.0',
        'autopost_circuits{circuit="open",platform="telegram"} 1.0',
    ]
