"""Create and update the streams and consumers of the topology.

Idempotent; called by migrate and whenever a stream is missing. Services only bind. Settings added by an operator
(replicas, placement) are kept. A setting that cannot be changed in place is drift, and is reported.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

import msgspec
from autopost_contracts.subjects import ConsumerSpec, StreamSpec, Topology
from nats.js import JetStreamContext, api
from nats.js.errors import BadRequestError, NotFoundError, ServerError, ServiceUnavailableError

from autopost_runtime.config.load import NatsAccess
from autopost_runtime.lifecycle.backoff import Backoff
from autopost_runtime.nats.access import client_for, options_for, servers_of
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

NAME_IN_USE = 10058
UNLIMITED = -1
DEFAULT_TOPOLOGY = Topology()
ANYBODY = NatsAccess()
REFUSED = (BadRequestError, ServerError)
"""The server responds 500 when a setting cannot be changed in place."""

_drifts = metrics.counter("autopost_nats_drift", "Streams and consumers with wrong settings.")


class BusUnavailable(Exception):  # noqa: N818  named for what happened
    """NATS did not respond in time."""


class Part(msgspec.Struct, frozen=True):
    """A part of the topology: a stream and a consumer. ``None`` means all, an empty name means none."""

    stream: str | None = None
    consumer: str | None = None


WHOLE = Part()


class Drift(msgspec.Struct, frozen=True):
    """A wrong setting that cannot be changed in place."""

    thing: str
    field: str
    wanted: str
    found: str


async def ensure_streams(
    nats_url: str,
    topology: Topology = DEFAULT_TOPOLOGY,
    timeout: timedelta = timedelta(seconds=10),
    access: NatsAccess = ANYBODY,
) -> tuple[Drift, ...]:
    """Waits up to ``timeout`` for the server, then raises ``BusUnavailable``."""
    client = client_for(nats_url, access)
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            await client.connect(
                servers_of(nats_url),
                **options_for(access),
                name="autopost-ensure",
                inbox_prefix="_INBOX_ensure",
                error_cb=_ignore,
                max_reconnect_attempts=UNLIMITED,
                reconnect_time_wait=0.2,  # type: ignore[arg-type]  # annotated int, used as a float
            )
            return await _ensure_once_up(client.jetstream(), topology)
    except TimeoutError:
        raise BusUnavailable(f"no response from NATS within {timeout.total_seconds():g} s") from None
    finally:
        with suppress(Exception):
            await client.close()


async def ensure(js: JetStreamContext, topology: Topology, part: Part = WHOLE) -> tuple[Drift, ...]:
    """The same over an existing connection; ``part`` is for roles with permissions for only that part."""
    drifts: list[Drift] = []
    for stream in topology.streams:
        if part.stream in (None, stream.name):
            drifts += await _ensure_stream(js, stream)
    for consumer in topology.consumers:
        if part.stream in (None, consumer.stream) and part.consumer in (None, consumer.durable):
            drifts += await ensure_consumer(js, consumer)
    return tuple(drifts)


async def ensure_consumer(js: JetStreamContext, spec: ConsumerSpec) -> list[Drift]:
    config = _consumer_config(spec)
    try:
        info = await js.add_consumer(spec.stream, config)
    except REFUSED:
        if spec.acks:
            info = await js.consumer_info(spec.stream, spec.durable)
        else:  # without acks it has no state to keep
            with suppress(NotFoundError):
                await js.delete_consumer(spec.stream, spec.durable)
            info = await js.add_consumer(spec.stream, config)
    return consumer_drift(spec, info)


def consumer_drift(spec: ConsumerSpec, info: api.ConsumerInfo) -> list[Drift]:
    """Differences that ``pull_subscribe`` silently accepts."""
    return _differences(f"consumer {spec.stream}/{spec.durable}", _consumer_fields(spec), info.config)


async def _ensure_once_up(js: JetStreamContext, topology: Topology) -> tuple[Drift, ...]:
    backoff = Backoff()
    while True:
        try:
            return await ensure(js, topology)
        except ServiceUnavailableError:  # connected, but JetStream is still starting
            await backoff.wait()


async def _ensure_stream(js: JetStreamContext, spec: StreamSpec) -> list[Drift]:
    fields = _stream_fields(spec)
    try:
        info = await js.add_stream(api.StreamConfig(name=spec.name, **fields))
    except BadRequestError as exc:
        if exc.err_code != NAME_IN_USE:
            raise
        info = await _update_stream(js, spec, fields)
    return _differences(f"stream {spec.name}", fields, info.config)


async def _update_stream(js: JetStreamContext, spec: StreamSpec, fields: dict[str, Any]) -> api.StreamInfo:
    found = await js.stream_info(spec.name)
    try:
        return await js.update_stream(found.config.evolve(**fields))
    except REFUSED as exc:
        get_logger().error("nats.stream_not_updated", stream=spec.name, reason=exc.description)
        return found


def _stream_fields(spec: StreamSpec) -> dict[str, Any]:
    return {
        "subjects": list(spec.subjects),
        "retention": api.RetentionPolicy.LIMITS,
        "storage": api.StorageType(spec.storage),
        "discard": api.DiscardPolicy.OLD,
        "max_age": spec.max_age.total_seconds(),
        "max_msgs_per_subject": spec.max_msgs_per_subject,
        "duplicate_window": spec.duplicate_window.total_seconds(),
    }


def _consumer_config(spec: ConsumerSpec) -> api.ConsumerConfig:
    return api.ConsumerConfig(name=spec.durable, durable_name=spec.durable, **_consumer_fields(spec))


def _consumer_fields(spec: ConsumerSpec) -> dict[str, Any]:
    fields: dict[str, Any] = {"filter_subject": spec.filter_subject, "deliver_policy": api.DeliverPolicy.ALL}
    if not spec.acks:
        return fields | {"ack_policy": api.AckPolicy.NONE}
    return fields | {
        "ack_policy": api.AckPolicy.EXPLICIT,
        "ack_wait": spec.ack_wait.total_seconds(),
        "max_ack_pending": spec.max_ack_pending,
        "max_deliver": UNLIMITED,  # after a limit the message would be skipped for ever
    }


def _differences(thing: str, wanted: Mapping[str, Any], config: Any) -> list[Drift]:
    drifts = [
        Drift(thing, field, _plain(value), _plain(getattr(config, field)))
        for field, value in wanted.items()
        if _plain(getattr(config, field)) != _plain(value)
    ]
    for drift in drifts:
        get_logger().error("nats.drift", **msgspec.structs.asdict(drift))
        _drifts.add(1, {"thing": thing})
    return drifts


def _plain(value: Any) -> str:
    """The server returns enums as text, whole seconds as floats, lists in any order."""
    value = getattr(value, "value", value)
    if isinstance(value, list):
        return ", ".join(sorted(value))
    return f"{value:g}" if isinstance(value, int | float) else str(value)


async def _ignore(_: Exception) -> None:
    """Failed connection attempts are ignored; the deadline decides."""
