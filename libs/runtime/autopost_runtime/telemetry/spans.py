"""Exporters of spans, which redact every span first."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import Link, Status

from autopost_runtime.config.load import ServiceConfig
from autopost_runtime.secrets.redaction import MASK, names_a_secret, redact


def exporters(service: str, config: ServiceConfig) -> list[SpanExporter]:
    """Exporters are imported on use: each import takes 150 ms, and most processes need at most one."""
    chosen: list[SpanExporter] = []
    if config.otlp_endpoint:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        chosen.append(OTLPSpanExporter(f"{config.otlp_endpoint.rstrip('/')}/v1/traces", timeout=5))
    if config.trace_dir:
        from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter

        chosen.append(FileSpanExporter(_trace_file(config.trace_dir, service)))
    return [RedactingExporter(exporter) for exporter in chosen]


def _trace_file(folder: Path, service: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{service}-{os.getpid()}.jsonl"


class RedactingExporter(SpanExporter):
    """Runs in the exporter thread, so it adds no latency to a post."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self._exporter.export([redact_span(span) for span in spans])

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def redact_span(span: ReadableSpan) -> ReadableSpan:
    """Returns the same span when there is nothing to redact, the usual case."""
    return span if _is_clean(span) else _redacted(span)


def _is_clean(span: ReadableSpan) -> bool:
    texts = [span.name, span.status.description or "", *(event.name for event in span.events)]
    carried = [span.attributes, *(event.attributes for event in span.events), *(link.attributes for link in span.links)]
    return all(redact(text) == text for text in texts) and all(
        not names_a_secret(key) and _value(value) == value
        for attributes in carried
        for key, value in (attributes or {}).items()
    )


def _redacted(span: ReadableSpan) -> ReadableSpan:
    return ReadableSpan(
        name=redact(span.name),
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=_attributes(span.attributes),
        events=[Event(redact(event.name), _attributes(event.attributes), event.timestamp) for event in span.events],
        links=[Link(link.context, _attributes(link.attributes)) for link in span.links],
        kind=span.kind,
        status=Status(span.status.status_code, redact(span.status.description) if span.status.description else None),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _attributes(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    return {key: MASK if names_a_secret(key) else _value(value) for key, value in (attributes or {}).items()}


def _value(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list | tuple):
        return tuple(_value(inner) for inner in value)
    return value
