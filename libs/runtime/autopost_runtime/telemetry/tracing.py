"""Traces, set up once per process.

Spans are exported in batches through a redacting exporter, to OTLP and/or a JSON file. Before ``setup`` all functions
work and record nothing, so callers need no check.
"""

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager

from opentelemetry import trace
from opentelemetry.context import Context, attach, detach, get_value
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
from opentelemetry.trace import Link, Span, SpanContext, SpanKind
from opentelemetry.trace.propagation import _SPAN_KEY
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from autopost_runtime.config.load import ServiceConfig
from autopost_runtime.telemetry.spans import exporters

NAME = "autopost"
FLUSH_LIMIT = 1.5
"""A collector that does not respond must not delay the stop of a service."""

_propagator = TraceContextTextMapPropagator()
_no_tracer = trace.NoOpTracer()
_ids = RandomIdGenerator()


class _Providers:
    def __init__(self, resource: Resource, span_exporters: Sequence[SpanExporter]) -> None:
        self.exporting = bool(span_exporters)
        # Trace ids are always needed, recorded spans only for export; OTEL_TRACES_SAMPLER selects the exported ones.
        sampler = None if self.exporting else ParentBased(ALWAYS_OFF)
        self.traces = TracerProvider(sampler, resource, shutdown_on_exit=False)
        for exporter in span_exporters:
            self.traces.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=1000))
        self.tracer = self.traces.get_tracer(NAME)


_providers: _Providers | None = None


def setup(service: str, config: ServiceConfig) -> None:
    global _providers
    resource = Resource.create({"service.name": f"{NAME}-{service}", "service.namespace": NAME})
    _providers = _Providers(resource, exporters(service, config))


def shutdown() -> None:
    """Export the remaining spans, for at most ``FLUSH_LIMIT`` seconds."""
    global _providers
    if _providers is None:
        return
    closing, _providers = _providers, None
    flush = threading.Thread(target=closing.traces.shutdown, daemon=True)
    flush.start()
    flush.join(FLUSH_LIMIT)


def tracer() -> trace.Tracer:
    return _providers.tracer if _providers else _no_tracer


def serving(method: str, route: str, traceparent: str | None) -> AbstractContextManager[Span]:
    """The current span of a request; it continues the caller's trace.

    A span that will not be exported only gets ids: a span of the SDK costs as much as the rest of a small request.
    """
    if traceparent is None and _providers is not None and not _providers.exporting:
        return _IdsOnly()
    return tracer().start_as_current_span(
        f"{method} {route}",
        context=context_from(traceparent),
        kind=SpanKind.SERVER,
        attributes={"http.request.method": method, "http.route": route},
    )


class _IdsOnly:
    """A span with ids that starts a new trace and records nothing."""

    def __enter__(self) -> Span:
        span = _Unrecorded(_ids.generate_trace_id(), _ids.generate_span_id())
        self._token = attach(Context({_SPAN_KEY: span}))
        return span

    def __exit__(self, *_: object) -> None:
        detach(self._token)


class _Unrecorded(trace.NonRecordingSpan):
    """The ids are read several times, the span context rarely; so it is built on demand."""

    def __init__(self, trace_id: int, span_id: int) -> None:
        self._numbers = trace_id, span_id
        self.trace_id = f"{trace_id:032x}"
        self.traceparent = f"00-{self.trace_id}-{span_id:016x}-00"

    def get_span_context(self) -> SpanContext:
        return SpanContext(*self._numbers, is_remote=False)


def exporting() -> bool:
    """Whether spans are exported; if not, callers may skip expensive attributes."""
    return _providers is not None and _providers.exporting


def current_traceparent() -> str | None:
    here = trace.get_current_span().get_span_context()
    return f"00-{here.trace_id:032x}-{here.span_id:016x}-{here.trace_flags:02x}" if here.is_valid else None


def current_ids() -> tuple[str | None, str | None]:
    """The trace id and the traceparent."""
    span = get_value(_SPAN_KEY)
    if type(span) is _Unrecorded:
        return span.trace_id, span.traceparent
    traceparent = current_traceparent()
    return (traceparent[3:35], traceparent) if traceparent else (None, None)


def current_trace_id() -> str | None:
    return current_ids()[0]


def context_from(traceparent: str | None) -> Context:
    """Without a valid traceparent an empty context, which starts a new trace."""
    return _propagator.extract({"traceparent": traceparent} if traceparent else {}, Context())


def link_to(traceparent: str | None) -> Link | None:
    context = trace.get_current_span(context_from(traceparent)).get_span_context()
    return Link(context) if context.is_valid else None


def trace_id_of(traceparent: str | None) -> str | None:
    link = link_to(traceparent)
    return trace.format_trace_id(link.context.trace_id) if link else None
