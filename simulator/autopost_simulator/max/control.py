"""``/_sim/max/…``: actions of people, settings and stored files of MAX."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web

from autopost_simulator.impossible import Impossible
from autopost_simulator.max.customer import Customers, Edit, Membership, Press, Remove, StartSpec, Write
from autopost_simulator.max.settings import SettingsSpec
from autopost_simulator.max.state import MaxState
from autopost_simulator.max.upload.files import FileState, MaxFile
from autopost_simulator.uploaded_file import serve_uploaded

Handle = Callable[[web.Request], Awaitable[web.StreamResponse]]


class FileSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``None`` restores the state from the settings."""

    state: FileState | None


class ForwardingSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    chat_id: int
    allowed: bool


class MaxControl:
    def __init__(self, state: MaxState, customers: Customers) -> None:
        self._stage = state
        self._customers = customers

    def add_to(self, app: web.Application) -> None:
        routes: tuple[tuple[str, str, Handle], ...] = (
            ("POST", "/_sim/max/customers/{user_id:\\d+}/{deed}", self.act),
            ("GET", "/_sim/max/settings", self.get_settings),
            ("POST", "/_sim/max/settings", self.post_settings),
            ("POST", "/_sim/max/forwarding", self.post_forwarding),
            ("GET", "/_sim/max/callbacks", self.get_callbacks),
            ("GET", "/_sim/max/deliveries", self.get_deliveries),
            ("GET", "/_sim/max/files", self.get_files),
            ("POST", "/_sim/max/files/{key}", self.post_file),
        )
        for verb, path, handle in routes:
            app.router.add_route(verb, path, _explaining(handle))
        for path in ("/_sim/max/files/{key}", "/max-files/{key}"):
            app.router.add_get(path, self.get_file)
        app.on_cleanup.append(self._close)

    async def act(self, request: web.Request) -> web.StreamResponse:
        """Answers with the update that the bot gets."""
        user_id, body = int(request.match_info["user_id"]), await request.read() or b"{}"
        match request.match_info["deed"]:
            case "start":
                update = self._customers.start(user_id, msgspec.json.decode(body, type=StartSpec))
            case "stop":
                update = self._customers.stop(user_id, msgspec.json.decode(body, type=StartSpec))
            case "write":
                update = self._customers.write(user_id, msgspec.json.decode(body, type=Write), _origin(request))
            case "edit":
                update = self._customers.edit(user_id, msgspec.json.decode(body, type=Edit))
            case "remove":
                update = self._customers.remove(user_id, msgspec.json.decode(body, type=Remove))
            case "press":
                update = self._customers.press(user_id, msgspec.json.decode(body, type=Press))
            case "add_bot":
                update = self._customers.add_bot(user_id, msgspec.json.decode(body, type=Membership))
            case "remove_bot":
                update = self._customers.remove_bot(user_id, msgspec.json.decode(body, type=Membership))
            case deed:
                raise Impossible(f"unknown action {deed!r}")
        return _json({"update": update})

    async def get_settings(self, request: web.Request) -> web.StreamResponse:
        return _json(self._stage.settings.describe())

    async def post_settings(self, request: web.Request) -> web.StreamResponse:
        self._stage.settings.change(msgspec.json.decode(await request.read(), type=SettingsSpec))
        return _json(self._stage.settings.describe())

    async def post_forwarding(self, request: web.Request) -> web.StreamResponse:
        spec = msgspec.json.decode(await request.read(), type=ForwardingSpec)
        closed = self._stage.messages.closed_to_forwarding
        closed.discard(spec.chat_id) if spec.allowed else closed.add(spec.chat_id)
        return _json({"closed_to_forwarding": sorted(closed)})

    async def get_callbacks(self, request: web.Request) -> web.StreamResponse:
        return _json({"callbacks": self._stage.callbacks.describe()})

    async def get_deliveries(self, request: web.Request) -> web.StreamResponse:
        return _json({"deliveries": list(self._stage.webhooks.records)})

    async def get_files(self, request: web.Request) -> web.StreamResponse:
        return _json({"files": self._stage.files.describe()})

    async def post_file(self, request: web.Request) -> web.StreamResponse:
        file = self._found(request)
        file.state = msgspec.json.decode(await request.read(), type=FileSpec).state
        return _json(self._stage.files.description(file))

    async def get_file(self, request: web.Request) -> web.StreamResponse:
        """By id, attachment token or checksum."""
        try:
            file = self._found(request)
        except Impossible as error:
            return _json({"error": str(error)}, status=404)
        if file.data is None:
            return _json({"error": "the content of this file was not kept"}, status=410)
        return serve_uploaded(file.data, file.content_type, {"ETag": f'"{file.sha256}"'})

    def _found(self, request: web.Request) -> MaxFile:
        file = self._stage.files.find(request.match_info["key"])
        if file is None:
            raise Impossible(f"no file {request.match_info['key']}")
        return file

    async def _close(self, app: web.Application) -> None:
        await self._stage.webhooks.close()


def _origin(request: web.Request) -> str:
    return f"{request.scheme}://{request.host}"


def _explaining(handle: Handle) -> Handle:
    async def explained(request: web.Request) -> web.StreamResponse:
        try:
            return await handle(request)
        except (msgspec.DecodeError, UnicodeDecodeError, Impossible) as error:
            return _json({"error": str(error)}, status=400)

    return explained


def _json(body: Any, status: int = 200) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")
