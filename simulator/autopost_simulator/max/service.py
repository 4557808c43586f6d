"""All of MAX: its API, its upload host and what a test controls about it, as one thing to mount."""

from aiohttp import web

from autopost_simulator.clock import Clock
from autopost_simulator.exchange import Exchange
from autopost_simulator.limits import Windows
from autopost_simulator.max.backstage import Backstage
from autopost_simulator.max.control import MaxControl
from autopost_simulator.max.customer import Customers
from autopost_simulator.max.endpoint import Endpoint
from autopost_simulator.max.operations import Operations
from autopost_simulator.max.upload_host import UploadHost
from autopost_simulator.world import World


class MaxService:
    def __init__(self, world: World, windows: Windows, clock: Clock) -> None:
        self._world = world
        self._backstage = Backstage(world, windows, clock)
        self._operations = Operations(world, windows, clock, self._backstage)
        self._customers = Customers(world, clock, self._backstage)

    def add_to(self, app: web.Application, exchange: Exchange) -> None:
        Endpoint(self._world, self._operations, exchange).add_to(app)
        UploadHost(self._backstage.uploads, exchange).add_to(app)
        MaxControl(self._backstage, self._customers).add_to(app)

    def clear(self) -> None:
        self._backstage.clear()
