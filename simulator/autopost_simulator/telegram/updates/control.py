"""``/_sim/telegram/…``: actions of people, answers to pressed buttons, calls of webhooks."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec
from aiohttp import web

from autopost_simulator.impossible import Impossible
from autopost_simulator.telegram.refusal import TelegramError
from autopost_simulator.telegram.updates.actions import Edited, Joined, Pressed, Started, Written
from autopost_simulator.telegram.updates.callbacks import CallbackQueries
from autopost_simulator.telegram.updates.customers import TelegramCustomers
from autopost_simulator.telegram.updates.update_queue import BotUpdate
from autopost_simulator.telegram.updates.updates import BotUpdates

Handle = Callable[[web.Request], Awaitable[web.StreamResponse]]


class TelegramSettingsSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """With ``webhook_time_scale`` 60 a minute between attempts takes a second."""

    webhook_time_scale: Annotated[float, msgspec.Meta(gt=0)]


class TelegramControl:
    def __init__(self, customers: TelegramCustomers, callbacks: CallbackQueries, updates: BotUpdates) -> None:
        self._customers = customers
        self._callbacks = callbacks
        self._updates = updates

    def add_to(self, app: web.Application) -> None:
        routes: tuple[tuple[str, str, Handle], ...] = (
            ("POST", "/_sim/telegram/customers/{user_id:\\d+}/{action}", self.act),
            ("POST", "/_sim/telegram/settings", self.post_settings),
            ("GET", "/_sim/telegram/callbacks", self.get_callbacks),
            ("GET", "/_sim/telegram/deliveries", self.get_deliveries),
            ("GET", "/_sim/telegram/polls", self.get_polls),
        )
        for verb, path, handle in routes:
            app.router.add_route(verb, path, _explaining(handle))
        app.on_cleanup.append(self._close)

    async def act(self, request: web.Request) -> web.StreamResponse:
        """Answers with the update that the bot gets; ``null`` for a type that it did not allow."""
        user_id, body = int(request.match_info["user_id"]), await request.read() or b"{}"
        update: BotUpdate | None
        match request.match_info["action"]:
            case "start":
                update = self._customers.start(user_id, msgspec.json.decode(body, type=Started))
            case "stop":
                update = self._customers.stop(user_id, msgspec.json.decode(body, type=Started))
            case "write":
                update = self._customers.write(user_id, msgspec.json.decode(body, type=Written))
            case "edit":
                update = self._customers.edit(user_id, msgspec.json.decode(body, type=Edited))
            case "press":
                update = self._customers.press(user_id, msgspec.json.decode(body, type=Pressed))
            case "add_bot":
                update = self._customers.add_bot(user_id, msgspec.json.decode(body, type=Joined))
            case "remove_bot":
                update = self._customers.remove_bot(user_id, msgspec.json.decode(body, type=Joined))
            case action:
                raise Impossible(f"unknown action {action!r}")
        return _json({"update": update.shape if update else None})

    async def post_settings(self, request: web.Request) -> web.StreamResponse:
        spec = msgspec.json.decode(await request.read(), type=TelegramSettingsSpec)
        self._updates.time_scale = spec.webhook_time_scale
        return _json({"webhook_time_scale": self._updates.time_scale})

    async def get_callbacks(self, request: web.Request) -> web.StreamResponse:
        return _json({"callbacks": self._callbacks.describe()})

    async def get_deliveries(self, request: web.Request) -> web.StreamResponse:
        return _json({"deliveries": list(self._updates.records)})

    async def get_polls(self, request: web.Request) -> web.StreamResponse:
        return _json({"polls": self._updates.polling()})

    async def _close(self, app: web.Application) -> None:
        await self._updates.close()


def _explaining(handle: Handle) -> Handle:
    async def explained(request: web.Request) -> web.StreamResponse:
        try:
            return await handle(request)
        except (msgspec.DecodeError, UnicodeDecodeError, Impossible, TelegramError) as error:
            return _json({"error": str(error)}, status=400)

    return explained


def _json(body: Any, status: int = 200) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")
