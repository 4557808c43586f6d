"""The routes of MAX: API, upload host and control."""

from aiohttp import web

from autopost_simulator.clock import Clock
from autopost_simulator.exchange import CallHandler
from autopost_simulator.limits import Windows
from autopost_simulator.max.control import MaxControl
from autopost_simulator.max.customer import Customers
from autopost_simulator.max.endpoint import MaxEndpoint
from autopost_simulator.max.operations import Operations
from autopost_simulator.max.state import MaxState
from autopost_simulator.max.upload.upload_host import UploadHost
from autopost_simulator.world import World


class MaxService:
    def __init__(self, world: World, windows: Windows, clock: Clock, *, is_strict: bool) -> None:
        self._is_strict = is_strict
        self._world = world
        self._state = MaxState(world, windows, clock)
        self._operations = Operations(world, windows, clock, self._state)
        self._customers = Customers(world, clock, self._state)

    def add_to(self, app: web.Application, exchange: CallHandler) -> None:
        MaxEndpoint(self._world, self._operations, exchange, is_strict=self._is_strict).add_to(app)
        UploadHost(self._state.uploads, exchange).add_to(app)
        MaxControl(self._state, self._customers).add_to(app)

    def clear(self) -> None:
        self._state.clear()
