"""Webhook for updates of MAX: store the update in the inbox, wake the bot, answer 200.

MAX unsubscribes a webhook that does not answer 200 for hours. So other statuses are used only when nothing was stored:
wrong secret, disabled workspace, body too large or not JSON, rate limit, capacity, database not available.
"""

from datetime import timedelta

from aiohttp import web
from autopost_contracts.ids import chat_token
from autopost_contracts.subjects import Topology
from autopost_runtime.http.web import HttpProblem
from autopost_runtime.nats.bus import Bus
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry import tracing as telemetry

from autopost_ingest.admission.admit import Admission, inactive, rate_limited, unauthorized
from autopost_ingest.errors import InvalidPost
from autopost_ingest.gateway import Endpoint, Gateway, StoredUpdate
from autopost_ingest.request.bot_update import PROVIDER, BotUpdate, InvalidUpdate

PATH = "/v1/bot/max"
SECRET_HEADER = "X-Max-Bot-Api-Secret"  # noqa: S105  the name of a header

updates = metrics.counter("autopost_bot_updates_total", "Bot updates by verdict.")


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
        return self._answer(endpoint, stored)

    async def _endpoint_of(self, request: web.Request) -> Endpoint:
        endpoint = await self._admission.find("bot_webhook", request.headers.get(SECRET_HEADER))
        if endpoint is None:
            raise _unknown()
        if endpoint.workspace_status == "disabled":
            raise inactive("disabled")
        return endpoint

    async def _update_of(self, request: web.Request, endpoint: Endpoint) -> BotUpdate:
        """Without the rate limit of this process: it knows no chats, so one customer would use up the rate of all."""
        body = await self._admission.read(request, endpoint)
        try:
            return await self._admission.parser.read_update(endpoint.workspace_id, body)
        except (InvalidUpdate, InvalidPost) as exc:
            raise HttpProblem(400, "Bad Request", str(exc)) from None

    def _answer(self, endpoint: Endpoint, stored: StoredUpdate) -> web.Response:
        updates.add(1, {"verdict": stored.verdict})
        match stored.verdict:
            case "stored":
                if stored.answer:
                    self._bus.wake(self._topology.wakeup_bot(endpoint.workspace_id))
                if stored.seq is not None:
                    token = chat_token(endpoint.workspace_id, stored.chat_id)
                    self._bus.wake(self._topology.chat(endpoint.workspace_id, token), stored.seq)
                return web.json_response({"status": "stored"})
            case "duplicate":
                return web.json_response({"status": "duplicate"})
            case "rate_limited":
                raise rate_limited(endpoint, timedelta(milliseconds=stored.retry_after_ms))
            case "workspace_disabled":
                raise inactive("disabled")
            case "endpoint_disabled":  # still in the endpoint cache; the database decides
                raise _unknown()


def _unknown() -> HttpProblem:
    return unauthorized(f"unknown or missing secret; send it as {SECRET_HEADER}")


def _row(update: BotUpdate) -> dict[str, object]:
    return {
        "provider": PROVIDER,
        "chat_id": update.chat_id,
        "key": update.key,
        "kind": update.kind,
        "answer": update.answer,
        "user_id": update.user_id,
        "is_bot": update.is_bot,
        "chat_type": update.chat_type,
        "provider_ts": update.provider_ts,
        "provider_seq": update.provider_seq,
        "body": update.body,
        "trace_id": telemetry.current_trace_id(),
        "traceparent": telemetry.current_traceparent(),
    }
