"""The routes of Telegram: the Bot API, downloads and control."""

from aiohttp import web

from autopost_simulator.clock import Clock
from autopost_simulator.exchange import CallHandler
from autopost_simulator.limits import Windows
from autopost_simulator.telegram.endpoint import TelegramEndpoint
from autopost_simulator.telegram.methods import Methods
from autopost_simulator.telegram.state import TelegramState
from autopost_simulator.telegram.storage.downloads import Downloads
from autopost_simulator.telegram.updates.control import TelegramControl
from autopost_simulator.telegram.updates.customers import TelegramCustomers
from autopost_simulator.world import World


class TelegramService:
    def __init__(self, world: World, windows: Windows, clock: Clock, *, is_strict: bool) -> None:
        self._is_strict = is_strict
        self._world = world
        self._state = state = TelegramState(world, clock)
        self._methods = Methods(state, windows)
        self._customers = TelegramCustomers(world, clock, state.updates, state.callbacks, state.files, state.intake)

    def add_to(self, app: web.Application, exchange: CallHandler) -> None:
        endpoint = TelegramEndpoint(self._world, self._methods, exchange, is_strict=self._is_strict)
        endpoint.add_to(app)
        self._state.updates.call = endpoint.call_from_webhook
        Downloads(self._world, self._state.files, self._state.pages, exchange).add_to(app)
        TelegramControl(self._customers, self._state.callbacks, self._state.updates).add_to(app)

    def clear(self) -> None:
        self._state.clear()
        self._customers.clear()
