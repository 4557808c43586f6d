"""Wire the monitor and run it."""

from uuid import uuid4

from aiohttp import web
from autopost_runtime.http.client import HttpClient
from autopost_runtime.http.web import MIDDLEWARES, serve
from autopost_runtime.lifecycle.service import Service, run
from autopost_runtime.lifecycle.set_aside import Notes
from autopost_runtime.nats.bus import Bus, open_bus
from autopost_runtime.postgres.pool import Database, open_database
from autopost_runtime.telemetry.logs import get_logger

from autopost_monitor.alerts.evaluate import Alerts
from autopost_monitor.alerts.gateway import AlertGateway
from autopost_monitor.alerts.notify import Notifier
from autopost_monitor.alerts.targets import alert_targets
from autopost_monitor.config import MonitorConfig
from autopost_monitor.gateway import Gateway
from autopost_monitor.jobs import open_store, schedule_maintenance, schedule_queue_jobs
from autopost_monitor.leader.leader import Leadership
from autopost_monitor.leader.periodic import Scheduler
from autopost_monitor.owners.gateway import OwnerGateway
from autopost_monitor.owners.notify import OwnerNotifier
from autopost_monitor.owners.targets import owner_targets
from autopost_monitor.relay.gateway import RelayGateway
from autopost_monitor.relay.lag import RelayMetrics
from autopost_monitor.relay.relay import Relay
from autopost_monitor.status.gateway import StatusGateway
from autopost_monitor.status.misses import Misses
from autopost_monitor.status.publication_metrics import PublicationMetrics
from autopost_monitor.status.queue_metrics import QueueMetrics
from autopost_monitor.status.reports import Reports
from autopost_monitor.status.status import StatusPage

ALERT_CONNECTIONS = 4


async def work(config: MonitorConfig, service: Service) -> None:
    async with (
        open_database(config, service) as database,
        open_bus(config, service) as bus,
        HttpClient(limit=ALERT_CONNECTIONS, ca_bundle=config.ca_bundle) as http,
        open_store(config) as objects,
    ):
        gateway = Gateway(database)
        watch = QueueMetrics(gateway, config.metrics_workspaces)
        service.health.check("database", gateway.ping)
        service.health.inform("nats", lambda: bus.connected)

        leadership = Leadership(gateway, uuid4())
        scheduler = Scheduler(service, leadership, gateway)
        schedule_queue_jobs(config, gateway, bus, scheduler)
        scheduler.on_every_replica("watch", config.snapshot_interval, watch.run_once)
        publications = PublicationMetrics(gateway)
        scheduler.on_every_replica("watch publications", config.snapshot_interval, publications.run_once)
        if config.nats_url:
            schedule_relay(config, service, RelayGateway(database, leadership.holder), bus, scheduler)
        schedule_alerts(config, AlertGateway(database), http, scheduler, gateway)
        owners = OwnerNotifier(OwnerGateway(database), owner_targets(config, http), config.alert_retry)
        scheduler.on_leader("notify owners", config.alert_notify, owners.run_once)
        schedule_maintenance(config, database, objects, scheduler, gateway)
        async with await serve(status_app(database), config.http_host, config.http_port) as site:
            get_logger().info("monitor.listening", url=site.url)
            service.health.begun()
            await service.stopping.wait()
        await scheduler.finish()


def schedule_relay(
    config: MonitorConfig, service: Service, gateway: RelayGateway, bus: Bus, scheduler: Scheduler
) -> None:
    topology = bus.topology
    relay = Relay(gateway, bus.ordered_publisher(topology.audit_stream.name), topology, service, config.relay_interval)
    scheduler.on_leader("relay", config.relay_interval, relay.run_once)
    scheduler.on_every_replica("relay watch", config.snapshot_interval, RelayMetrics(gateway).run_once)


def schedule_alerts(
    config: MonitorConfig, gateway: AlertGateway, http: HttpClient, scheduler: Scheduler, notes: Notes
) -> None:
    targets = alert_targets(config, http)
    alerts = Alerts(gateway, config, [target.name for target in targets], notes)
    scheduler.on_leader("alerts", config.alert_interval, alerts.run_once)
    scheduler.on_every_replica("count alerts", config.snapshot_interval, alerts.count)
    for target in targets:  # one job each, so that a slow target does not delay the others
        scheduler.on_leader(
            f"notify {target.name}", config.alert_notify, Notifier(gateway, target, config.alert_retry).run_once
        )


def status_app(database: Database) -> web.Application:
    gateway = StatusGateway(database)
    app = web.Application(middlewares=MIDDLEWARES)
    app.add_routes(StatusPage(Misses(gateway), Reports(gateway)).routes())
    return app


if __name__ == "__main__":
    run("monitor", MonitorConfig, work)
