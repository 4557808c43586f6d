"""Structured logs: one JSON object per line, with the ids of the current trace.

Log lines of libraries (``logging``) take the same path. The redactor runs last, and a control character in a payload
can start neither a new line nor a new field. A line that cannot be written is lost and counted, see ``log_output``.
"""

import logging
import re
import sys
import traceback
from collections.abc import MutableMapping
from typing import Any, Literal, TextIO, cast

import msgspec
import structlog
from opentelemetry import trace
from structlog.typing import FilteringBoundLogger, Processor

from autopost_runtime.secrets.redaction import MASK, names_a_secret, redact
from autopost_runtime.telemetry.log_output import Output, output_of

LogFormat = Literal["json", "console"]

# httpx prints URLs at INFO, and a Telegram URL holds the token; the others are noise.
QUIET = (
    "httpx",
    "httpcore",
    "aiobotocore",
    "botocore",
    "nats",
    "aiohttp.access",
    "asyncio",
    "urllib3",
    "opentelemetry",
)

_LINE_BREAKS = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Includes lone surrogates, which cannot be encoded."""
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_DEEPEST = 8
_Event = MutableMapping[str, Any]


def setup(service: str, log_format: LogFormat = "json", level: str = "info") -> None:
    threshold = logging.getLevelNamesMapping()[level.upper()]
    shared = _processors(service, log_format)
    output = output_of(sys.stdout)
    structlog.configure(
        processors=[*shared, _renderer(log_format)],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(cast(TextIO, output)),
        cache_logger_on_first_use=False,
    )
    _route_logging(shared, log_format, threshold, output)


def get_logger(**fields: Any) -> FilteringBoundLogger:
    return cast(FilteringBoundLogger, structlog.get_logger(**fields))


def _processors(service: str, log_format: LogFormat) -> list[Processor]:
    def add_service(_: Any, __: str, event: _Event) -> _Event:
        event.setdefault("service", service)
        return event

    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        add_service,
        add_trace,
        add_exception,
        Redactor(_CONTROLS if log_format == "console" else _LINE_BREAKS),
    ]


def add_trace(_: Any, __: str, event: _Event) -> _Event:
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = trace.format_trace_id(context.trace_id)
        event["span_id"] = trace.format_span_id(context.span_id)
    return event


def add_exception(_: Any, __: str, event: _Event) -> _Event:
    """Type, message and stack; no locals, because they may contain secrets."""
    info = event.pop("exc_info", None)
    exc = sys.exc_info()[1] if info is True else info[1] if isinstance(info, tuple) else info
    if isinstance(exc, BaseException):
        event["error"] = {
            "type": type(exc).__qualname__,
            "message": _text_of(exc),
            "cause": type(exc.__cause__).__qualname__ if exc.__cause__ else None,
            "at": [
                f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno} {frame.name}"
                for frame in traceback.extract_tb(exc.__traceback__)[-12:]
            ],
        }
    return event


_BIG = 2**64
"""An integer from here on is logged as text: Python refuses to write more than 4,300 digits."""


class Redactor:
    """Masks secrets by name and by pattern anywhere in the event, and escapes line breaks."""

    def __init__(self, controls: re.Pattern[str] = _LINE_BREAKS) -> None:
        self._controls = controls

    def __call__(self, _: Any, __: str, event: _Event) -> _Event:
        return {key: self._clean(key, value, 0) for key, value in event.items()}

    def _clean(self, name: str, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, bool | float) or (isinstance(value, int) and -_BIG < value < _BIG):
            return value
        if names_a_secret(name):
            return MASK
        if isinstance(value, dict) and depth < _DEEPEST:
            return {self._text(key): self._clean(_text_of(key), inner, depth + 1) for key, inner in value.items()}
        if isinstance(value, list | tuple | set | frozenset) and depth < _DEEPEST:
            return [self._clean("", inner, depth + 1) for inner in value]
        return self._text(value)

    def _text(self, value: Any) -> str:
        return self._controls.sub(_escape, redact(_text_of(value)))


def _text_of(value: Any) -> str:
    """An object whose ``str()`` raises must not fail the log call."""
    try:
        return str(value)
    except Exception as exc:
        return f"<{type(value).__qualname__}: {type(exc).__qualname__}>"


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return {10: "\\n", 13: "\\r", 9: "\\t"}.get(code) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")


def _renderer(log_format: LogFormat) -> Processor:
    if log_format == "console":
        return structlog.dev.ConsoleRenderer(
            colors=sys.stdout is not None and sys.stdout.isatty(), timestamp_key="time"
        )
    return _render_json


def _render_json(_: Any, __: str, event: _Event) -> str:
    ordered = {"time": event.pop("time", None), "level": event.pop("level", None), "event": event.pop("event", None)}
    return msgspec.json.encode({**ordered, **event}).decode()


def _route_logging(shared: list[Processor], log_format: LogFormat, threshold: int, output: Output) -> None:
    handler = logging.StreamHandler(output)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _renderer(log_format)],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(threshold)
    for name in QUIET:
        logging.getLogger(name).setLevel(max(threshold, logging.WARNING))
    logging.captureWarnings(True)
