"""``/bot<token>/<method>``: converts an HTTP request into a method call, and its result into a response."""

import re
from typing import Any

from aiohttp import web

from autopost_simulator import reply
from autopost_simulator.exchange import CallHandler, ProviderCall
from autopost_simulator.reply import Reply
from autopost_simulator.telegram.methods import Methods
from autopost_simulator.telegram.refusal import Described, TelegramError, TelegramRateLimited, named
from autopost_simulator.telegram.request.params import Params, read_params
from autopost_simulator.telegram.sending.album import first_caption
from autopost_simulator.telegram.strict.check import refuse_unknown
from autopost_simulator.world import Bot, World

_TOKEN = re.compile(r"[0-9]{1,18}:[A-Za-z0-9_-]+")


class TelegramEndpoint:
    def __init__(self, world: World, methods: Methods, exchange: CallHandler, *, is_strict: bool) -> None:
        self._is_strict = is_strict
        self._world = world
        self._methods = methods
        self._exchange = exchange

    def add_to(self, app: web.Application) -> None:
        app.router.add_route("*", "/bot{token:[^/]*}/{method}", self.handle)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        token = request.match_info["token"]
        call = self._exchange.arrive("telegram", token, self._methods.canonical(request.match_info["method"]))
        if self._exchange.cut_off(request, call):
            return web.Response()
        try:
            params = await self._read(request, call)
        except TelegramError as refused:
            unreadable = refused
            return await self._exchange.answer(request, call, lambda: unreadable.reply())
        try:
            await self._wait(token, params, call)
        except TelegramError as ended:
            conflict = ended
            return await self._exchange.answer(request, call, lambda: conflict.reply())
        return await self._exchange.answer(request, call, lambda: self._act(token, params, call))

    def call_from_webhook(self, bot: Bot, given: dict[str, Any]) -> None:
        """A bot may answer its webhook with a method to call; nobody sees the result."""
        params = Params({name: value for name, value in given.items() if name != "method"}, "")
        call = self._exchange.arrive("telegram", bot.token, self._methods.canonical(str(given["method"])))
        call.text = params.text("text") or params.text("caption") or None
        call.chat = self._named_chat(params.text("chat_id").strip()) or None
        self._exchange.obey(call, lambda: self._act(bot.token, params, call))

    async def _wait(self, token: str, params: Params, call: ProviderCall) -> None:
        bot = self._world.bot("telegram", token) if _TOKEN.fullmatch(token) else None
        if bot is not None:
            await self._methods.wait(call.method, bot, params)

    async def _read(self, request: web.Request, call: ProviderCall) -> Params:
        try:
            params = await read_params(request)
        except web.HTTPRequestEntityTooLarge:
            raise named("entity_too_large") from None
        call.body_sha256 = params.digest
        call.uploads = len(params.uploads)
        call.text = params.text("text") or params.text("caption") or first_caption(params) or None
        call.chat = self._named_chat(params.text("chat_id").strip()) or None
        return params

    def _named_chat(self, given: str) -> str:
        """The numeric id, so that faults and the log use one name only."""
        chat = self._world.chat_by_username("telegram", given) if given.startswith("@") else None
        return str(chat.id) if chat else given

    def _act(self, token: str, params: Params, call: ProviderCall) -> Reply:
        try:
            if not _TOKEN.fullmatch(token):
                raise named("not_found")
            bot = self._world.bot("telegram", token)
            if bot is None:
                raise named("unauthorized")
            if self._is_strict:
                refuse_unknown(call.method, params)
            return _accepted(self._methods.run(call.method, bot, params, call))
        except TelegramRateLimited as limited:
            return reply.rate_limited(limited.reply(limited.retry_after))
        except TelegramError as refused:
            return refused.reply()


def _accepted(result: object) -> Reply:
    if isinstance(result, Described):
        return reply.accepted({"ok": True, "result": result.result, "description": result.description})
    return reply.accepted({"ok": True, "result": result})
