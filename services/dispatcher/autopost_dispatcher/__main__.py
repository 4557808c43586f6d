"""Wire the dispatcher and run it."""

import asyncio
from contextlib import nullcontext
from datetime import timedelta

from autopost_adapters.registry import adapters
from autopost_contracts.subjects import Topology
from autopost_runtime import telemetry
from autopost_runtime.http import HttpClient
from autopost_runtime.jetstream import open_bus
from autopost_runtime.objects import open_objects
from autopost_runtime.postgres import open_database
from autopost_runtime.service import Service, run

from autopost_dispatcher.answers import Answers
from autopost_dispatcher.claim import Claimer
from autopost_dispatcher.commit import Committer
from autopost_dispatcher.config import DispatcherConfig
from autopost_dispatcher.credentials import Credentials
from autopost_dispatcher.dispatch import Dispatch, poll, workspace_of
from autopost_dispatcher.gateway import Gateway
from autopost_dispatcher.plans import PlanCache
from autopost_dispatcher.schedule import Schedule
from autopost_dispatcher.send import Sender

TO_COMMIT = timedelta(seconds=1.5)
"""What a stop keeps back for committing how the last calls ended."""


async def work(config: DispatcherConfig, service: Service) -> None:
    topology = Topology(config.nats_namespace)
    async with (
        open_database(config, service) as database,
        open_bus(config, service) as bus,
        HttpClient(limit=config.concurrency, ca_bundle=config.ca_bundle) as http,
        open_objects(config) if config.s3_endpoint else nullcontext() as objects,
    ):
        gateway = Gateway(database)
        schedule = Schedule()
        sender = Sender(
            adapters(
                http,
                telegram_url=config.telegram_api_url,
                max_url=config.max_api_url,
                timeout=config.provider_timeout,
            ),
            PlanCache(gateway),
            Credentials(gateway),
            gateway,
            provider_timeout=config.provider_timeout,
            stopping=service.stopping,
        )
        committer = Committer(
            gateway,
            pause=config.pause_on_permanent,
            disable_streak=config.disable_after_permanent_streak,
            committed=schedule.wake,
        )
        dispatch = Dispatch(sender, Answers(objects), committer, concurrency=config.concurrency)
        claimer = Claimer(
            gateway,
            schedule,
            bus,
            topology,
            limit=config.dispatcher_limit_per_workspace,
            lease=config.sending_lease,
            room=dispatch.room,
            has_room=dispatch.has_room,
            take=dispatch.take,
        )
        telemetry.gauge(
            "autopost_deliveries_in_flight", "Deliveries being sent.", lambda: config.concurrency - dispatch.room()
        )
        service.health.check("database", gateway.ping)
        service.health.inform("nats", lambda: bus.connected)

        service.spawn(committer.run(), "commit")
        claims = [service.spawn(claimer.run(), f"claim-{number}") for number in range(config.claimers)]
        service.spawn(poll(schedule, gateway, config.poll_interval, service.stopping), "poll")
        service.spawn(
            bus.wakeups(topology.dispatcher_wakeups, lambda subject: schedule.wake(workspace_of(subject))), "wakeups"
        )
        await service.stopping.wait()
        schedule.close()
        dispatch.has_room.set()
        await asyncio.gather(*claims)
        await dispatch.drain(min(config.call_drain, config.drain_timeout - TO_COMMIT))


if __name__ == "__main__":
    run("dispatcher", DispatcherConfig, work)
