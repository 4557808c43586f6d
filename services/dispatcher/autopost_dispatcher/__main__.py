"""Wire the dispatcher and run it."""

from contextlib import nullcontext

from autopost_adapters.registry import adapters
from autopost_contracts.subjects import Topology
from autopost_runtime.http.client import HttpClient
from autopost_runtime.lifecycle.service import Service, run
from autopost_runtime.nats.bus import open_bus
from autopost_runtime.postgres.pool import open_database
from autopost_runtime.secrets.credentials import Credentials
from autopost_runtime.storage.objects import open_objects
from autopost_runtime.telemetry import metrics

from autopost_dispatcher.adopt_policy import adopt_policy
from autopost_dispatcher.claim.schedule import ClaimSchedule
from autopost_dispatcher.config import DispatcherConfig
from autopost_dispatcher.dispatch import poll, workspace_of
from autopost_dispatcher.gateway import Gateway
from autopost_dispatcher.pipeline import pipeline


async def work(config: DispatcherConfig, service: Service) -> None:
    async with (
        open_database(config, service) as database,
        open_bus(config, service) as bus,
        HttpClient(limit=config.concurrency, ca_bundle=config.ca_bundle) as http,
        open_objects(config) if config.s3_endpoint else nullcontext() as objects,
    ):
        gateway, schedule = Gateway(database), ClaimSchedule()
        platforms = adapters(
            http,
            telegram_url=config.telegram_api_url,
            max_url=config.max_api_url,
            timeout=config.provider_timeout,
            upload_timeout=config.time_to_upload,
        )
        service.health.check("database", gateway.ping)
        service.health.inform("nats", lambda: bus.connected)
        await adopt_policy(config, gateway, service)

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
            metrics.gauge("autopost_deliveries_in_flight", "Deliveries being sent.", lambda: dispatch.in_flight)
            wakeups = Topology(config.nats_namespace).dispatcher_wakeups
            service.spawn(poll(schedule, gateway, config.poll_interval, service.stopping), "poll")
            service.spawn(bus.wakeups(wakeups, lambda subject: schedule.wake(workspace_of(subject))), "wakeups")
            service.health.begun()
            await service.stopping.wait()


if __name__ == "__main__":
    run("dispatcher", DispatcherConfig, work)
