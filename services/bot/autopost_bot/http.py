"""The HTTP application of the bot: the action API and the chat stream."""

from datetime import timedelta

from aiohttp import web
from autopost_runtime.http.body_reader import BodyReader
from autopost_runtime.http.web import MIDDLEWARES
from autopost_runtime.nats.bus import Bus

from autopost_bot.access.access import Access
from autopost_bot.access.cors import cors
from autopost_bot.actions.openapi import serve_document
from autopost_bot.actions.read import ChatReader
from autopost_bot.actions.write import ActionWriter
from autopost_bot.gateway import Gateway
from autopost_bot.stream.announce import ChatAnnouncer
from autopost_bot.stream.hub import Hub
from autopost_bot.stream.serve import ChatStream, StreamTimes

BODY_TIMEOUT = timedelta(seconds=10)
BODY_MEMORY = 32 * 1024 * 1024


def application(
    gateway: Gateway,
    bus: Bus,
    hub: Hub,
    *,
    stream_clients: int,
    cors_origins: tuple[str, ...] = (),
    times: StreamTimes | None = None,
) -> web.Application:
    access = Access(gateway)
    body_reader = BodyReader(within=BODY_TIMEOUT, idle=BODY_TIMEOUT, memory=BODY_MEMORY)
    answer_preflight, name_origin = cors(cors_origins)
    app = web.Application(middlewares=(*MIDDLEWARES, body_reader.middleware, answer_preflight))
    app.on_response_prepare.append(name_origin)
    ActionWriter(access, gateway, body_reader, ChatAnnouncer(hub, bus)).add_to(app)
    ChatReader(access, gateway).add_to(app)
    ChatStream(access, hub, stream_clients, times).add_to(app)
    app.router.add_get("/openapi.json", serve_document)
    return app
