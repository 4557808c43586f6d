"""The dispatcher put together: claim → send → commit, running between entering and leaving ``pipeline``."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta

from autopost_adapters.base import Adapter
from autopost_contracts.ids import RunId, WorkspaceId
from autopost_contracts.subjects import Topology
from autopost_runtime.identity import new_id
from autopost_runtime.jetstream import Bus
from autopost_runtime.objects import Objects
from autopost_runtime.payloads import Payloads
from autopost_runtime.service import Service

from autopost_dispatcher.answers import Answers
from autopost_dispatcher.bots import Bots
from autopost_dispatcher.claim import Claimer
from autopost_dispatcher.commit import Committer
from autopost_dispatcher.config import DispatcherConfig
from autopost_dispatcher.dispatch import Dispatch
from autopost_dispatcher.flight import Desk
from autopost_dispatcher.gateway import Gateway
from autopost_dispatcher.lease import Renewal
from autopost_dispatcher.media import Shelf
from autopost_dispatcher.schedule import Schedule
from autopost_dispatcher.send import Identities, Sender
from autopost_dispatcher.slots import Slots

TO_COMMIT = timedelta(seconds=1.5)
"""What a stop keeps back for committing how the last calls ended."""


@asynccontextmanager
async def pipeline(
    config: DispatcherConfig,
    service: Service,
    gateway: Gateway,
    schedule: Schedule,
    bus: Bus,
    *,
    adapters: Mapping[str, Adapter],
    identities: Identities,
    store: Objects | None,
) -> AsyncIterator[Dispatch]:
    """Leaving claims nothing more, lets calls in flight be answered, and commits how they ended: no lease is left."""
    desk = Desk(
        progress=gateway,
        slots=Slots(gateway, service.stopping),
        shelf=Shelf(gateway, store),
        bots=Bots(),
        call_time=(config.provider_timeout + config.margin).total_seconds(),
        upload_time=(config.time_to_upload + config.margin).total_seconds(),
    )
    sender = Sender(adapters, identities, desk)

    def committed(workspace: WorkspaceId) -> None:
        schedule.ask(workspace)  # a place may have come free
        dispatch.make_room()

    run_id = RunId(new_id())
    committer = Committer(
        gateway,
        run_id=run_id,
        pause=config.pause_on_permanent,
        disable_streak=config.disable_after_permanent_streak,
        committed=committed,
    )
    payloads = Payloads(store, "dispatcher", encryption=config.payload_encryption)
    bite = config.dispatcher_limit_per_workspace
    dispatch = Dispatch(sender, Answers(payloads), committer, concurrency=config.concurrency, bite=bite)
    claimer = Claimer(
        gateway,
        schedule,
        bus,
        Topology(config.nats_namespace),
        run_id=run_id,
        limit=bite,
        lease=config.sending_lease,
        room=dispatch.room,
        has_room=dispatch.has_room,
        take=dispatch.take,
    )
    service.spawn(committer.run(), "commit")
    service.spawn(Renewal(gateway, config.sending_lease, dispatch.flights).run(), "renew")
    claims = [service.spawn(claimer.run(), f"claim-{number}") for number in range(config.claimers)]
    try:
        yield dispatch
    finally:
        service.stop()
        schedule.close()
        dispatch.has_room.set()
        await asyncio.gather(*claims, return_exceptions=True)
        await dispatch.drain(min(config.call_drain, config.drain_timeout - TO_COMMIT))
