"""The Bot API with its own state: sent files and remote pages."""

from aiohttp import web

from autopost_simulator.clock import Clock
from autopost_simulator.exchange import CallHandler
from autopost_simulator.limits import Windows
from autopost_simulator.telegram.downloads import Downloads
from autopost_simulator.telegram.endpoint import TelegramEndpoint
from autopost_simulator.telegram.files import TelegramFiles
from autopost_simulator.telegram.methods import Methods
from autopost_simulator.telegram.remote import Web
from autopost_simulator.world import World


class TelegramService:
    def __init__(self, world: World, windows: Windows, clock: Clock) -> None:
        self._world = world
        self._files = TelegramFiles()
        self._pages = Web()
        self._methods = Methods(world, windows, clock, self._files, self._pages)

    def add_to(self, app: web.Application, exchange: CallHandler) -> None:
        TelegramEndpoint(self._world, self._methods, exchange).add_to(app)
        Downloads(self._world, self._files, self._pages, exchange).add_to(app)

    def clear(self) -> None:
        """Also closes the temporary files."""
        self._files.clear()
        self._pages.clear()
