"""The Bot API and what it keeps beside the world: sent files, and what lies at addresses."""

from aiohttp import web

from autopost_simulator.clock import Clock
from autopost_simulator.exchange import Exchange
from autopost_simulator.limits import Windows
from autopost_simulator.telegram.downloads import Downloads
from autopost_simulator.telegram.endpoint import Endpoint
from autopost_simulator.telegram.files import Files
from autopost_simulator.telegram.methods import Methods
from autopost_simulator.telegram.remote import Web
from autopost_simulator.world import World


class TelegramService:
    def __init__(self, world: World, windows: Windows, clock: Clock) -> None:
        self._world = world
        self._files = Files()
        self._pages = Web()
        self._methods = Methods(world, windows, clock, self._files, self._pages)

    def add_to(self, app: web.Application, exchange: Exchange) -> None:
        Endpoint(self._world, self._methods, exchange).add_to(app)
        Downloads(self._world, self._files, self._pages, exchange).add_to(app)

    def clear(self) -> None:
        """Also what is to be done at the end: no file stays open."""
        self._files.clear()
        self._pages.clear()
