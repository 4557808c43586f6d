"""The watchdog ends actions that nobody ended, once, and wakes the streams of their chats by token."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from autopost_contracts.subjects import Topology
from autopost_monitor.config import MonitorConfig
from autopost_monitor.gateway import Gateway
from autopost_monitor.repair.action_watchdog import ActionMetrics, ActionWatchdog
from autopost_runtime.nats.bus import Bus
from autopost_runtime.postgres.pool import open_database
from autopost_runtime.telemetry import metrics
from db.support.builders import Tenant
from harness.databases import Database

PHONE = "79991234567"


class Woken(Bus):
    def __init__(self) -> None:
        self.woken: list[str] = []

    def wake(self, subject: str) -> None:
        self.woken.append(subject)


@pytest.fixture
async def gateway(database: Database) -> AsyncIterator[Gateway]:
    async with open_database(MonitorConfig(database_url=database.url), "monitor") as opened:
        yield Gateway(opened)


@pytest.fixture
async def tenant(database: Database) -> Tenant:
    return await Tenant.create(database.pool)


async def started(tenant: Tenant, action: str, age: timedelta) -> None:
    await tenant.db.execute(
        "INSERT INTO bot_actions (workspace_id, chat_id, action_id, action_type, created_at, seq) "
        "VALUES ($1, $2, $3, 'summarize', clock_timestamp() - $4::interval, advance_chat($1, $2))",
        *(tenant.workspace, PHONE, action, age),
    )


async def statuses(tenant: Tenant) -> dict[str, str]:
    rows = await tenant.db.fetch("SELECT action_id, status FROM bot_actions WHERE workspace_id = $1", tenant.workspace)
    return dict(map(tuple, rows))


async def test_what_is_older_than_two_hours_is_ended_and_its_chat_woken_by_token(
    gateway: Gateway, tenant: Tenant
) -> None:
    await started(tenant, "old", timedelta(hours=2, seconds=1))
    await started(tenant, "young", timedelta(hours=1, minutes=59))
    bus = Woken()
    hours = MonitorConfig(database_url="postgresql://host/db").bot_action_max_processing_hours

    await ActionWatchdog(gateway, bus, Topology(), timedelta(hours=hours)).run_once()

    token = await tenant.db.fetchval("SELECT chat_token($1, $2)", tenant.workspace, PHONE)
    assert await statuses(tenant) == {"old": "error", "young": "processing"}
    assert bus.woken == [f"autopost.chat.{tenant.workspace}.{token}"]


async def test_more_than_one_batch_is_ended_in_one_run(gateway: Gateway, tenant: Tenant) -> None:
    for number in range(5):
        await started(tenant, str(number), timedelta(hours=3))

    await ActionWatchdog(gateway, Woken(), Topology(), timedelta(hours=2), batch=2).run_once()

    assert set((await statuses(tenant)).values()) == {"error"}


async def test_the_event_of_an_expiry_names_no_person(gateway: Gateway, tenant: Tenant) -> None:
    await started(tenant, "old", timedelta(hours=3))

    await ActionWatchdog(gateway, Woken(), Topology(), timedelta(hours=2)).run_once()

    [event] = await tenant.db.fetch("SELECT * FROM events WHERE workspace_id = $1", tenant.workspace)
    assert event["action"] == "bot_action_expired"
    assert PHONE not in json.dumps(dict(event), default=str)


async def test_the_actions_are_counted_by_status(gateway: Gateway, tenant: Tenant) -> None:
    await started(tenant, "old", timedelta(hours=3))
    await started(tenant, "young", timedelta(0))
    await ActionWatchdog(gateway, Woken(), Topology(), timedelta(hours=2)).run_once()

    await ActionMetrics(gateway).run_once()

    lines = metrics.render().decode().splitlines()
    assert sorted(line for line in lines if line.startswith("autopost_bot_actions{")) == [
        'autopost_bot_actions{status="done"} 0.0',
        'autopost_bot_actions{status="error"} 1.0',
        'autopost_bot_actions{status="processing"} 1.0',
    ]


def test_the_documented_defaults_are_two_hours_and_thirty_minutes() -> None:
    config = MonitorConfig(database_url="postgresql://host/db")

    assert (config.bot_action_max_processing_hours, config.bot_action_watchdog_interval_minutes) == (2, 30)
