"""The lifecycle of a service: config, logs, signals, health, work, and a stop within ten seconds.

Exit codes: 0 stopped on request, 1 unexpected error, 2 invalid config. No task fails silently: a spawned task
that fails stops the service.
"""

import asyncio
import gc
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

from autopost_runtime.config.known_variables import warn_of_unknown
from autopost_runtime.config.load import ConfigError, ServiceConfig, load
from autopost_runtime.lifecycle.cancelling import end
from autopost_runtime.lifecycle.health import Health
from autopost_runtime.telemetry import logs
from autopost_runtime.telemetry import tracing as telemetry

C = TypeVar("C", bound=ServiceConfig)
R = TypeVar("R")

STOP_LIMIT = timedelta(seconds=10)


class Stopping(Exception):  # noqa: N818  named for what happened
    """The service was stopped during its start. Not an error."""


class Service:
    def __init__(self, name: str) -> None:
        self.name = name
        self.stopping = asyncio.Event()
        self.health = Health()
        self.exit_code = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, coro: Coroutine[Any, Any, R], name: str) -> asyncio.Task[R]:
        """Run a background task, cancelled after the work. If it fails, the service stops with exit code 1."""
        task = asyncio.create_task(coro, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def stop(self) -> None:
        self.stopping.set()

    def fail(self, event: str, exc: BaseException | None = None, **fields: Any) -> None:
        """Log the reason and stop with exit code 1."""
        logs.get_logger().error(event, exc_info=exc, **fields)
        self.exit_code = 1
        self.stopping.set()

    async def sleep(self, duration: timedelta) -> bool:
        """``True`` when it was interrupted because the service is stopping."""
        if self.stopping.is_set():
            return True
        try:
            async with asyncio.timeout(duration.total_seconds()):
                return await self.stopping.wait()
        except TimeoutError:
            return False

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        exc = task.exception()
        if exc is not None and not isinstance(exc, Stopping):
            self.fail("task.failed", exc, task=task.get_name())

    async def end_tasks(self) -> None:
        tasks = list(self._tasks)
        if not await end(tasks):
            self.fail("task.stuck", tasks=[task.get_name() for task in tasks if not task.done()])


def run(name: str, config_type: type[C], work: Callable[[C, Service], Awaitable[None]]) -> NoReturn:
    """The entry point of a service."""
    _occupy_standard_descriptors()
    try:
        config = load(config_type)
    except ConfigError as wrong:
        _write_error("".join(f"autopost-{name}: {problem}\n" for problem in wrong.problems))
        sys.exit(2)
    logs.setup(name, config.log_format, config.log_level)
    warn_of_unknown(os.environ)
    telemetry.setup(name, config)
    collect_seldom()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        code = runner.run(_run_service(Service(name), config, work))
    telemetry.shutdown()
    os._exit(code)  # a stuck library thread must not keep the process alive


def _occupy_standard_descriptors() -> None:
    """A closed descriptor would be reused for a connection, and libuv aborts when that connection is closed."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def collect_seldom() -> None:
    """Run the garbage collector less often: it took a twelfth of a busy service's time. Loaded modules stay, and the
    objects of a request are mostly freed by reference counting."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


async def _run_service(service: Service, config: C, work: Callable[[C, Service], Awaitable[None]]) -> int:
    _handle_signals(service)
    log = logs.get_logger()
    try:
        await service.health.start(config.health_host, config.health_port)
    except OSError as exc:
        service.fail("service.failed", exc, host=config.health_host, port=config.health_port)
        return service.exit_code
    log.info("service.started", pid=os.getpid())
    await _work_until_stopped(service, config, work)
    await service.end_tasks()
    await service.health.stop()
    log.info("service.stopped", exit_code=service.exit_code)
    return service.exit_code


async def _work_until_stopped(service: Service, config: C, work: Callable[[C, Service], Awaitable[None]]) -> None:
    working = asyncio.ensure_future(work(config, service))
    stopping = asyncio.create_task(service.stopping.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    _limit_stop_time()  # also here: not every stop begins with a signal
    stopping.cancel()
    service.stopping.set()
    await asyncio.wait({working}, timeout=config.drain_timeout.total_seconds())
    if not working.done():
        service.fail("service.drain_timed_out", drain_timeout=str(config.drain_timeout))
        working.cancel()
    try:
        await working
    except (asyncio.CancelledError, Stopping):
        pass
    except Exception as exc:
        service.fail("service.failed", exc)


def _handle_signals(service: Service) -> None:
    def on_signal(number: int) -> None:
        if service.stopping.is_set():
            os._exit(1)  # the second signal stops at once, without draining
        logs.get_logger().info("service.stopping", signal=signal.Signals(number).name)
        _limit_stop_time()
        service.stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)


def _limit_stop_time() -> None:
    """Uses a thread, so that it also ends a process with a stuck event loop."""

    def exit_now() -> None:
        _write_error(f"not stopped after {STOP_LIMIT.total_seconds():g} s, exiting\n")
        os._exit(1)

    timer = threading.Timer(STOP_LIMIT.total_seconds(), exit_now)
    timer.daemon = True
    timer.start()


def _write_error(text: str) -> None:
    """Write to stderr; a closed stderr must not prevent the exit."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(text)
        sys.stderr.flush()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # not available on Windows
        return None
    return uvloop.new_event_loop
