"""An event as it goes into the stream: its subject, its headers, its body."""

import msgspec
from autopost_contracts.events import AUDIT_SCHEMA, AUDIT_VERSION, SCHEMA_HEADER, VERSION_HEADER, AuditEvent
from autopost_contracts.subjects import Topology
from autopost_runtime.chain import Outgoing

from autopost_monitor.relay_gateway import Waiting

LARGEST = 512 * 1024
"""Half of what a NATS server takes by default: one event must never be what holds up all that follow it."""


def outgoing(waiting: Waiting, topology: Topology) -> Outgoing:
    event = waiting.event
    headers = {SCHEMA_HEADER: AUDIT_SCHEMA, VERSION_HEADER: str(AUDIT_VERSION)}
    if waiting.traceparent:
        headers["traceparent"] = waiting.traceparent
    return Outgoing(topology.audit(event.workspace_id, event.action), _body(event), str(event.id), headers)


def _body(event: AuditEvent) -> bytes:
    body = msgspec.json.encode(event)
    if len(body) <= LARGEST:
        return body
    short = {"omitted": f"{len(body)} bytes are too many for the stream; the database has them"}
    return msgspec.json.encode(msgspec.structs.replace(event, meta=short, error=None))
