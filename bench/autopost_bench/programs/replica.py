"""A dispatcher as it ships: the same parts with the same defaults, its own pipeline, that counts.

Run as a program it is a replica of its own: it says ``ready``, starts on ``go``, tells how many it has committed, and
ends when its standard input does.
"""

import asyncio
import contextlib
import io
import os
import sys
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from autopost_adapters.base import AcceptedPart, Adapter, Held, Material, Source, Target
from autopost_adapters.registry import adapters
from autopost_contracts.ids import ClaimToken, DeliveryId, RunId, WorkspaceId
from autopost_contracts.plan import Part, PlannedMedia
from autopost_dispatcher.claim.schedule import ClaimSchedule
from autopost_dispatcher.config import DispatcherConfig
from autopost_dispatcher.dispatch import poll
from autopost_dispatcher.gateway import NEVER, Gateway
from autopost_dispatcher.pipeline import pipeline
from autopost_runtime.config.load import Secret, ServiceConfig, load
from autopost_runtime.http.client import HttpClient
from autopost_runtime.lifecycle.service import Service, collect_seldom
from autopost_runtime.nats.bus import open_bus
from autopost_runtime.postgres.pool import Database, open_database
from autopost_runtime.secrets.credentials import Credentials
from autopost_runtime.telemetry import logs
from autopost_runtime.telemetry import tracing as telemetry

from autopost_bench.machine.server import BenchError, settled
from autopost_bench.machine.tenants import ENVIRONMENT

NOOP = "noop"
WARM_UP = 1500

Told = Callable[[int], None]


class NoOp:
    """Every part is accepted at once; there is still one coroutine per delivery."""

    platform = "telegram"
    uploads_apart = False
    can_find = False
    identifies_by_call = False
    patience: Mapping[str, Sequence[timedelta]] = {}

    async def identify(self, token: Secret) -> str:
        return "1"

    async def probe(self, token: Secret, within: timedelta) -> None:
        return None

    async def send(self, part: Part, target: Target, media: Sequence[Material] = ()) -> AcceptedPart:
        return AcceptedPart(provider_ids=("1",))

    async def upload(self, item: PlannedMedia, source: Source, target: Target) -> Held:
        return Held(provider_id="1")

    async def find(self, part: Part, target: Target, since: datetime, other_than: Collection[str]) -> None:
        return None


class CountingGateway(Gateway):
    def __init__(self, database: Database, told: Told) -> None:
        super().__init__(database)
        self._told = told

    async def commit_deliveries(
        self,
        workspace: WorkspaceId,
        run_id: RunId,
        outcomes: list[dict[str, Any]],
        pause: timedelta,
        disable_streak: int,
    ) -> set[DeliveryId]:
        stale = await super().commit_deliveries(workspace, run_id, outcomes, pause, disable_streak)
        self._told(len(outcomes) - len(stale))
        return stale

    async def commit_sent(
        self,
        workspace: WorkspaceId,
        run_id: RunId,
        ids: Sequence[DeliveryId],
        tokens: Sequence[ClaimToken],
        provider_message_ids: Sequence[str],
    ) -> list[int]:
        left = await super().commit_sent(workspace, run_id, ids, tokens, provider_message_ids)
        self._told(len(ids) - len(left))
        return left

    async def commit_sent_across(
        self,
        run_id: RunId,
        workspaces: Sequence[WorkspaceId],
        ids: Sequence[DeliveryId],
        tokens: Sequence[ClaimToken],
        provider_message_ids: Sequence[str],
    ) -> tuple[list[int], dict[WorkspaceId, float]]:
        left, dues = await super().commit_sent_across(run_id, workspaces, ids, tokens, provider_message_ids)
        self._told(len(ids) - len(left))
        return left, dues


class Replica:
    """Connected and idle until ``start``; counts what it has brought to its end."""

    def __init__(self, service: Service, config: DispatcherConfig, database: Database, told: Told) -> None:
        self.service = service
        self.config = config
        self.schedule = ClaimSchedule()
        self.gateway = CountingGateway(database, self._count)
        self.committed = 0
        self._told = told
        self._counted = asyncio.Event()

    def start(self) -> None:
        """Polls at once, as a dispatcher does when it starts."""
        self.service.spawn(poll(self.schedule, self.gateway, self.config.poll_interval, self.service.stopping), "poll")

    async def warm(self, workspace: WorkspaceId) -> None:
        """Through a workspace of its own, so that no measurement pays for connections and plans."""
        self.schedule.wake(workspace)
        await self.reached(WARM_UP)
        self.committed = 0

    async def reached(self, committed: int) -> None:
        stopping = asyncio.ensure_future(self.service.stopping.wait())
        while self.committed < committed:
            self._counted.clear()
            counted = asyncio.ensure_future(self._counted.wait())
            await asyncio.wait({stopping, counted}, return_when=asyncio.FIRST_COMPLETED)
            if stopping.done():
                raise BenchError("a part of the dispatcher failed; its log line says why")
        stopping.cancel()

    async def idle(self, workspace: WorkspaceId, within: float = 10) -> None:
        """Until it has found out that nothing is left to do."""

        async def nothing_due() -> bool:
            return await self.gateway.next_due_in(workspace) == NEVER

        await settled(nothing_due, within, "the dispatcher left something due")

    def _count(self, committed: int) -> None:
        self.committed += committed
        self._counted.set()
        self._told(self.committed)


@contextlib.asynccontextmanager
async def replica(
    config: DispatcherConfig, sending: Mapping[str, Adapter], told: Told = lambda _: None
) -> AsyncIterator[Replica]:
    """``told`` hears how many it has committed, each time some more are."""
    service = Service("dispatcher")
    observe(config, "dispatcher")
    async with open_database(config, service) as database, open_bus(config, service) as bus:
        made = Replica(service, config, database, told)
        try:
            async with pipeline(
                config,
                service,
                made.gateway,
                made.schedule,
                bus,
                adapters=sending,
                identities=Credentials(made.gateway, ENVIRONMENT),
                store=None,
            ):
                yield made
        finally:
            await service.end_tasks()
            telemetry.shutdown()


def observe(config: ServiceConfig, name: str) -> None:
    """Metrics, ids and log lines as shipped; only what is not an ordinary line is shown."""
    with contextlib.redirect_stdout(_Sink()):
        logs.setup(name, config.log_format, config.log_level)
    telemetry.setup(name, config)


class _Sink(io.TextIOBase):
    def write(self, line: str) -> int:
        return len(line) if '"level":"info"' in line or line == "\n" else sys.stderr.write(line)


async def live(config: DispatcherConfig, provider: str, warm: WorkspaceId) -> None:
    """The program's life, told through standard input and output."""
    async with HttpClient(limit=config.concurrency) as http:
        sending = _adapters(provider, http, config)
        async with replica(config, sending, lambda committed: say(str(committed))) as running:
            await running.warm(warm)
            say("ready")
            lines = await standard_input()
            while line := await lines.readline():
                if line.strip() == b"go":
                    running.start()


def _adapters(provider: str, http: HttpClient, config: DispatcherConfig) -> Mapping[str, Adapter]:
    if provider == NOOP:
        return {NoOp.platform: NoOp()}
    return adapters(http, telegram_url=provider, max_url=provider, timeout=config.provider_timeout)


async def standard_input() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


if __name__ == "__main__":
    import uvloop

    collect_seldom()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(live(load(DispatcherConfig), sys.argv[1], WorkspaceId(UUID(sys.argv[2]))))
