"""Receive the updates of MAX: into the inbox, a wakeup for the bot, and 200.

MAX unsubscribes a webhook that does not answer 200 for hours. Anything else is therefore said only when nothing could
be stored: a wrong secret, a disabled workspace, a body too large or no JSON, too many at once, a database away.
"""

from datetime import timedelta

from aiohttp import web
from autopost_contracts.subjects import Topology
from autopost_runtime import metrics, telemetry
from autopost_runtime.jetstream import Bus
from autopost_runtime.web import Problem

from autopost_ingest.admit import Admission, inactive, too_fast, unauthorized
from autopost_ingest.bot_update import PROVIDER, BotUpdate, Unreadable, read_update
from autopost_ingest.gateway import Endpoint, Gateway, Stored

PATH = "/v1/bot/max"
SECRET_HEADER = "X-Max-Bot-Api-Secret"  # noqa: S105  the name of a header

updates = metrics.counter("autopost_bot_updates_total", "Updates of the bot's platform, by verdict.")


class BotWebhook:
    def __init__(self, admission: Admission, gateway: Gateway, bus: Bus, topology: Topology) -> None:
        self._admission = admission
        self._gateway = gateway
        self._bus = bus
        self._topology = topology

    def add_to(self, app: web.Application) -> None:
        app.router.add_post(PATH, self.receive)

    async def receive(self, request: web.Request) -> web.Response:
        endpoint = await self._endpoint_of(request)
        async with self._admission.accounted(request, endpoint):
            update = await self._update_of(request, endpoint)
            stored = await self._gateway.store_bot_update(endpoint, _row(update))
        return self._answer(endpoint, update, stored)

    async def _endpoint_of(self, request: web.Request) -> Endpoint:
        endpoint = await self._admission.find("bot_webhook", request.headers.get(SECRET_HEADER))
        if endpoint is None:
            raise _unknown()
        if endpoint.workspace_status == "disabled":
            raise inactive("disabled")
        return endpoint

    async def _update_of(self, request: web.Request, endpoint: Endpoint) -> BotUpdate:
        body = await self._admission.read(request, endpoint)
        await self._admission.pass_bucket(endpoint)
        try:
            return read_update(body)
        except Unreadable as exc:
            raise Problem(400, "Bad Request", str(exc)) from None

    def _answer(self, endpoint: Endpoint, update: BotUpdate, stored: Stored) -> web.Response:
        updates.add(1, {"verdict": stored.verdict})
        match stored.verdict:
            case "stored":
                if update.answer:
                    self._bus.wake(self._topology.wakeup_bot(endpoint.workspace_id))
                return web.json_response({"status": "stored"})
            case "duplicate":
                return web.json_response({"status": "duplicate"})
            case "rate_limited":
                raise too_fast(timedelta(milliseconds=stored.retry_after_ms))
            case "workspace_disabled":
                raise inactive("disabled")
            case "endpoint_disabled":  # it is still remembered here; the database decides
                raise _unknown()


def _unknown() -> Problem:
    return unauthorized(f"no enabled endpoint has the secret in {SECRET_HEADER}")


def _row(update: BotUpdate) -> dict[str, object]:
    return {
        "provider": PROVIDER,
        "chat_id": update.chat_id,
        "key": update.key,
        "kind": update.kind,
        "answer": update.answer,
        "body": update.body,
        "trace_id": telemetry.current_trace_id(),
        "traceparent": telemetry.current_traceparent(),
    }
