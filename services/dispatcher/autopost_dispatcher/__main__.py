"""Wire the dispatcher and run it."""

from contextlib import nullcontext

from autopost_adapters.registry import adapters
from autopost_contracts.subjects import Topology
from autopost_runtime import metrics
from autopost_runtime.http import HttpClient
from autopost_runtime.jetstream import open_bus
from autopost_runtime.objects import open_objects
from autopost_runtime.postgres import open_database
from autopost_runtime.service import Service, run

from autopost_dispatcher.config import DispatcherConfig
from autopost_dispatcher.credentials import Credentials
from autopost_dispatcher.dispatch import poll, workspace_of
from autopost_dispatcher.gateway import Gateway
from autopost_dispatcher.pipeline import pipeline
from autopost_dispatcher.schedule import Schedule


async def work(config: DispatcherConfig, service: Service) -> None:
    async with (
        open_database(config, service) as database,
        open_bus(config, service) as bus,
        HttpClient(limit=config.concurrency, ca_bundle=config.ca_bundle) as http,
        open_objects(config) if config.s3_endpoint else nullcontext() as objects,
    ):
        gateway, schedule = Gateway(database), Schedule()
        platforms = adapters(
            http,
            telegram_url=config.telegram_api_url,
            max_url=config.max_api_url,
            timeout=config.provider_timeout,
            upload_timeout=config.time_to_upload,
        )
        service.health.check("database", gateway.ping)
        service.health.inform("nats", lambda: bus.connected)

        async with pipeline(
            config,
            service,
            gateway,
            schedule,
            bus,
            adapters=platforms,
            identities=Credentials(gateway),
            store=objects,
        ) as dispatch:
            metrics.gauge(
                "autopost_deliveries_in_flight", "Deliveries being sent.", lambda: config.concurrency - dispatch.room()
            )
            wakeups = Topology(config.nats_namespace).dispatcher_wakeups
            service.spawn(poll(schedule, gateway, config.poll_interval, service.stopping), "poll")
            service.spawn(bus.wakeups(wakeups, lambda subject: schedule.wake(workspace_of(subject))), "wakeups")
            service.health.begun()
            await service.stopping.wait()


if __name__ == "__main__":
    run("dispatcher", DispatcherConfig, work)
