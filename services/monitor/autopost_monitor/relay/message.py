"""The stream message of an event: subject, headers and body."""

from collections.abc import Iterable
from typing import Any

import msgspec
from autopost_contracts.events import AUDIT_SCHEMA, AUDIT_VERSION, SCHEMA_HEADER, VERSION_HEADER, AuditEvent
from autopost_contracts.subjects import Topology
from autopost_runtime.nats.ordered_publisher import StreamMessage

from autopost_monitor.relay.gateway import PendingEvent

LARGEST = 512 * 1024
"""Half of the default limit of a NATS server: a too large event must never block those after it."""

DEEPEST = 32
"""Lists and objects in each other: ours have a few, and many readers take no more than some hundreds."""


def outgoing(waiting: PendingEvent, topology: Topology) -> StreamMessage:
    event = waiting.event
    headers = {SCHEMA_HEADER: AUDIT_SCHEMA, VERSION_HEADER: str(AUDIT_VERSION)}
    if waiting.traceparent:
        headers["traceparent"] = waiting.traceparent
    return StreamMessage(topology.audit(event.workspace_id, event.action), _body(event), str(event.id), headers)


def _body(event: AuditEvent) -> bytes:
    """Whatever an event holds it is told, without what not everybody can read: it must hold up none that follow it."""
    if not _is_readable(event):
        return _without(event, "it is nested too deep for the stream; read the event in the database")
    body = msgspec.json.encode(event)
    if len(body) <= LARGEST:
        return body
    return _without(event, f"{len(body)} bytes are too many for the stream; read the event in the database")


def _without(event: AuditEvent, why: str) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(event, meta={"omitted": why}, error=None))


def _is_readable(event: AuditEvent) -> bool:
    """What is far too deep comes as text, see ``postgres``."""
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
