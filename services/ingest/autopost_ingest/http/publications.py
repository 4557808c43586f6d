"""``/v1/publications``: draft, preview, approve and schedule content for one channel at one time.

A change names the version that its caller has seen (If-Match), and is answered after its commit.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

from aiohttp import web
from autopost_contracts.ids import PublicationId
from autopost_contracts.subjects import Topology
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry import tracing as telemetry
from msgspec import UNSET
from msgspec.structs import replace

from autopost_ingest.publications import answers
from autopost_ingest.publications.access import Caller, PublicationCallers
from autopost_ingest.publications.calendar import calendar
from autopost_ingest.publications.gateway import Prepared, PublicationGateway
from autopost_ingest.publications.prepare import CreativeCompiler
from autopost_ingest.publications.requests import (
    MOST_LISTED,
    ApproveRequest,
    EmptyRequest,
    Filter,
    PublicationRequest,
    ReasonRequest,
    ResolveRequest,
    ScheduleRequest,
    check_parameters,
    publication_id,
    read_filter,
    reason_of,
)
from autopost_ingest.publications.times import moment_of

changes = metrics.counter("autopost_publication_changes_total", "Changes of publications by callers, by verdict.")

CALENDAR_PAST = timedelta(days=31)
CALENDAR_PAGES = 10
LATE_AFTER = timedelta(hours=24)


class Wakes(Protocol):
    def wake(self, subject: str) -> None: ...


class PublicationApi:
    def __init__(
        self,
        callers: PublicationCallers,
        gateway: PublicationGateway,
        compiler: CreativeCompiler,
        wakes: Wakes,
        topology: Topology,
    ) -> None:
        self._callers = callers
        self._gateway = gateway
        self._compiler = compiler
        self._wakes = wakes
        self._topology = topology

    def add_to(self, app: web.Application) -> None:
        app.router.add_post("/v1/publications", self.draft)
        app.router.add_get("/v1/publications", self.list_)
        app.router.add_get("/v1/publications.ics", self.calendar)
        app.router.add_get("/v1/publications/{publication_id}", self.read)
        app.router.add_put("/v1/publications/{publication_id}", self.edit)
        app.router.add_post("/v1/publications/{publication_id}/preview", self.preview)
        app.router.add_post("/v1/publications/{publication_id}/approve", self.approve)
        app.router.add_post("/v1/publications/{publication_id}/schedule", self.schedule)
        app.router.add_post("/v1/publications/{publication_id}/unschedule", self.unschedule)
        app.router.add_post("/v1/publications/{publication_id}/cancel", self.cancel)
        app.router.add_post("/v1/publications/{publication_id}/retry", self.retry)
        app.router.add_post("/v1/publications/{publication_id}/resolve", self.resolve)

    async def draft(self, request: web.Request) -> web.Response:
        async with self._callers.admitted(request, "draft") as caller:
            check_parameters(request.query)
            body = await self._callers.body_of(request, caller, PublicationRequest)
            if body.late_after is UNSET:
                body = replace(body, late_after=LATE_AFTER)
            given = body.fields() | {"trace_id": telemetry.current_trace_id()}
            answer = await self._gateway.draft_publication(caller.workspace, given, caller.by)
            return self._settle(answer, status=201)

    async def list_(self, request: web.Request) -> web.Response:
        async with self._callers.admitted(request) as caller:
            wanted = read_filter(request)
            found = await self._page(caller, wanted)
            after = found[-1]["publication_id"] if len(found) == wanted.limit else None
            return answers.respond(200, {"publications": [answers.shown(one) for one in found], "next": after})

    async def calendar(self, request: web.Request) -> web.Response:
        async with self._callers.admitted(request) as caller:
            wanted = read_filter(request)
            begin = wanted.begin or datetime.now(UTC) - CALENDAR_PAST
            found = await self._pages(caller, replace(wanted, begin=begin, limit=MOST_LISTED))
            return web.Response(body=calendar(found), content_type="text/calendar", charset="utf-8")

    async def read(self, request: web.Request) -> web.Response:
        async with self._callers.admitted(request) as caller:
            check_parameters(request.query)
            prepared = await self._prepared(caller, _publication(request))
            return answers.respond(200, answers.shown(prepared.publication.document))

    async def edit(self, request: web.Request) -> web.Response:
        async with self._callers.admitted(request, "draft") as caller:
            publication, version = _target(request)
            body = await self._callers.body_of(request, caller, PublicationRequest)
            return self._settle(
                await self._gateway.edit_publication(caller.workspace, publication, version, body.fields(), caller.by)
            )

    async def preview(self, request: web.Request) -> web.Response:
        async with self._callers.admitted(request) as caller:
            check_parameters(request.query)
            await self._callers.body_of(request, caller, EmptyRequest)
            prepared = await self._prepared(caller, _publication(request))
            compiled = await self._compiler.compile(caller.workspace, prepared)
            return answers.respond(200, answers.preview(prepared.publication.document, compiled))

    async def approve(self, request: web.Request) -> web.Response:
        """What is approved is the plan as it is compiled now."""
        async with self._callers.admitted(request, "approve") as caller:
            publication, version = _target(request)
            body = await self._callers.body_of(request, caller, ApproveRequest)
            prepared = await self._prepared(caller, publication)
            if prepared.publication.version != version:
                raise answers.stale(prepared.publication.version)
            compiled = await self._compiler.compile(caller.workspace, prepared)
            if compiled.plan_hash is None:
                raise answers.uncompilable(compiled)
            if body.plan_hash not in (None, compiled.plan_hash):
                raise answers.refusal({"verdict": "plan_changed", "publication": prepared.publication.document})
            plan = compiled.approval
            return self._settle(
                await self._gateway.approve_publication(caller.workspace, publication, version, plan, caller.by)
            )

    async def schedule(self, request: web.Request) -> web.Response:
        async with self._callers.admitted(request, "schedule") as caller:
            publication, version = _target(request)
            body = await self._callers.body_of(request, caller, ScheduleRequest)
            at = moment_of(body.at, body.local, body.timezone)
            answer = await self._gateway.schedule_publication(
                caller.workspace, publication, version, at, body.timezone, caller.by
            )
            response = self._settle(answer, time_field="at" if body.local is None else "local")
            self._wakes.wake(self._topology.wakeup_publish(caller.workspace))
            return response

    async def unschedule(self, request: web.Request) -> web.Response:
        async with self._callers.admitted(request, "schedule") as caller:
            publication, version = _target(request)
            await self._callers.body_of(request, caller, EmptyRequest)
            return self._settle(
                await self._gateway.unschedule_publication(caller.workspace, publication, version, caller.by)
            )

    async def cancel(self, request: web.Request) -> web.Response:
        """``If-Match: *`` cancels it whatever version it has."""
        async with self._callers.admitted(request, "schedule") as caller:
            check_parameters(request.query)
            publication, version = _publication(request), answers.version_wanted(request, any_version=True)
            body = await self._callers.body_of(request, caller, ReasonRequest)
            signed = (caller.by, reason_of(body))
            return self._settle(await self._gateway.cancel_publication(caller.workspace, publication, version, *signed))

    async def retry(self, request: web.Request) -> web.Response:
        async with self._callers.admitted(request, "schedule") as caller:
            publication, version = _target(request)
            body = await self._callers.body_of(request, caller, ReasonRequest)
            signed = (caller.by, reason_of(body))
            answer = await self._gateway.retry_publication(caller.workspace, publication, version, *signed)
            return self._sent_again(caller, answer)

    async def resolve(self, request: web.Request) -> web.Response:
        async with self._callers.admitted(request, "schedule") as caller:
            publication, version = _target(request)
            body = await self._callers.body_of(request, caller, ResolveRequest)
            answer = await self._gateway.resolve_publication(
                *(caller.workspace, publication, version, body.decision, caller.by, reason_of(body)),
                body.provider_message_id,
            )
            return self._sent_again(caller, answer)

    def _sent_again(self, caller: Caller, answer: dict[str, Any]) -> web.Response:
        response = self._settle(answer)
        self._wakes.wake(self._topology.wakeup_dispatch(caller.workspace))
        return response

    def _settle(self, answer: dict[str, Any], *, status: int = 200, time_field: str = "at") -> web.Response:
        changes.add(1, {"verdict": answer["verdict"]})
        return answers.respond(status, answers.settle(answer, time_field=time_field))

    async def _prepared(self, caller: Caller, publication: PublicationId) -> Prepared:
        prepared = await self._gateway.read_publication(caller.workspace, publication)
        if prepared is None:
            raise answers.unknown()
        return prepared

    async def _page(self, caller: Caller, wanted: Filter) -> list[dict[str, Any]]:
        return await self._gateway.list_publications(
            *(caller.workspace, wanted.begin, wanted.end, wanted.statuses, wanted.channel, wanted.after, wanted.limit)
        )

    async def _pages(self, caller: Caller, wanted: Filter) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for _ in range(CALENDAR_PAGES):
            page = await self._page(caller, wanted)
            found += page
            if len(page) < wanted.limit:
                break
            wanted = replace(wanted, after=PublicationId(UUID(page[-1]["publication_id"])))
        return found


def _publication(request: web.Request) -> PublicationId:
    publication = publication_id(request)
    if publication is None:
        raise answers.unknown()
    return publication


def _target(request: web.Request) -> tuple[PublicationId, int]:
    """The publication and the version that the caller has seen."""
    check_parameters(request.query)
    publication = _publication(request)
    version = answers.version_wanted(request)
    assert version is not None  # noqa: S101  for the type checker
    return publication, version
