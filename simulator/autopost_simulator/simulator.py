"""The simulator: its parts and the aiohttp application."""

from pathlib import Path

from aiohttp import web

from autopost_simulator.clock import Clock, SystemClock
from autopost_simulator.control import Control
from autopost_simulator.exchange import CallHandler
from autopost_simulator.faults import Faults
from autopost_simulator.journal import Journal
from autopost_simulator.limits import Windows
from autopost_simulator.max.service import MaxService
from autopost_simulator.page import add_page
from autopost_simulator.registration import StartState, register_chat, register_token
from autopost_simulator.telegram.service import TelegramService
from autopost_simulator.world import World

LARGEST_BODY = 64 * 1024 * 1024


class Simulator:
    """Serve it without an access log: Telegram tokens are part of the URL.

    ``strict``: refuse unknown and mistyped fields, which the platforms ignore.
    """

    def __init__(
        self,
        *,
        start: StartState | None = None,
        log: Path | None = None,
        open_to_all: bool = False,
        clock: Clock | None = None,
        strict: bool = True,
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        self.world = World(open_to_all=open_to_all)
        self.windows = Windows(self.clock)
        self.telegram = TelegramService(self.world, self.windows, self.clock, is_strict=strict)
        self.max = MaxService(self.world, self.windows, self.clock, is_strict=strict)
        self.faults = Faults()
        self.journal = Journal(log)
        self._start = start or StartState()
        self._register()

    def application(self) -> web.Application:
        app = web.Application(client_max_size=LARGEST_BODY)
        exchange = CallHandler(self.clock, self.faults, self.journal)
        self.telegram.add_to(app, exchange)
        self.max.add_to(app, exchange)
        Control(self).add_to(app)
        add_page(app)
        app.on_cleanup.append(self._close)
        return app

    def reset(self) -> int:
        """Restore the initial state. The log is kept; returns the number after which new entries start."""
        self.world.clear()
        self.windows.clear()
        self.telegram.clear()
        self.max.clear()
        self.faults.remove()
        self.journal.forget()
        self._register()
        return self.journal.last

    def _register(self) -> None:
        for token in self._start.tokens:
            register_token(self.world, token)
        for chat in self._start.chats:
            register_chat(self.world, chat)

    async def _close(self, app: web.Application) -> None:
        self.telegram.clear()
        self.journal.close()


def application(
    *,
    start: StartState | None = None,
    log: Path | None = None,
    open_to_all: bool = False,
    clock: Clock | None = None,
    strict: bool = True,
) -> web.Application:
    return Simulator(start=start, log=log, open_to_all=open_to_all, clock=clock, strict=strict).application()
