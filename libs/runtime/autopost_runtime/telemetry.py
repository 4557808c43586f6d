"""Traces and metrics, set up once per process.

Spans leave in batches through a redacting exporter, to OTLP and/or a JSON file; metrics are read by
Prometheus. Before ``setup`` everything here works and records nothing, so code never asks whether it ran.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
from opentelemetry.trace import Link
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from autopost_runtime.config import ServiceConfig
from autopost_runtime.spans import exporters

__all__ = ["Observation", "Readings"]

NAME = "autopost"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
FLUSH_LIMIT = 1.5
"""A collector that does not answer must not hold up a service that was told to stop."""

Labels = Mapping[str, str | int | bool]
Readings = float | Iterable[Observation]

_propagator = TraceContextTextMapPropagator()
_no_tracer = trace.NoOpTracer()


class _Providers:
    def __init__(self, resource: Resource, span_exporters: Sequence[SpanExporter]) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        reader = PrometheusMetricReader(scope_info_enabled=False, registry=self.registry)
        self.meters = MeterProvider([reader], resource, shutdown_on_exit=False)
        self.meter = self.meters.get_meter(NAME)
        self.exporting = bool(span_exporters)
        # Ids are needed always, recordings only to be sent; what is sent, OTEL_TRACES_SAMPLER says.
        sampler = None if self.exporting else ParentBased(ALWAYS_OFF)
        self.traces = TracerProvider(sampler, resource, shutdown_on_exit=False)
        for exporter in span_exporters:
            self.traces.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=1000))
        self.tracer = self.traces.get_tracer(NAME)


_providers: _Providers | None = None
_instruments: dict[str, "Histogram | Counter"] = {}
_gauges: dict[str, "_Gauge"] = {}


def setup(service: str, config: ServiceConfig) -> None:
    global _providers
    resource = Resource.create({"service.name": f"{NAME}-{service}", "service.namespace": NAME})
    _providers = _Providers(resource, exporters(service, config))
    for gauge_ in _gauges.values():
        gauge_.create(_providers)


def shutdown() -> None:
    """Sends what is left, for at most ``FLUSH_LIMIT`` seconds."""
    global _providers
    if _providers is None:
        return
    closing, _providers = _providers, None
    flush = threading.Thread(target=closing.traces.shutdown, daemon=True)
    flush.start()
    flush.join(FLUSH_LIMIT)
    closing.meters.shutdown()


def tracer() -> trace.Tracer:
    return _providers.tracer if _providers else _no_tracer


def exporting() -> bool:
    """Whether spans leave this process; what costs more than it should may be left out when not."""
    return _providers is not None and _providers.exporting


def meter() -> metrics.Meter:
    return _providers.meter if _providers else metrics.NoOpMeter(NAME)


def render_metrics() -> bytes:
    return generate_latest(_providers.registry) if _providers else b""


class Histogram:
    """Of seconds. Made anywhere, even at import; takes effect with ``setup``."""

    def __init__(self, name: str, description: str) -> None:
        self._name, self._description = name, description
        self._made: tuple[_Providers, metrics.Histogram] | None = None

    def record(self, amount: float, attributes: Labels | None = None) -> None:
        if _providers is None:
            return
        if self._made is None or self._made[0] is not _providers:
            made = _providers.meter.create_histogram(
                self._name, "", self._description, explicit_bucket_boundaries_advisory=SECONDS
            )
            self._made = (_providers, made)
        self._made[1].record(amount, attributes)


class Counter:
    """Made anywhere, even at import; takes effect with ``setup``."""

    def __init__(self, name: str, description: str) -> None:
        self._name, self._description = name, description
        self._made: tuple[_Providers, metrics.Counter] | None = None

    def add(self, amount: int | float, attributes: Labels | None = None) -> None:
        if _providers is None:
            return
        if self._made is None or self._made[0] is not _providers:
            self._made = (_providers, _providers.meter.create_counter(self._name, "", self._description))
        self._made[1].add(amount, attributes)


class _Gauge:
    def __init__(self, name: str, description: str, callback: Callable[[], Readings]) -> None:
        self.name, self.description, self.callback = name, description, callback

    def create(self, providers: _Providers) -> None:
        providers.meter.create_observable_gauge(self.name, [self._observe], "", self.description)

    def _observe(self, _: CallbackOptions) -> Iterable[Observation]:
        readings = self.callback()
        return [Observation(readings)] if isinstance(readings, int | float) else readings


def histogram(name: str, description: str = "") -> Histogram:
    found = _instruments.setdefault(name, Histogram(name, description))
    if not isinstance(found, Histogram):
        raise TypeError(f"{name} is already a counter")
    return found


def counter(name: str, description: str = "") -> Counter:
    found = _instruments.setdefault(name, Counter(name, description))
    if not isinstance(found, Counter):
        raise TypeError(f"{name} is already a histogram")
    return found


def gauge(name: str, description: str, callback: Callable[[], Readings]) -> None:
    """Asked at each scrape: a number, or one ``Observation`` per label set. The last callback given counts."""
    known = _gauges.get(name)
    if known is not None:
        known.callback = callback
        return
    made = _gauges[name] = _Gauge(name, description, callback)
    if _providers is not None:
        made.create(_providers)


def current_traceparent() -> str | None:
    carrier: dict[str, str] = {}
    _propagator.inject(carrier)
    return carrier.get("traceparent")


def context_from(traceparent: str | None) -> Context:
    """An empty context, so a new trace, when there is none or it is not a traceparent."""
    return _propagator.extract({"traceparent": traceparent} if traceparent else {}, Context())


def link_to(traceparent: str | None) -> Link | None:
    context = trace.get_current_span(context_from(traceparent)).get_span_context()
    return Link(context) if context.is_valid else None


def trace_id_of(traceparent: str | None) -> str | None:
    link = link_to(traceparent)
    return trace.format_trace_id(link.context.trace_id) if link else None
