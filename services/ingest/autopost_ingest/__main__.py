"""Wire ingest and run it."""

from autopost_contracts.subjects import Topology
from autopost_runtime.jetstream import open_bus
from autopost_runtime.logs import get_logger
from autopost_runtime.postgres import open_database
from autopost_runtime.service import Service, run
from autopost_runtime.web import serve

from autopost_ingest.admit import Admission
from autopost_ingest.config import IngestConfig
from autopost_ingest.enqueue import Enqueuer
from autopost_ingest.gateway import Gateway
from autopost_ingest.materialize import Materializer
from autopost_ingest.receive import application


async def work(config: IngestConfig, service: Service) -> None:
    async with open_database(config, service) as database, open_bus(config, service) as bus:
        gateway = Gateway(database)
        service.health.check("database", gateway.ping)
        service.health.inform("nats", lambda: bus.connected)
        enqueuer = Enqueuer(gateway, bus, Topology(config.nats_namespace), audit_deduped=config.audit_deduped)
        app = application(Admission(gateway, config.body_timeout), Materializer(gateway), enqueuer)
        async with await serve(app, config.http_host, config.http_port) as site:
            get_logger().info("ingest.listening", url=site.url)
            await service.stopping.wait()


if __name__ == "__main__":
    run("ingest", IngestConfig, work)
