"""Begin a publication: compile what was approved and make its delivery. It never sends.

due → begin → the queue. A command, the sweep and a scan without NATS all come here; the database lets one of them in.
"""

from typing import Protocol

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry import tracing as telemetry
from autopost_runtime.telemetry.logs import get_logger

from autopost_ingest.publications.gateway import BeginVerdict, Due, PublicationGateway
from autopost_ingest.publications.prepare import CreativeCompiler

begun_total = metrics.counter("autopost_publications_begun_total", "Publications that were to begin, by verdict.")


class WakesDispatchers(Protocol):
    def wake_dispatchers(self, workspace: WorkspaceId) -> None: ...


class PublicationStarter:
    def __init__(self, gateway: PublicationGateway, compiler: CreativeCompiler, wakes: WakesDispatchers) -> None:
        self._gateway = gateway
        self._compiler = compiler
        self._wakes = wakes

    async def begin(self, due: Due) -> BeginVerdict:
        with telemetry.tracer().start_as_current_span(
            "begin_publication", context=telemetry.context_from(due.traceparent)
        ) as span:
            span.set_attribute("autopost.workspace_id", str(due.workspace_id))
            verdict = await self._begin(due)
            span.set_attribute("autopost.verdict", verdict)
        begun_total.add(1, {"verdict": verdict})
        get_logger().info(
            "publication.begun",
            workspace_id=str(due.workspace_id),
            publication_id=str(due.publication_id),
            version=due.version,
            verdict=verdict,
        )
        if verdict == "begun":
            self._wakes.wake_dispatchers(due.workspace_id)
        return verdict

    async def _begin(self, due: Due) -> BeginVerdict:
        prepared = await self._gateway.read_publication(due.workspace_id, due.publication_id)
        if prepared is None or prepared.publication.version != due.version:
            return "stale"
        compiled = await self._compiler.compile(due.workspace_id, prepared)
        return await self._gateway.begin_publication(due.workspace_id, due.publication_id, due.version, compiled.post)
