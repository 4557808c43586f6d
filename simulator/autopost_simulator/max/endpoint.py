"""``/max/…``, and the same at the root: converts an HTTP request into an operation, and its result into a response.

The official Go client keeps only the host of its base URL, so the operations are at the root too.
"""

import hashlib

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from autopost_simulator import reply
from autopost_simulator.exchange import CallHandler, ProviderCall
from autopost_simulator.max.operation_call import OperationCall
from autopost_simulator.max.operations import Operation, Operations
from autopost_simulator.max.refusal import MaxError, MaxRateLimited, named, payload
from autopost_simulator.max.shapes import place_of
from autopost_simulator.max.strict import refuse_unknown
from autopost_simulator.reply import Reply
from autopost_simulator.world import World


class _OnlyText(msgspec.Struct):
    text: str | None = None


class MaxEndpoint:
    def __init__(self, world: World, operations: Operations, exchange: CallHandler, *, is_strict: bool) -> None:
        self._is_strict = is_strict
        self._world = world
        self._operations = operations
        self._exchange = exchange

    def add_to(self, app: web.Application) -> None:
        for template, by_verb in self._operations.table.items():
            for prefix in ("/max", ""):
                app.router.add_route("*", f"{prefix}{template}", self._handler(template, by_verb))
        app.router.add_route("*", "/max/{path:.*}", self._handler("", {}))

    def _handler(self, template: str, by_verb: dict[str, Operation]) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            token = request.headers.get("Authorization", "")
            call = self._exchange.arrive("max", token, f"{request.method} {template or request.path[4:]}")
            call.chat = self._chat_named_in(request)
            if self._exchange.cut_off(request, call):
                return web.Response()
            try:
                asked = await _read(request, call)
            except MaxError as refused:
                unreadable = refused
                return await self._exchange.answer(request, call, lambda: unreadable.reply())
            operation = by_verb.get(request.method)
            await self._operations.wait(token, operation, asked)
            missing = named("method_not_allowed" if by_verb else "not_found")
            return await self._exchange.answer(
                request,
                call,
                lambda: self._act(token, operation or missing, asked, call, f"{request.method} {template}"),
            )

        return handle

    def _chat_named_in(self, request: web.Request) -> str | None:
        user_id = request.query.get("user_id", "")
        dialog = self._world.dialog(int(user_id)) if user_id.isascii() and user_id.isdigit() else None
        if dialog is not None:
            return str(dialog.id)
        place = place_of(request.query.get("message_id", ""))
        return request.query.get("chat_id") or request.match_info.get("id") or (str(place[0]) if place else None)

    def _act(
        self, token: str, operation: Operation | MaxError, asked: OperationCall, call: ProviderCall, name: str
    ) -> Reply:
        try:
            bot = self._operations.admit(token)
            if isinstance(operation, MaxError):
                raise operation
            if self._is_strict:
                refuse_unknown(name, asked)
            return _answer(operation(bot, asked, call))
        except MaxRateLimited as limited:
            return reply.rate_limited(limited.reply())
        except MaxError as refused:
            return refused.reply()


def _answer(result: dict[str, object]) -> Reply:
    """MAX also refuses with status 200 and ``success: false``."""
    if result.get("success") is False:
        return reply.refused(200, result, str(result.get("message")))
    return reply.accepted(result)


async def _read(request: web.Request, call: ProviderCall) -> OperationCall:
    try:
        body = await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise payload("Request body is too large") from None
    call.body_sha256 = hashlib.sha256(body or request.query_string.encode()).hexdigest()
    call.text = _text(body)
    return OperationCall(request.match_info, request.query, body, f"{request.scheme}://{request.host}")


def _text(body: bytes) -> str | None:
    try:
        return msgspec.json.decode(body, type=_OnlyText).text if body else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
