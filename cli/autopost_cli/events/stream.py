"""Read the stream ``AUDIT``: each event once, also after a lost connection or a replaced stream."""

from collections import OrderedDict
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import nats.errors
from autopost_contracts.events import Action
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.subjects import Topology
from autopost_runtime.lifecycle.backoff import Backoff
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, StreamInfo
from nats.js.errors import NotFoundError, ServiceUnavailableError

from autopost_cli.operate.jetstream import UnreadableError

FETCH_LIMIT = 1.0
BATCH = 500
REMEMBERED_IDS = 100_000
"""Ids kept to detect repeats: an event is repeated soon, or with the whole stream."""

LATE_EVENTS = timedelta(minutes=1)
"""An event this much older than the start is still printed: it was relayed late, or clocks differ."""


class TailFilter(msgspec.Struct, frozen=True):
    workspace: UUID | None = None
    action: Action | None = None
    since: datetime | None = None
    follow: bool = True


class ReceivedEvent(msgspec.Struct, frozen=True):
    """An event and its original text."""

    event: dict[str, Any]
    text: bytes


class Tail:
    def __init__(self, js: JetStreamContext, topology: Topology, wanted: TailFilter) -> None:
        self._js = js
        self._stream = topology.audit_stream.name
        self._subject = topology.audit(
            None if wanted.workspace is None else WorkspaceId(wanted.workspace), wanted.action
        )
        self._wanted = wanted
        self._since = wanted.since or (datetime.now(UTC) - LATE_EVENTS if wanted.follow else None)
        self._created: datetime | None = None
        self._next = 0
        self._seen_ids: OrderedDict[str, None] = OrderedDict()

    async def read(self) -> AsyncGenerator[ReceivedEvent, None]:
        """Ends only without ``follow``; with it, a lost connection is retried."""
        backoff = Backoff()
        while True:
            try:
                async for received in self._until_disconnected():
                    backoff.reset()
                    yield received
                return
            except (nats.errors.Error, OSError) as exc:
                if not self._wanted.follow:
                    raise UnreadableError(
                        f"lost the connection to NATS ({type(exc).__name__}); run the command again"
                    ) from None
            await backoff.wait()

    async def _until_disconnected(self) -> AsyncGenerator[ReceivedEvent, None]:
        subscription = await self._subscribed()
        left = (await subscription.consumer_info()).num_pending or 0
        while self._wanted.follow or left:
            try:
                messages = await subscription.fetch(BATCH, timeout=FETCH_LIMIT)
            except nats.errors.TimeoutError:
                await (
                    subscription.consumer_info()
                )  # raises when the consumer is gone, which otherwise looks like no events
                continue
            for message in messages:
                self._next = message.metadata.sequence.stream + 1
                left = message.metadata.num_pending
                if received := self._if_new(message.data):
                    yield received

    async def _subscribed(self) -> JetStreamContext.PullSubscription:
        try:
            info = await self._js.stream_info(self._stream)
        except (NotFoundError, ServiceUnavailableError):
            if self._created is not None:
                raise
            raise UnreadableError(
                f"this NATS server has no stream {self._stream}; start the monitor, which creates it, "
                "and check that --namespace is the one of the services"
            ) from None
        start = ConsumerConfig(ack_policy=AckPolicy.NONE, inactive_threshold=60, mem_storage=True, **self._start(info))
        return await self._js.pull_subscribe(self._subject, stream=self._stream, config=start)

    def _start(self, info: StreamInfo) -> dict[str, Any]:
        """The position after the last event; the beginning, if the stream was replaced."""
        if self._created is None and self._wanted.since is not None:
            start = {"deliver_policy": DeliverPolicy.BY_START_TIME, "opt_start_time": self._wanted.since}
        elif self._created is None and not self._wanted.follow:
            start = {"deliver_policy": DeliverPolicy.ALL}
        elif self._created in (None, info.created) and self._next <= info.state.last_seq + 1:
            self._next = self._next or info.state.last_seq + 1
            start = {"deliver_policy": DeliverPolicy.BY_START_SEQUENCE, "opt_start_seq": self._next}
        else:
            start = {"deliver_policy": DeliverPolicy.ALL}
        self._created = info.created
        return start

    def _if_new(self, text: bytes) -> ReceivedEvent | None:
        """``None`` for repeated events and for those before the start."""
        event = msgspec.json.decode(text, type=dict[str, Any])
        if event["id"] in self._seen_ids or self._is_too_old(event):
            return None
        self._seen_ids[event["id"]] = None
        if len(self._seen_ids) > REMEMBERED_IDS:
            self._seen_ids.popitem(last=False)
        return ReceivedEvent(event, text)

    def _is_too_old(self, event: dict[str, Any]) -> bool:
        return self._since is not None and datetime.fromisoformat(event["ts"]) < self._since
