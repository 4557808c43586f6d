"""The whole system of ``autopost up`` as one object that tests and the demo control.

    async with Stack() as stack:
        stack.kill("dispatcher", signal.SIGKILL)

The parts are named postgres, nats, s3, simulator, and like the services.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from autopost_cli.development import TOKENS
from autopost_cli.embedded.folders import emptied, kept_or_scratch
from autopost_cli.embedded.postgres import DURABLE
from autopost_cli.embedded.processes import BackendError, Process
from autopost_cli.embedded.program import Program, shortened
from autopost_cli.stack.backends import DATABASE, Backends
from autopost_cli.stack.bots import subscribe_bots
from autopost_cli.stack.prepare import Prepare, await_database, create_database, prepare_database, prepare_streams
from autopost_cli.stack.services import SERVICES, ServiceProgram, ServiceSpec, environment
from autopost_cli.stack.settings import Ports, read_settings
from autopost_cli.stack.supervise import Supervisor

ALL = ("postgres", "nats", "s3", "simulator")
READY_WITHIN = timedelta(seconds=60)
DRAIN = timedelta(seconds=8)
STOP_WITHIN = timedelta(seconds=9.5)  # ``DRAIN`` for the services, the rest for the backends
DEFAULTS = {"AUTOPOST_DRAIN_TIMEOUT": "7s", **TOKENS}
OnLogs = Callable[[Path], contextlib.AbstractContextManager[Any]]


class Stack:
    """``env`` replaces the environment of this process; ``service_env`` adds to it, by service.

    Raises ``ConfigError`` for invalid settings, ``BackendError`` when a part does
    not start, ``RefusedError`` when a service rejects its configuration.
    """

    def __init__(
        self,
        *,
        data: Path | None = None,
        env: Mapping[str, str] | None = None,
        service_env: Mapping[str, Mapping[str, str]] | None = None,
        services: Sequence[ServiceSpec] = SERVICES,
        backends: Collection[str] = ALL,
        postgres_settings: Mapping[str, str] = DURABLE,
        prepare: Prepare = prepare_database,
        ready_within: timedelta = READY_WITHIN,
        drain: timedelta = DRAIN,
        on_logs: OnLogs | None = None,
    ) -> None:
        self._env = {**DEFAULTS, **(os.environ if env is None else env)}
        self._service_env = service_env or {}
        self._services = services
        self._wanted = backends
        self._postgres_settings = postgres_settings
        self._prepare = prepare
        self._ready_within = ready_within
        self._drain = drain
        self._on_logs = on_logs or (lambda _: contextlib.nullcontext())
        self._asked_data = data
        self._settings = read_settings(self._env)
        self._open = contextlib.ExitStack()
        self._supervisors: dict[str, Supervisor] = {}
        self.data: Path
        self.backends: Backends
        self._refusal: asyncio.Future[None]

    async def __aenter__(self) -> Self:
        self._refusal = asyncio.get_running_loop().create_future()
        try:
            await self._start()
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    @property
    def urls(self) -> dict[str, str]:
        """The public address of each service that has one."""
        return {name: program.url for name, program in self._service_programs() if program.url}

    @property
    def health_urls(self) -> dict[str, str]:
        return {name: program.health_url for name, program in self._service_programs()}

    def describe(self) -> dict[str, Any]:
        """The line of ``autopost up --json``."""
        return {
            **self.health_urls,
            **self.urls,
            "simulator": self.backends.simulator_url,
            "database_url": self.backends.database_url,
            "nats_url": self.backends.nats_url,
            "s3_url": self.backends.s3_url,
            "health": self.health_urls,
        }

    def log(self, name: str) -> Path:
        return self.data / "logs" / f"{name}.log"

    def log_lines(self, name: str) -> list[str]:
        return self.log(name).read_text(errors="replace").splitlines()

    def pid(self, name: str) -> int:
        return self._process(name).pid

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal; the supervisor restarts the program as after a crash."""
        self._process(name).send(number)

    def kill_all(self) -> None:
        """Kill everything at once; leave the stack afterwards."""
        for supervisor in self._supervisors.values():
            supervisor.kill()

    async def stop(self, name: str) -> None:
        """Stop it without a restart."""
        await self._supervisors[name].stop()

    async def start(self, name: str) -> None:
        """Start a stopped part on its port and data; returns when it answers."""
        await self._supervisors[name].start()
        await self.ready(name)
        if name == "simulator":
            await self._subscribe_bots()

    async def ready(self, name: str) -> None:
        await self._supervisors[name].ready(self._ready_within)

    async def restart(self, name: str, env: Mapping[str, str] | None = None) -> None:
        """Restart a part; a service gets ``env`` in addition to its environment."""
        await self.stop(name)
        program = self._supervisors[name].program
        if isinstance(program, ServiceProgram):
            program.env |= env or {}
        await self.start(name)

    async def refused(self) -> None:
        """Never returns; raises ``RefusedError`` when a service rejects its configuration."""
        await asyncio.shield(self._refusal)

    async def stop_nats(self) -> None:
        await self.stop("nats")

    async def start_nats(self) -> None:
        await self.start("nats")

    def report(self, text: str) -> None:
        with self.log("up").open("a") as file:
            file.write(f"{text}\n")

    async def _start(self) -> None:
        self.data = self._open.enter_context(kept_or_scratch(self._asked_data, "autopost-up-"))
        self._open.enter_context(self._on_logs(emptied(self.data / "logs")))
        ports = Ports(self._settings)
        self.backends = Backends(
            self._settings, ports, self.data, wanted=self._wanted, postgres_settings=self._postgres_settings
        )
        await self._start_backends()
        await self._start_services(ports)

    async def _start_backends(self) -> None:
        """Concurrently: they do not depend on each other."""
        parts = (self._start_database(), self._start_nats(), self._keep(self.backends.s3))
        try:
            async with asyncio.TaskGroup() as group:
                for part in (*parts, self._keep(self.backends.simulator)):
                    group.create_task(part)
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _start_database(self) -> None:
        url = self.backends.database_url
        if postgres := self.backends.postgres:
            await self._keep(postgres)
            await create_database(postgres.url(), DATABASE)
        elif url:
            await await_database(url)
        if url:
            await self._prepare(url)

    async def _start_nats(self) -> None:
        await self._keep(self.backends.nats)
        if not self.backends.nats_url:
            return
        try:
            await prepare_streams(self.backends.nats_url, self._settings.nats_namespace, self._settings)
        except BackendError as error:
            self.report(f"{error}; the services start without NATS and keep trying to connect")

    async def _start_services(self, ports: Ports) -> None:
        programs = [self._program(service, ports) for service in self._services]
        for program in programs:
            await self._keep(program)
        await self._subscribe_bots()  # before the bot service looks where its updates come to
        for program in programs:
            await self.ready(program.name)

    async def _subscribe_bots(self) -> None:
        """Never at a real platform: only where the services call the simulator."""
        simulator, ingest = self.backends.simulator_url, self.urls.get("ingest")
        if not (simulator and ingest) or self._settings.max_api_url:
            return
        try:
            await subscribe_bots(simulator, ingest, self._env)
        except BackendError as error:
            self.report(f"{error}; nobody answers in its chats")

    async def _resubscribe_bots(self) -> None:
        """A new simulator knows no webhooks."""
        await self.ready("simulator")
        await self._subscribe_bots()

    def _program(self, service: ServiceSpec, ports: Ports) -> ServiceProgram:
        public = ports.take(service.name) if service.public else None
        health = ports.take(f"{service.name}_health")
        own = {"AUTOPOST_HEALTH_PORT": str(health), "AUTOPOST_HTTP_PORT": str(public) if public else None}
        env = environment(self._env, {**self.backends.environment(), **own})
        env |= self._service_env.get(service.name, {})
        return ServiceProgram(service, self.log(service.name), env, public, health)

    async def _keep(self, program: Program | None) -> None:
        if program:
            restarted = self._resubscribe_bots if program.name == "simulator" else None
            supervisor = Supervisor(program, self.report, self._refusal, restarted)
            self._supervisors[program.name] = supervisor
            await supervisor.start()

    async def _end(self) -> None:
        clock = asyncio.get_running_loop().time
        deadline = clock() + STOP_WITHIN.total_seconds()
        services = [self._supervisors[name] for name, _ in self._service_programs()]
        rest = [self._supervisors[name] for name in reversed(ALL) if name in self._supervisors]
        try:
            await asyncio.gather(*(supervisor.stop(((signal.SIGTERM, self._drain),)) for supervisor in services))
            for ended, supervisor in enumerate(rest):
                share = timedelta(seconds=(deadline - clock()) / (len(rest) - ended))
                await supervisor.stop(shortened(supervisor.program.shutdown, share))
        finally:
            self._open.close()

    def _service_programs(self) -> Iterable[tuple[str, ServiceProgram]]:
        for name, supervisor in self._supervisors.items():
            if isinstance(supervisor.program, ServiceProgram):
                yield name, supervisor.program

    def _process(self, name: str) -> Process:
        process = self._supervisors[name].program.process
        if process is None:
            raise BackendError(f"{name} is stopped")
        return process
