"""The pipeline of the dispatcher: claim → send → commit, running between entering and leaving ``pipeline``."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial

from autopost_adapters.base import Adapter
from autopost_contracts.ids import RunId, WorkspaceId
from autopost_contracts.subjects import Topology
from autopost_runtime.lifecycle.pace import LATE
from autopost_runtime.lifecycle.probing import LOOK
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.lifecycle.stalls import watch_stalls
from autopost_runtime.nats.bus import Bus
from autopost_runtime.postgres.identity import new_id
from autopost_runtime.storage.objects import Objects
from autopost_runtime.storage.payloads import Payloads

from autopost_dispatcher.circuit.probing import Prober
from autopost_dispatcher.claim.claim import Claimer
from autopost_dispatcher.claim.lease import Leased, LeaseRenewal
from autopost_dispatcher.claim.schedule import ClaimSchedule, Serves
from autopost_dispatcher.commit.commit import Committer
from autopost_dispatcher.config import DispatcherConfig
from autopost_dispatcher.dispatch import Dispatch
from autopost_dispatcher.gateway import Gateway
from autopost_dispatcher.send.bots import Bots
from autopost_dispatcher.send.calls import Calls
from autopost_dispatcher.send.delivery import SendContext
from autopost_dispatcher.send.raw_answers import RawAnswers
from autopost_dispatcher.send.send import DeliverySender, Identities
from autopost_dispatcher.send.slots import Slots
from autopost_dispatcher.send.uploads import UploadCache

COMMIT_RESERVE = timedelta(seconds=1.5)
"""The part of the stop timeout that is reserved for committing the last outcomes."""


@asynccontextmanager
async def pipeline(
    config: DispatcherConfig,
    service: Service,
    gateway: Gateway,
    schedule: ClaimSchedule,
    bus: Bus,
    *,
    adapters: Mapping[str, Adapter],
    identities: Identities,
    store: Objects | None,
) -> AsyncIterator[Dispatch]:
    """On exit: stops claiming, waits for calls in flight and commits their outcomes, so that no lease is left."""
    calls = Calls()
    slots = Slots(gateway, service.stopping, calls)
    context = SendContext(
        progress=gateway,
        slots=slots,
        calls=calls,
        uploads=UploadCache(gateway, store),
        bots=Bots(gateway),
        call_time=(config.provider_timeout + config.margin).total_seconds(),
        upload_time=(config.time_to_upload + config.margin).total_seconds(),
    )
    sender = DeliverySender(adapters, identities, context)

    def committed(workspace: WorkspaceId, due_in: float | None = None) -> None:
        """The commit may have freed a place, and says so if it knows."""
        if due_in is None:
            schedule.wake_if_due(workspace)
        else:
            schedule.wake_after(workspace, due_in)
        dispatch.make_room()

    def stall_over(workspace: WorkspaceId) -> None:
        schedule.wake_if_due(workspace)
        bus.wake(Topology(config.nats_namespace).wakeup_dispatch(workspace))

    run_id = RunId(new_id())
    committer = Committer(
        gateway,
        run_id=run_id,
        pause=config.pause_on_permanent,
        disable_streak=config.disable_after_permanent_streak,
        committed=committed,
    )
    payloads = Payloads(store, "dispatcher", encryption=config.payload_encryption)
    claim_limit = config.dispatcher_limit_per_workspace
    dispatch = Dispatch(
        sender, RawAnswers(payloads), committer, concurrency=config.concurrency, claim_limit=claim_limit
    )
    claimer = Claimer(
        gateway,
        schedule,
        bus,
        Topology(config.nats_namespace),
        run_id=run_id,
        limit=claim_limit,
        lease=config.sending_lease,
        room=dispatch.room,
        has_room=dispatch.has_room,
        take=dispatch.take,
        known=dispatch.known,
        is_blocked=committer.is_blocked,
        late=LATE,
        missed=lambda: slots.missed,
        has_calls=dispatch.has_calls,
    )
    prober = Prober(
        gateway,
        adapters,
        identities,
        service,
        run_id=run_id,
        lease=config.sending_lease,
        every=min(LOOK, config.probe_base / 2),
        timeout=config.probe_timeout,
        take=dispatch.take,
        lost=claimer.lost,
    )
    service.spawn(committer.run(), "commit")
    leased = partial(_leased, dispatch, committer)
    service.spawn(LeaseRenewal(gateway, config.sending_lease, leased).run(), "renew")
    claims = [service.spawn(claimer.run(serves), f"claim-{serves.name.lower()}") for serves in Serves]
    claims.append(service.spawn(prober.run(), "probe"))
    service.spawn(
        watch_stalls(gateway, calls, dispatch.groups_waiting, service, config.stall_after, stall_over), "stalls"
    )
    try:
        yield dispatch
    finally:
        service.stop()
        schedule.close()
        dispatch.has_room.set()
        await asyncio.gather(*claims, return_exceptions=True)
        await dispatch.drain(min(config.call_drain, config.drain_timeout - COMMIT_RESERVE))


def _leased(dispatch: Dispatch, committer: Committer) -> list[Leased]:
    """Deliveries being sent and those not committed yet: both need a valid lease."""
    return [*dispatch.jobs(), *committer.leased()]
