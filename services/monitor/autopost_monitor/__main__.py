"""Wire the monitor and run it."""

from uuid import uuid4

from aiohttp import web
from autopost_runtime.http import HttpClient
from autopost_runtime.jetstream import Bus, open_bus
from autopost_runtime.logs import get_logger
from autopost_runtime.postgres import Database, open_database
from autopost_runtime.service import Service, run
from autopost_runtime.web import MIDDLEWARES, serve

from autopost_monitor.alert_gateway import AlertGateway
from autopost_monitor.alert_notify import Notifier
from autopost_monitor.alert_targets import alert_targets
from autopost_monitor.alerts import Alerts
from autopost_monitor.config import MonitorConfig
from autopost_monitor.gateway import Gateway
from autopost_monitor.guards import guard_store, lead_guards, lead_queue_guards
from autopost_monitor.lead import Turns
from autopost_monitor.relay import Relay
from autopost_monitor.relay_gateway import RelayGateway
from autopost_monitor.relay_watch import RelayWatch
from autopost_monitor.rounds import Rounds
from autopost_monitor.status import StatusPage
from autopost_monitor.status_gateway import StatusGateway
from autopost_monitor.status_reports import Reports
from autopost_monitor.watch import QueueWatch

ALERT_CONNECTIONS = 4


async def work(config: MonitorConfig, service: Service) -> None:
    async with (
        open_database(config, service) as database,
        open_bus(config, service) as bus,
        HttpClient(limit=ALERT_CONNECTIONS, ca_bundle=config.ca_bundle) as http,
        guard_store(config) as objects,
    ):
        gateway = Gateway(database)
        watch = QueueWatch(gateway)
        service.health.check("database", gateway.ping)
        service.health.inform("nats", lambda: bus.connected)

        turns = Turns(gateway, uuid4())
        rounds = Rounds(service, turns)
        lead_queue_guards(config, gateway, bus, rounds)
        rounds.everywhere("watch", config.snapshot_interval, watch.round)
        if config.nats_url:
            relay_of(config, service, RelayGateway(database, turns.holder), bus, rounds)
        alerts_of(config, AlertGateway(database), http, rounds)
        lead_guards(config, database, objects, rounds)
        async with await serve(status_app(database), config.http_host, config.http_port) as site:
            get_logger().info("monitor.listening", url=site.url)
            service.health.begun()
            await service.stopping.wait()
        await rounds.finish()


def relay_of(config: MonitorConfig, service: Service, gateway: RelayGateway, bus: Bus, rounds: Rounds) -> None:
    topology = bus.topology
    relay = Relay(gateway, bus.chain(topology.audit_stream.name), topology, service, config.relay_interval)
    rounds.lead("relay", config.relay_interval, relay.round)
    rounds.everywhere("relay watch", config.snapshot_interval, RelayWatch(gateway).round)


def alerts_of(config: MonitorConfig, gateway: AlertGateway, http: HttpClient, rounds: Rounds) -> None:
    targets = alert_targets(config, http)
    alerts = Alerts(gateway, config, [target.name for target in targets])
    rounds.lead("alerts", config.alert_interval, alerts.round)
    rounds.everywhere("count alerts", config.snapshot_interval, alerts.count)
    for target in targets:  # each by itself: a slow one holds up no other
        rounds.lead(f"notify {target.name}", config.alert_notify, Notifier(gateway, target, config.alert_retry).round)


def status_app(database: Database) -> web.Application:
    gateway = StatusGateway(database)
    app = web.Application(middlewares=MIDDLEWARES)
    app.add_routes(StatusPage(gateway, Reports(gateway)).routes())
    return app


if __name__ == "__main__":
    run("monitor", MonitorConfig, work)
