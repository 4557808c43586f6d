"""The control API ``/_sim/…``: set up tokens and chats, add faults, read the log."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

import msgspec
from aiohttp import web

from autopost_simulator import log_query
from autopost_simulator.catalogue import names
from autopost_simulator.faults import Faults, FaultSpec
from autopost_simulator.journal import Journal
from autopost_simulator.log_stream import write_log
from autopost_simulator.max.shapes import mid
from autopost_simulator.registration import ChatSpec, TokenSpec, describe, describe_bot, register_chat, register_token
from autopost_simulator.world import Chat, ChatPost, World

T = TypeVar("T")
Handle = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Parts(Protocol):
    @property
    def world(self) -> World: ...
    @property
    def faults(self) -> Faults: ...
    @property
    def journal(self) -> Journal: ...
    def reset(self) -> int: ...


class Control:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def add_to(self, app: web.Application) -> None:
        routes: tuple[tuple[str, str, Handle], ...] = (
            ("GET", "/_sim/health", self.health),
            ("POST", "/_sim/tokens", self.post_tokens),
            ("GET", "/_sim/tokens", self.get_tokens),
            ("POST", "/_sim/chats", self.post_chats),
            ("GET", "/_sim/chats", self.get_chats),
            ("GET", "/_sim/chats/{platform}/{id}/messages", self.get_messages),
            ("POST", "/_sim/faults", self.post_faults),
            ("GET", "/_sim/faults", self.get_faults),
            ("DELETE", "/_sim/faults", self.delete_faults),
            ("GET", "/_sim/catalogue", self.get_catalogue),
            ("GET", "/_sim/log", self.get_log),
            ("POST", "/_sim/reset", self.reset),
        )
        for verb, path, handle in routes:
            app.router.add_route(verb, path, _explaining(handle))

    async def health(self, request: web.Request) -> web.StreamResponse:
        return _json({"status": "ok", "seq": self._parts.journal.last})

    async def post_tokens(self, request: web.Request) -> web.StreamResponse:
        specs = _one_or_many(await request.read(), TokenSpec)
        return _json({"tokens": [register_token(self._parts.world, spec) for spec in specs]})

    async def get_tokens(self, request: web.Request) -> web.StreamResponse:
        return _json({"tokens": [describe_bot(bot) for bot in self._parts.world.bots.values()]})

    async def post_chats(self, request: web.Request) -> web.StreamResponse:
        specs = _one_or_many(await request.read(), ChatSpec)
        return _json({"chats": [register_chat(self._parts.world, spec) for spec in specs]})

    async def get_chats(self, request: web.Request) -> web.StreamResponse:
        """``?posts=N`` adds the newest N messages of every chat, oldest first."""
        count = log_query.whole_number(request.query, "posts") or 0
        chats = self._parts.world.chats.values()
        return _json({"chats": [describe(chat) | ({"posts": _posts(chat, count)} if count else {}) for chat in chats]})

    async def get_messages(self, request: web.Request) -> web.StreamResponse:
        platform, chat_id = request.match_info["platform"], request.match_info["id"]
        for chat in self._parts.world.chats.values():
            if chat.platform == platform and chat_id in (str(chat.id), f"@{chat.username}"):
                return _json({"messages": _posts(chat, len(chat.posts))})
        return _json({"error": f"chat {chat_id} not found in {platform}"}, status=404)

    async def post_faults(self, request: web.Request) -> web.StreamResponse:
        specs = _one_or_many(await request.read(), FaultSpec)
        return _json({"faults": [self._parts.faults.add(spec).describe() for spec in specs]})

    async def get_faults(self, request: web.Request) -> web.StreamResponse:
        return _json({"faults": self._parts.faults.describe()})

    async def delete_faults(self, request: web.Request) -> web.StreamResponse:
        """``?name=`` removes one fault; without it all are removed."""
        log_query.refuse_unknown(request.query, "name")
        return _json({"removed": self._parts.faults.remove(request.query.get("name"))})

    async def get_catalogue(self, request: web.Request) -> web.StreamResponse:
        return _json({"names": names()})

    async def get_log(self, request: web.Request) -> web.StreamResponse:
        query = log_query.LogQuery.of(request.query)
        return await write_log(request, self._parts.journal, query)

    async def reset(self, request: web.Request) -> web.StreamResponse:
        return _json({"seq": self._parts.reset()})


def _explaining(handle: Handle) -> Handle:
    async def explained(request: web.Request) -> web.StreamResponse:
        try:
            return await handle(request)
        except (msgspec.DecodeError, log_query.QueryError) as error:
            return _json({"error": str(error)}, status=400)

    return explained


def _one_or_many(body: bytes, kind: type[T]) -> list[T]:
    """Validate all before the first is applied."""
    if body.lstrip().startswith(b"["):
        return msgspec.json.decode(body, type=list[kind])  # type: ignore[valid-type]
    return [msgspec.json.decode(body, type=kind)]


def _json(body: Any, status: int = 200) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")


def _posts(chat: Chat, count: int) -> list[dict[str, Any]]:
    newest = list(chat.posts.values())[-count:] if count else []
    return [_post(chat, post) for post in newest]


def _post(chat: Chat, post: ChatPost) -> dict[str, Any]:
    return {
        "id": post.id if chat.platform == "telegram" else mid(chat.id, post.id),
        "at": post.at.isoformat(),
        "token": post.bot.fingerprint,
        "text": post.text,
        "markup": post.markup,
        "buttons": post.buttons,
        "extra": post.extra,
    }
