"""Admit a request: authenticate it, apply size, rate and concurrency limits, and read its post.

Only the secret or a valid signature identifies the tenant. Before that, refusals are only counted in metrics; after it,
every refusal writes an event and a count in a run, and every failure writes a run.
"""

from copy import copy
from datetime import timedelta
from functools import partial
from typing import Protocol

from aiohttp import web
from autopost_contracts.events import Action
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.payload import PostRequest
from autopost_runtime.http.body_reader import BodyReader
from autopost_runtime.http.endpoint_cache import EndpointCache, secret_of
from autopost_runtime.http.quotas import UNAUTHENTICATED, RequestQuota, tenant, unverified
from autopost_runtime.http.rate_limit import RateLimiter
from autopost_runtime.http.web import BODY, HttpProblem, body_too_large
from autopost_runtime.secrets.sealing import SealingKeys
from autopost_runtime.storage.payloads import Payloads
from msgspec.structs import replace

from autopost_ingest.admission.refusal_samples import SampleStore, sample_of
from autopost_ingest.admission.refusals import NoRefusals, Refusals, refuse
from autopost_ingest.admission.signatures import NAMED, InvalidSignatureHeaders, Signatures
from autopost_ingest.errors import AtCapacity, InvalidPost
from autopost_ingest.gateway import Endpoint, EndpointKind, Gateway
from autopost_ingest.request.bot_update import BotUpdate
from autopost_ingest.request.query import query_to_sign

RETRY_WHEN_PAUSED = "60"
BODY_MEMORY = 32 * 1024 * 1024
REQUESTS_PER_WORKSPACE = 500

WEBHOOK_ID = web.RequestKey("webhook_id", str)


class BodyParser(Protocol):
    """Parses request bodies; large ones in worker processes."""

    async def read_post(self, workspace: WorkspaceId, body: bytes) -> PostRequest: ...

    async def read_update(self, workspace: WorkspaceId, body: bytes) -> BotUpdate: ...


class Admission:
    def __init__(
        self,
        gateway: Gateway,
        body_timeout: timedelta,
        *,
        parser: BodyParser,
        body_idle: timedelta | None = None,
        body_memory: int = BODY_MEMORY,
        requests_per_workspace: int = REQUESTS_PER_WORKSPACE,
        keys: SealingKeys | None = None,
        payloads: Payloads | None = None,
    ) -> None:
        self.gateway = gateway
        self.parser = parser
        self.refusals = Refusals(gateway, SampleStore(payloads or Payloads(None, "ingest")))
        self.body_reader = BodyReader(within=body_timeout, idle=body_idle or body_timeout, memory=body_memory)
        self._requests = RequestQuota(requests_per_workspace)
        self._endpoints = EndpointCache(gateway.resolve_endpoint)
        self._rate_limiter = RateLimiter()
        self._signatures = Signatures(gateway, keys)

    def silent(self) -> "Admission":
        """For dry runs: the same checks, no refusal events and a rate limit of their own."""
        twin = copy(self)
        twin.refusals, twin._rate_limiter = NoRefusals(), RateLimiter()
        return twin

    async def endpoint_of(self, request: web.Request) -> Endpoint:
        endpoint: Endpoint | None
        if _is_signed(request):
            endpoint = await self._by_signature(request, request.match_info["endpoint_id"])
        else:
            endpoint = await self._endpoints.find("webhook_push", secret_of(request))
            if endpoint is None:
                raise unknown(request)
        if endpoint.workspace_status != "active":
            await self.report_inactive(endpoint, endpoint.workspace_status)
            raise inactive(endpoint.workspace_status)
        return endpoint

    async def body_of(self, request: web.Request, endpoint: Endpoint) -> PostRequest:
        """Must be called inside ``accounted``."""
        if not _is_signed(request):
            body = await self.body_reader.read(request, endpoint.max_payload_bytes, tenant(endpoint.workspace_id))
            await self.check_rate(endpoint)
            return await self.parser.read_post(endpoint.workspace_id, body)
        body = request[BODY]  # already read to check the signature
        if len(body) > endpoint.max_payload_bytes:
            raise body_too_large(endpoint.max_payload_bytes)
        self.body_reader.change_holder(request, tenant(endpoint.workspace_id))
        await self.check_rate(endpoint)
        post = await self.parser.read_post(endpoint.workspace_id, body)
        return post if post.source_ref else replace(post, source_ref=NAMED + request[WEBHOOK_ID])

    async def read(self, request: web.Request, endpoint: Endpoint) -> bytes:
        return await self.body_reader.read(request, endpoint.max_payload_bytes, tenant(endpoint.workspace_id))

    async def find(self, kind: EndpointKind, secret: str | None) -> Endpoint | None:
        return await self._endpoints.find(kind, secret)

    async def check_rate(self, endpoint: Endpoint) -> None:
        wait = self._rate_limiter.acquire(endpoint)
        if wait is not None:
            await self.refusals.refuse(endpoint, Action.INGRESS_RATE_LIMITED, "rate_limited", "rate_limited")
            raise rate_limited(endpoint, wait)

    async def report_inactive(self, endpoint: Endpoint, status: str) -> None:
        """A disabled workspace writes nothing, not even this event."""
        if status == "paused":
            await self.refusals.refuse(endpoint, Action.INGRESS_CONFIG_ERROR, "skipped", "workspace_paused")

    def accounted(self, request: web.Request, endpoint: Endpoint) -> "RequestAccounting":
        """Context manager: an error inside is recorded in the run of the request."""
        return RequestAccounting(self, self._requests, request, endpoint)

    async def account(self, request: web.Request, endpoint: Endpoint, exc: BaseException) -> None:
        """Record a failed request. Raises the problem for the response if it is not ``exc`` itself."""
        match exc:
            case InvalidPost():
                await self._reject(request, endpoint, "unprocessable", 422)
                raise refuse(
                    "unprocessable", HttpProblem(422, "Unprocessable Content", exc.reason, field=exc.field)
                ) from None
            case AtCapacity():
                await self.refusals.refuse(endpoint, Action.INGRESS_RATE_LIMITED, "rate_limited", "too_much_at_once")
                refuse("too_much_at_once", exc)
            case HttpProblem(status=status) if status in REJECTED:
                await self._reject(request, endpoint, REJECTED[status], status)
                refuse(REASONS.get(status, "payload_rejected"), exc)
            case HttpProblem():
                if exc.status >= 500:
                    self.refusals.fail(endpoint, exc.title.lower().replace(" ", "_"))
            case Exception():
                self.refusals.fail(endpoint, str(getattr(exc, "sqlstate", None) or type(exc).__name__))
            case _:
                return  # cancelled

    async def _reject(self, request: web.Request, endpoint: Endpoint, code: str, status: int) -> None:
        sample = partial(sample_of, request, endpoint, code, status, _secrets_in(request))
        await self.refusals.refuse(endpoint, Action.INGRESS_PAYLOAD_REJECTED, "payload_rejected", code, sample)

    async def _by_signature(self, request: web.Request, named: str) -> Endpoint:
        try:
            signature = self._signatures.read_headers(request.headers, query_to_sign(request))
        except InvalidSignatureHeaders as exc:
            raise unauthorized(str(exc)) from None
        keys = await self._signatures.keys_of(named)
        holder = unverified(keys[0].endpoint.endpoint_id) if keys else UNAUTHENTICATED
        try:
            body = await self.body_reader.read(request, self.body_reader.unverified_limit, holder)
        except HttpProblem as problem:
            raise refuse("unsigned_payload", problem) from None
        endpoint = self._signatures.signer(signature, body, keys)
        if endpoint is None:
            raise unknown(request)
        request[WEBHOOK_ID] = signature.message_id
        return endpoint


class RequestAccounting:
    """One running request of a known endpoint. A class, because a generator context manager costs 10 µs per post."""

    def __init__(self, admission: Admission, requests: RequestQuota, request: web.Request, endpoint: Endpoint) -> None:
        self._admission, self._requests, self._request, self._endpoint = admission, requests, request, endpoint

    async def __aenter__(self) -> None:
        try:
            self._requests.acquire(self._endpoint.workspace_id)
        except AtCapacity as exc:
            await self._admission.account(self._request, self._endpoint, exc)
            raise

    async def __aexit__(self, _: object, exc: BaseException | None, __: object) -> None:
        self._requests.release(self._endpoint.workspace_id)
        if exc is not None:
            await self._admission.account(self._request, self._endpoint, exc)


REJECTED = {
    400: "malformed",
    408: "too_slow",
    413: "content_too_large",
    415: "unsupported_media_type",
    422: "unprocessable",
}
"""Status to the ``code`` of an ``ingress_payload_rejected`` event."""

REASONS = {400: "malformed", 422: "unprocessable"}

SECRET_HEADERS = ("X-Webhook-Secret", "X-Max-Bot-Api-Secret", "webhook-signature")


def unknown(request: web.Request) -> HttpProblem:
    """The same response for a missing, wrong or disabled secret, also right after it was disabled."""
    if _is_signed(request):
        return unauthorized("signature does not match any secret of an enabled endpoint with this id")
    return unauthorized("unknown or missing secret; send it as Authorization: Bearer or X-Webhook-Secret")


def _is_signed(request: web.Request) -> bool:
    return "endpoint_id" in request.match_info


def unauthorized(detail: str) -> HttpProblem:
    return refuse("unauthorized", HttpProblem(401, "Unauthorized", detail, headers={"WWW-Authenticate": "Bearer"}))


def rate_limited(endpoint: Endpoint, wait: timedelta) -> HttpProblem:
    rate = f" ({endpoint.ingress_rps:g} requests/s)" if endpoint.ingress_rps else ""
    seconds = max(1, -(-wait // timedelta(seconds=1)))
    return refuse(
        "rate_limited",
        HttpProblem(
            429,
            "Too Many Requests",
            f"rate limit exceeded for this endpoint{rate}",
            headers={"Retry-After": str(seconds)},
        ),
    )


def inactive(status: str) -> HttpProblem:
    if status == "disabled":
        return refuse("workspace_disabled", HttpProblem(403, "Forbidden", "workspace is disabled"))
    return refuse(
        "workspace_paused",
        HttpProblem(
            503,
            "Service Unavailable",
            "workspace is paused; nothing was stored, retry later",
            headers={"Retry-After": RETRY_WHEN_PAUSED},
        ),
    )


def _secrets_in(request: web.Request) -> tuple[str, ...]:
    """Every secret in the request. Samples mask it, because some senders repeat it in the body."""
    named = (secret_of(request), *(request.headers.get(name) for name in SECRET_HEADERS))
    return tuple({secret for secret in named if secret})
