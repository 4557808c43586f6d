"""From a condition to the targets, with a real database: everything arrives, in order, once, and holds up nobody."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from autopost_monitor.alerts.evaluate import Alerts
from autopost_monitor.alerts.gateway import AlertGateway, Notice
from autopost_monitor.alerts.notify import Notifier
from autopost_monitor.alerts.targets import alert_targets
from autopost_monitor.config import MonitorConfig
from autopost_runtime.config.load import Secret
from autopost_runtime.http.client import HttpClient
from autopost_runtime.postgres.pool import open_database
from autopost_runtime.telemetry import metrics
from db.support.builders import Tenant
from db.support.operators import Operator, dead
from harness.databases import Database
from harness.eventually import eventually
from monitor.support.alert_targets import FakeWebhook, hook_listening, mail_listening

QUICK = timedelta(milliseconds=50)


class Stage:
    """A monitor's alerts, wired as the service wires them, and turned by hand."""

    def __init__(self, gateway: AlertGateway, config: MonitorConfig, http: HttpClient, hook: FakeWebhook) -> None:
        self.hook = hook
        self.gateway = gateway
        targets = alert_targets(config, http)
        self.alerts = Alerts(gateway, config, [target.name for target in targets])
        self.notifiers = [Notifier(gateway, target, config.alert_retry) for target in targets]

    async def turn(self) -> None:
        await self.alerts.run_once()
        for notifier in self.notifiers:
            await notifier.run_once()

    def heard(self) -> list[str]:
        return [msgspec.json.decode(body)["type"] for _, body in self.hook.received]


@contextlib.asynccontextmanager
async def staged(database: Database, **settings: Any) -> AsyncIterator[Stage]:
    async with hook_listening() as hook, HttpClient(limit=2) as http:
        given = {
            "database_url": database.url,
            "alert_webhook_url": Secret(hook.url),
            "alert_window": QUICK,
            "alert_retry": QUICK,
        }
        config = MonitorConfig(**(given | settings))
        async with open_database(config, "monitor") as opened:
            yield Stage(AlertGateway(opened), config, http, hook)


@pytest.fixture
async def tenant(database: Database) -> Tenant:
    return await Tenant.create(database.pool)


async def die(tenant: Tenant) -> Any:
    [delivery] = await dead(tenant, await tenant.channel(title="News"))
    return delivery


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("off", {"alert.opened": False}),
        ("on_alert", {"alert.opened": True}),
        ("schedule", {"alert.opened": False, "alert.snapshot": True}),
    ],
)
async def test_the_queue_is_told_as_the_snapshot_policy_says(
    database: Database, tenant: Tenant, policy: str, told: dict[str, bool]
) -> None:
    """For each notice, whether it has the counts of the queue."""
    async with staged(database, snapshot_policy=policy) as stage:
        await die(tenant)

        await stage.turn()
        await eventually(lambda: len(stage.hook.received) == len(told))

        heard = [msgspec.json.decode(body) for _, body in stage.hook.received]
        assert {one["type"]: "counts" in json.dumps(one) for one in heard} == told


async def test_an_alert_opens_lasts_and_ends_and_each_is_told_once(database: Database, tenant: Tenant) -> None:
    async with staged(database, alert_remind=timedelta(seconds=1)) as stage:
        delivery = await die(tenant)

        async def reminded() -> bool:
            await stage.turn()
            return len(stage.heard()) >= 2

        await eventually(reminded)
        await Operator(tenant).skip(delivery)

        async def over() -> bool:
            await stage.turn()
            return stage.heard()[-1] == "alert.recovered"

        await eventually(over)
        await stage.turn()

        heard = stage.heard()
        ids = [headers["webhook-id"] for headers, _ in stage.hook.received]

    assert heard[0] == "alert.opened"
    assert set(heard[1:-1]) == {"alert.reminder"}
    assert heard.count("alert.recovered") == 1
    assert len(set(ids)) == len(ids)


async def test_a_target_that_was_away_hears_everything_in_order_and_once(database: Database, tenant: Tenant) -> None:
    async with staged(database) as stage:
        stage.hook.away = True
        delivery = await die(tenant)
        await stage.turn()
        await Operator(tenant).skip(delivery)

        async def over() -> int:
            await stage.turn()
            found: int = await tenant.db.fetchval("SELECT count(*) FROM alert_notices WHERE kind = 'recovered'")
            return found

        await eventually(over)
        await tenant.set_channel(await tenant.channel(), "enabled = true")
        await die(tenant)
        await stage.turn()
        assert stage.heard() == []

        stage.hook.away = False

        async def all_heard() -> bool:
            await stage.turn()
            return len(stage.heard()) >= 3

        await eventually(all_heard)
        await stage.turn()

        assert stage.heard() == ["alert.opened", "alert.recovered", "alert.opened"]
        assert await tenant.db.fetchval("SELECT count(*) FROM alerts WHERE delivered_at IS NULL") == 0


async def test_a_target_that_is_away_holds_up_no_other(database: Database, tenant: Tenant) -> None:
    async with mail_listening() as mail:
        smtp = {
            "alert_smtp_host": "127.0.0.1",
            "alert_smtp_port": mail.port,
            "alert_smtp_tls": "off",
            "alert_smtp_from": "a@example.org",
            "alert_smtp_to": "b@example.org",
        }
        async with staged(database, **smtp) as stage:
            stage.hook.away = True
            await die(tenant)

            await stage.turn()

            assert [one["Subject"] for one in mail.mails] == ["autopost: test: 1 dead deliveries not reviewed yet"]
            assert stage.heard() == []


async def test_a_target_that_trips_keeps_its_notice_and_stops_nobody(database: Database, tenant: Tenant) -> None:
    class Tripping:
        name = "smtp"

        async def send(self, notice: Notice) -> Any:
            raise UnicodeError("canary-address: label empty or too long")

    async with staged(database) as stage:
        stage.alerts = Alerts(stage.gateway, MonitorConfig(database_url=database.url), ["smtp", "webhook"])
        stage.notifiers.insert(0, Notifier(stage.gateway, Tripping(), QUICK))
        await die(tenant)

        await stage.turn()

        kept = await tenant.db.fetchrow("SELECT * FROM alert_notices WHERE target = 'smtp'")
        assert stage.heard() == ["alert.opened"]
        assert (kept["delivered_at"], kept["superseded_at"], kept["attempt"]) == (None, None, 1)
        assert kept["last_error"] == "UnicodeError"


async def test_a_notice_that_was_told_and_not_settled_is_told_again_under_its_id(
    database: Database, tenant: Tenant
) -> None:
    """Killed in between: at least once, and the receiver can tell."""
    async with staged(database) as stage:
        await die(tenant)
        await stage.alerts.run_once()
        settle = stage.gateway.record_notice_result

        async def die_before(*_: Any) -> None:
            raise ConnectionResetError

        stage.gateway.record_notice_result = die_before  # type: ignore[method-assign]
        with pytest.raises(ConnectionResetError):
            await stage.notifiers[0].run_once()
        stage.gateway.record_notice_result = settle  # type: ignore[method-assign]
        await stage.turn()
        await stage.turn()

        ids = [headers["webhook-id"] for headers, _ in stage.hook.received]
        assert len(ids) == 2
        assert len(set(ids)) == 1


async def test_a_target_is_asked_outside_of_any_transaction(database: Database, tenant: Tenant) -> None:
    """While it thinks, no connection of ours is in one, and no lock of ours is held."""
    async with staged(database) as stage:
        await die(tenant)
        await stage.alerts.run_once()
        seen: list[Any] = []

        class Slow:
            name = "webhook"

            async def send(self, notice: Notice) -> Any:
                query = (
                    "SELECT state, backend_xid FROM pg_stat_activity WHERE application_name = 'autopost-monitor' "
                    "AND datname = current_database() AND state <> 'idle'"
                )
                seen.extend(await tenant.db.fetch(query))
                return await stage_target.send(notice)

        stage_target = stage.notifiers[0]._target
        await Notifier(stage.gateway, Slow(), QUICK).run_once()

        assert seen == []
        assert stage.heard() == ["alert.opened"]


async def test_what_is_open_is_a_metric(database: Database, tenant: Tenant) -> None:
    async with staged(database) as stage:
        await die(tenant)
        await stage.alerts.run_once()

        await stage.alerts.count()

        assert b'autopost_alerts_open{condition="dead"} 1.0' in metrics.render()


@contextlib.asynccontextmanager
async def monitor(database: Database, **env: str) -> AsyncIterator[asyncio.subprocess.Process]:
    given = {
        "AUTOPOST_DATABASE_URL": database.url,
        "AUTOPOST_ALERT_INTERVAL": "100ms",
        "AUTOPOST_ALERT_NOTIFY": "50ms",
        "AUTOPOST_LOG_LEVEL": "info",
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "autopost_monitor"),
        env={"PATH": os.defpath, **given, **env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def test_two_replicas_raise_one_alert_and_the_survivor_ends_it(database: Database, tenant: Tenant) -> None:
    async with hook_listening("/canary-path") as hook:
        env = {"AUTOPOST_ALERT_WEBHOOK_URL": hook.url, "AUTOPOST_ALERT_WINDOW": "500ms"}
        async with monitor(database, **env) as first, monitor(database, **env):
            delivery = await die(tenant)
            told = "SELECT count(*) FROM alert_notices WHERE delivered_at IS NOT NULL"
            await eventually(lambda: tenant.db.fetchval(told), timedelta(minutes=1))
            scheduler = "SELECT count(*) FROM leader_leases WHERE job = 'alerts'"
            assert await tenant.db.fetchval(scheduler) == 1

            first.kill()
            said, _ = await first.communicate()
            await Operator(tenant).skip(delivery)
            await eventually(lambda: len(hook.received) >= 2, timedelta(minutes=1))

    heard = [json.loads(body)["type"] for _, body in hook.received]
    assert heard == ["alert.opened", "alert.recovered"]
    assert b"canary" not in said
