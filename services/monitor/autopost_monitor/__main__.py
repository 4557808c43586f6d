"""Wire the monitor and run it."""

from datetime import timedelta

from aiohttp import web
from autopost_contracts.subjects import Topology
from autopost_runtime.jetstream import open_bus
from autopost_runtime.logs import get_logger
from autopost_runtime.postgres import open_database
from autopost_runtime.service import Service, run
from autopost_runtime.web import MIDDLEWARES, serve

from autopost_monitor.config import MonitorConfig
from autopost_monitor.gateway import Gateway
from autopost_monitor.recover import Recovery
from autopost_monitor.rounds import every
from autopost_monitor.watch import QueueWatch

PARTITION_CHECK = timedelta(hours=1)


async def work(config: MonitorConfig, service: Service) -> None:
    async with open_database(config, service) as database, open_bus(config, service) as bus:
        gateway = Gateway(database)
        recovery = Recovery(gateway, bus, Topology(config.nats_namespace), config.claimed_lease)
        watch = QueueWatch(gateway)
        service.health.check("database", gateway.ping)
        service.health.inform("nats", lambda: bus.connected)

        service.spawn(every(config.recover_interval, "recover", recovery.round, service), "recover")
        service.spawn(every(config.snapshot_interval, "watch", watch.round, service), "watch")
        service.spawn(
            every(
                PARTITION_CHECK,
                "partitions",
                lambda: gateway.ensure_event_partitions(config.partitions_ahead),
                service,
            ),
            "partitions",
        )
        async with await serve(web.Application(middlewares=MIDDLEWARES), config.http_host, config.http_port) as site:
            get_logger().info("monitor.listening", url=site.url)
            await service.stopping.wait()


if __name__ == "__main__":
    run("monitor", MonitorConfig, work)
