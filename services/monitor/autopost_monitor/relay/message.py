"""The stream message of an event: subject, headers and body."""

from collections.abc import Iterable
from typing import Any

import msgspec
from autopost_contracts.events import AUDIT_SCHEMA, AUDIT_VERSION, SCHEMA_HEADER, VERSION_HEADER, AuditEvent
from autopost_contracts.subjects import Topology
from autopost_runtime.nats.ordered_publisher import StreamMessage

from autopost_monitor.relay.gateway import PendingEvent

LARGEST = 512 * 1024
"""Half of the default message limit of NATS: an event that is too large must not block those after it."""

DEEPEST = 32
"""Levels of nested lists and objects. Our events have a few; many JSON parsers allow only some hundreds."""


def outgoing(waiting: PendingEvent, topology: Topology) -> StreamMessage:
    event = waiting.event
    headers = {SCHEMA_HEADER: AUDIT_SCHEMA, VERSION_HEADER: str(AUDIT_VERSION)}
    if waiting.traceparent:
        headers["traceparent"] = waiting.traceparent
    return StreamMessage(topology.audit(event.workspace_id, event.action), _body(event), str(event.id), headers)


def _body(event: AuditEvent) -> bytes:
    """Always returns a body, without ``meta`` and ``error`` if they are too large or deep: the relay must continue."""
    if not _is_readable(event):
        return _without(event, "it is nested too deep for the stream; read the event in the database")
    body = msgspec.json.encode(event)
    if len(body) <= LARGEST:
        return body
    return _without(event, f"{len(body)} bytes are too many for the stream; read the event in the database")


def _without(event: AuditEvent, why: str) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(event, meta={"omitted": why}, error=None))


def _is_readable(event: AuditEvent) -> bool:
    """``postgres`` returns JSON that is far too deep as text, so a value that is not a dict is unreadable."""
    return all(value is None or (isinstance(value, dict) and _is_flat(value)) for value in (event.meta, event.error))


def _is_flat(value: dict[str, Any]) -> bool:
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        level = [inner for each in level for inner in _inside(each) if isinstance(inner, dict | list)]
        if not level:
            return True
    return False


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value
