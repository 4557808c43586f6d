"""Admit a request: whose it is, whether it fits and comes slowly enough, and whether it can be read at all.

The tenant comes from the secret alone, or from a signature that fits. Before it is known nothing is written, only
counted; after that every refusal leaves its event and its count in a run, and every failure a run.
"""

from copy import copy
from datetime import timedelta
from functools import partial

from aiohttp import web
from autopost_contracts.events import Action
from autopost_contracts.payload import PostRequest
from autopost_runtime.payloads import Payloads
from autopost_runtime.sealing import SealingKeys
from autopost_runtime.web import READ, Problem, too_big
from msgspec.structs import replace

from autopost_ingest.bodies import Bodies
from autopost_ingest.buckets import Buckets
from autopost_ingest.crowds import STRANGERS, Crowded, Places, tenant, unproven
from autopost_ingest.doors import Doors
from autopost_ingest.gateway import Endpoint, EndpointKind, Gateway
from autopost_ingest.normalize import Refused
from autopost_ingest.reading import read_post
from autopost_ingest.refusals import Refusals, Silence, refuse
from autopost_ingest.samples import Samples, sample_of
from autopost_ingest.signatures import NAMED, Signatures, Unsigned

RETRY_WHEN_PAUSED = "60"
BODY_MEMORY = 32 * 1024 * 1024
REQUESTS_PER_WORKSPACE = 500

WEBHOOK_ID = web.RequestKey("webhook_id", str)


class Admission:
    def __init__(
        self,
        gateway: Gateway,
        body_timeout: timedelta,
        *,
        body_idle: timedelta | None = None,
        body_memory: int = BODY_MEMORY,
        requests_per_workspace: int = REQUESTS_PER_WORKSPACE,
        keys: SealingKeys | None = None,
        payloads: Payloads | None = None,
    ) -> None:
        self.refusals = Refusals(gateway, Samples(payloads or Payloads(None, "ingest")))
        self.bodies = Bodies(within=body_timeout, idle=body_idle or body_timeout, memory=body_memory)
        self._places = Places(requests_per_workspace)
        self._doors = Doors(gateway)
        self._buckets = Buckets()
        self._signatures = Signatures(gateway, keys)

    def silent(self) -> "Admission":
        """The same guard for dry runs: a refusal leaves nothing, and their rate is counted apart."""
        twin = copy(self)
        twin.refusals, twin._buckets = Silence(), Buckets()
        return twin

    async def endpoint_of(self, request: web.Request) -> Endpoint:
        endpoint: Endpoint | None
        if _is_signed(request):
            endpoint = await self._by_signature(request, request.match_info["endpoint_id"])
        else:
            endpoint = await self._doors.find("webhook_push", _secret(request))
            if endpoint is None:
                raise unknown(request)
        if endpoint.workspace_status != "active":
            await self.tell_inactive(endpoint, endpoint.workspace_status)
            raise inactive(endpoint.workspace_status)
        return endpoint

    async def body_of(self, request: web.Request, endpoint: Endpoint) -> PostRequest:
        """To be called inside ``accounted``."""
        if not _is_signed(request):
            body = await self.bodies.read(request, endpoint.max_payload_bytes, tenant(endpoint.workspace_id))
            await self.pass_bucket(endpoint)
            return read_post(body)
        body = request[READ]  # it was read for its signature
        if len(body) > endpoint.max_payload_bytes:
            raise too_big(endpoint.max_payload_bytes)
        self.bodies.hand_over(request, tenant(endpoint.workspace_id))
        await self.pass_bucket(endpoint)
        post = read_post(body)
        return post if post.source_ref else replace(post, source_ref=NAMED + request[WEBHOOK_ID])

    async def read(self, request: web.Request, endpoint: Endpoint) -> bytes:
        return await self.bodies.read(request, endpoint.max_payload_bytes, tenant(endpoint.workspace_id))

    async def find(self, kind: EndpointKind, secret: str | None) -> Endpoint | None:
        return await self._doors.find(kind, secret)

    async def pass_bucket(self, endpoint: Endpoint) -> None:
        wait = self._buckets.take(endpoint)
        if wait is not None:
            await self.refusals.refuse(endpoint, Action.INGRESS_RATE_LIMITED, "rate_limited", "rate_limited")
            raise too_fast(wait)

    async def tell_inactive(self, endpoint: Endpoint, status: str) -> None:
        """A disabled workspace keeps nothing, not even this."""
        if status == "paused":
            await self.refusals.refuse(endpoint, Action.INGRESS_CONFIG_ERROR, "skipped", "workspace_paused")

    def accounted(self, request: web.Request, endpoint: Endpoint) -> "Accounted":
        """However it ends inside, the run of the request says so."""
        return Accounted(self, self._places, request, endpoint)

    async def account(self, request: web.Request, endpoint: Endpoint, exc: BaseException) -> None:
        """Of a request that failed. What the sender is to read instead is raised."""
        match exc:
            case Refused():
                await self._reject(request, endpoint, "unprocessable", 422)
                raise refuse(
                    "unprocessable", Problem(422, "Unprocessable Content", exc.reason, field=exc.field)
                ) from None
            case Crowded():
                await self.refusals.refuse(endpoint, Action.INGRESS_RATE_LIMITED, "rate_limited", "too_much_at_once")
                refuse("too_much_at_once", exc)
            case Problem(status=status) if status in REJECTED:
                await self._reject(request, endpoint, REJECTED[status], status)
                refuse(REASONS.get(status, "payload_rejected"), exc)
            case Problem():
                if exc.status >= 500:
                    self.refusals.fail(endpoint, exc.title.lower().replace(" ", "_"))
            case Exception():
                self.refusals.fail(endpoint, str(getattr(exc, "sqlstate", None) or type(exc).__name__))
            case _:
                return  # cancelled

    async def _reject(self, request: web.Request, endpoint: Endpoint, code: str, status: int) -> None:
        sample = partial(sample_of, request, endpoint, code, status, _shown_secrets(request))
        await self.refusals.refuse(endpoint, Action.INGRESS_PAYLOAD_REJECTED, "payload_rejected", code, sample)

    async def _by_signature(self, request: web.Request, named: str) -> Endpoint:
        try:
            claim = self._signatures.claim(request.headers)
        except Unsigned as exc:
            raise unauthorized(str(exc)) from None
        keys = await self._signatures.keys_of(named)
        holder = unproven(keys[0].endpoint.endpoint_id) if keys else STRANGERS
        try:
            body = await self.bodies.read(request, self.bodies.limit_of_unproven, holder)
        except Problem as problem:
            raise refuse("unsigned_payload", problem) from None
        endpoint = self._signatures.signer(claim, body, keys)
        if endpoint is None:
            raise unknown(request)
        request[WEBHOOK_ID] = claim.id
        return endpoint


class Accounted:
    """A request of a known endpoint that is under way. Written out: a generator for it cost a post ten microseconds."""

    def __init__(self, admission: Admission, places: Places, request: web.Request, endpoint: Endpoint) -> None:
        self._admission, self._places, self._request, self._endpoint = admission, places, request, endpoint

    async def __aenter__(self) -> None:
        try:
            self._places.take(self._endpoint.workspace_id)
        except Crowded as crowded:
            await self._admission.account(self._request, self._endpoint, crowded)
            raise

    async def __aexit__(self, _: object, exc: BaseException | None, __: object) -> None:
        self._places.give_back(self._endpoint.workspace_id)
        if exc is not None:
            await self._admission.account(self._request, self._endpoint, exc)


REJECTED = {400: "malformed", 408: "too_slow", 413: "content_too_large", 415: "unsupported_media_type"}
"""What an ``ingress_payload_rejected`` calls it."""

REASONS = {400: "malformed"}

SECRET_HEADERS = ("X-Webhook-Secret", "X-Max-Bot-Api-Secret", "webhook-signature")


def unknown(request: web.Request) -> Problem:
    """One answer for no secret, a wrong one and a disabled one, also for one that was disabled a moment ago."""
    if _is_signed(request):
        return unauthorized("no enabled endpoint of this id has a secret that gives this signature")
    return unauthorized("no enabled endpoint has this secret; send it as Authorization: Bearer or X-Webhook-Secret")


def _is_signed(request: web.Request) -> bool:
    return "endpoint_id" in request.match_info


def unauthorized(detail: str) -> Problem:
    return refuse("unauthorized", Problem(401, "Unauthorized", detail, headers={"WWW-Authenticate": "Bearer"}))


def too_fast(wait: timedelta) -> Problem:
    seconds = max(1, -(-wait // timedelta(seconds=1)))
    return refuse(
        "rate_limited",
        Problem(
            429,
            "Too Many Requests",
            "this endpoint takes fewer requests a second",
            headers={"Retry-After": str(seconds)},
        ),
    )


def inactive(status: str) -> Problem:
    if status == "disabled":
        return refuse("workspace_disabled", Problem(403, "Forbidden", "the workspace is disabled"))
    return refuse(
        "workspace_paused",
        Problem(
            503,
            "Service Unavailable",
            "the workspace is paused; nothing was taken in",
            headers={"Retry-After": RETRY_WHEN_PAUSED},
        ),
    )


def _shown_secrets(request: web.Request) -> tuple[str, ...]:
    """Wherever a request may carry what opened the door: some senders repeat it in the body."""
    named = (_secret(request), *(request.headers.get(name) for name in SECRET_HEADERS))
    return tuple({secret for secret in named if secret})


def _secret(request: web.Request) -> str | None:
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip() or None
    return request.headers.get("X-Webhook-Secret") or None
