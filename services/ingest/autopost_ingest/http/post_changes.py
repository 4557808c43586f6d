"""``DELETE`` and ``PATCH /v1/posts/{id}``: cancel a post, give it another time, or replace it by another one.

A message id is a content that several requests may have posted, so changing by it needs ``all=1``.
"""

import msgspec
from aiohttp import web
from autopost_contracts.payload import PostRequest
from autopost_runtime.http.web import HttpProblem
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry import tracing as telemetry

from autopost_ingest.admission.admit import Admission
from autopost_ingest.gateway import Endpoint, Push, Verdict
from autopost_ingest.http.post_status import find
from autopost_ingest.http.receive import PostReceiver
from autopost_ingest.posts.enqueue import Enqueuer
from autopost_ingest.posts.post_gateway import Change, FoundPost, PostGateway, Replacement
from autopost_ingest.posts.schedule import is_late, late
from autopost_ingest.request.query import check_query

CHANGING = {"all": "1", "partial": "1", "force": "1"}
DETAILS = {
    "too_late": "it is being sent; a call that fails is not repeated",
    "partly_sent": "some parts of it are in the channel; partial=1 cancels the rest",
    "shared": "another request with the same content relies on it; force=1 cancels it all the same",
    "already": "it has ended: GET this path says how",
    "too_far": "a time is a year ahead at most",
    "perhaps_sent": "a call was never answered: the channel may show it; DELETE it and look",
    "same_content": "this is the post that would be replaced",
}

changes = metrics.counter("autopost_post_changes_total", "Cancelled and rescheduled posts by answer.")


class PostChangesHandler:
    def __init__(self, admission: Admission, gateway: PostGateway, receiver: PostReceiver, enqueuer: Enqueuer) -> None:
        self._admission = admission
        self._gateway = gateway
        self._receiver = receiver
        self._enqueuer = enqueuer

    def add_to(self, app: web.Application) -> None:
        app.router.add_delete("/v1/posts/{post_id}", self.cancel)
        app.router.add_patch("/v1/posts/{post_id}", self.change)

    async def cancel(self, request: web.Request) -> web.Response:
        endpoint = await self._admission.endpoint_of(request)
        await self._admission.check_rate(endpoint)
        post = await self._target(request, endpoint)
        change = await self._gateway.cancel_post(
            *(endpoint.workspace_id, post, _signature(endpoint, "cancelled by the sender")),
            partial="partial" in request.query,
            force="force" in request.query,
        )
        return _answer(change, "cancelled")

    async def change(self, request: web.Request) -> web.StreamResponse:
        """Only ``scheduled_for``: another time. Anything else is a whole post, which replaces this one."""
        endpoint = await self._admission.endpoint_of(request)
        async with self._admission.accounted(request, endpoint):
            post = await self._target(request, endpoint)
            body = await self._admission.body_of(request, endpoint)
            if body != PostRequest(scheduled_for=body.scheduled_for):
                return await self._replace(request, endpoint, post, body)
            if is_late(body):
                raise late(body)
            change = await self._gateway.reschedule_post(
                endpoint.workspace_id, post, body.scheduled_for, _signature(endpoint, "rescheduled by the sender")
            )
        if change.verdict == "rescheduled":
            self._enqueuer.wake_dispatchers(endpoint.workspace_id)
        return _answer(change, "rescheduled")

    async def _replace(
        self, request: web.Request, endpoint: Endpoint, post: FoundPost, body: PostRequest
    ) -> web.StreamResponse:
        """All or nothing."""
        replacements: list[Replacement] = []

        async def admit(push: Push) -> Verdict:
            signature = _signature(endpoint, "replaced by the sender")
            forced = "force" in request.query
            replacements.append(await self._gateway.replace_post(endpoint, post, push, signature, force=forced))
            return replacements[-1]

        taken = await self._receiver.take(endpoint, body, admit)
        last = replacements[-1]
        if last.cancel is not None:
            raise conflict(_obstacle(last.cancel), last.cancel)
        if last.verdict == "duplicate":
            raise conflict("same_content")
        changes.add(1, {"verdict": "replaced"})
        return await self._receiver.answer(request, endpoint, taken)

    async def _target(self, request: web.Request, endpoint: Endpoint) -> FoundPost:
        check_query(request.query, CHANGING)
        post = await find(self._gateway, endpoint.workspace_id, request)
        if post.run_id is None and "all" not in request.query:
            raise HttpProblem(
                *(
                    400,
                    "Bad Request",
                    "this is a message id: its content may belong to several requests; all=1 changes all",
                ),
                field="all",
            )
        return post


def _obstacle(change: Change) -> str:
    """The first reason for which a post cannot be replaced."""
    verdicts = {delivery["verdict"] for delivery in change.deliveries} | {change.verdict}
    return next(
        verdict for verdict in ("too_late", "partly_sent", "shared", "perhaps_sent", "already") if verdict in verdicts
    )


def _signature(endpoint: Endpoint, reason: str) -> dict[str, str]:
    return {"operator": f"endpoint {endpoint.endpoint_id}", "reason": reason}


def _answer(change: Change, done: str) -> web.Response:
    changes.add(1, {"verdict": change.verdict})
    if change.verdict != done:
        raise conflict(change.verdict, change)
    body = {"status": done, "deliveries": change.deliveries, "trace_id": telemetry.current_trace_id()}
    return web.Response(body=msgspec.json.encode(body), content_type="application/json")


def conflict(code: str, change: Change | None = None) -> HttpProblem:
    if code == "too_far":
        return HttpProblem(422, "Unprocessable Content", DETAILS[code], field="scheduled_for")
    deliveries = () if change is None else change.deliveries
    return HttpProblem(
        409, "Conflict", f"nothing was changed: {DETAILS[code]}", more={"code": code, "deliveries": deliveries}
    )
