"""Start publications when they are due: asleep until the next one by the database's clock, awake at a wakeup.

A replica that starts some publishes their commands at once. Without NATS it begins them itself: nothing waits for it.
Publications whose command was lost are found in their table.
"""

import asyncio
from datetime import timedelta

from autopost_contracts.subjects import Topology
from autopost_runtime.lifecycle.backoff import Backoff
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.nats.bus import Bus, NotPublished, PublishUnknown

from autopost_ingest.errors import log_background_error
from autopost_ingest.publications.begin import PublicationStarter
from autopost_ingest.publications.gateway import Command, Due, PublicationGateway

BATCH = 200
ORPHANED_AFTER = timedelta(seconds=5)
LONGEST_REST = timedelta(seconds=30)
AT_ONCE = 4
PUBLISH_TIMEOUT = timedelta(seconds=1)


class DueLoop:
    def __init__(
        self, gateway: PublicationGateway, starter: PublicationStarter, bus: Bus, topology: Topology, poll: timedelta
    ) -> None:
        self._gateway = gateway
        self._starter = starter
        self._bus = bus
        self._topology = topology
        self._poll = poll
        self._woken = asyncio.Event()
        self._faults = Backoff(poll, LONGEST_REST)

    def wake(self, _: str = "") -> None:
        self._woken.set()

    async def run(self, service: Service) -> None:
        while not service.stopping.is_set():
            self._woken.clear()
            try:
                rest = await self.round()
                self._faults.reset()
            except Exception as exc:
                log_background_error(exc, "publications.not_started")
                rest = self._faults.next()
            await self._sleep(service, rest)

    async def round(self) -> timedelta:
        """Starts what is due and begins what was left over; returns how long nothing more is due."""
        started = await self._gateway.due_publications(BATCH)
        if started.due:
            await self._hand_over(started.due)
        orphans = await self._gateway.orphaned_publications(ORPHANED_AFTER, BATCH)
        await self._begin_all(orphans)
        return min(self._poll, timedelta(seconds=started.next_in)) if started.next_in is not None else self._poll

    async def _hand_over(self, due: tuple[Due, ...]) -> None:
        if self._bus.connected:
            commands = await self._gateway.unpublished_commands(timedelta(0), BATCH)
            published = await self._publish_all(commands)
            if published:
                await self._gateway.commands_published(published)
            if len(published) == len(commands):
                return
        await self._begin_all(due)

    async def _publish_all(self, commands: list[Command]) -> list[Command]:
        """Those that are stored. The monitor publishes the others again, with the same ids."""
        published = []
        for command in commands:
            headers = {"traceparent": command.traceparent} if command.traceparent else {}
            subject = self._topology.commands + command.subject.removeprefix("delivery.commands")
            try:
                await self._bus.publish(
                    subject, command.payload.encode(), msg_id=command.msg_id, headers=headers, timeout=PUBLISH_TIMEOUT
                )
            except NotPublished:
                continue
            except PublishUnknown:  # NATS hangs: nothing that is due waits for more than one answer of it
                break
            published.append(command)
        return published

    async def _begin_all(self, due: tuple[Due, ...] | list[Due]) -> None:
        limit = asyncio.Semaphore(AT_ONCE)

        async def begin(one: Due) -> None:
            async with limit:
                try:
                    await self._starter.begin(one)
                except Exception as exc:  # one publication never stops the others; the sweep finds it again
                    log_background_error(exc, "publication.not_begun")

        await asyncio.gather(*(begin(one) for one in due))

    async def _sleep(self, service: Service, rest: timedelta) -> None:
        stopping = asyncio.create_task(service.stopping.wait())
        woken = asyncio.create_task(self._woken.wait())
        try:
            await asyncio.wait({stopping, woken}, timeout=rest.total_seconds(), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            woken.cancel()
