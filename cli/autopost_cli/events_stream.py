"""Read the stream ``AUDIT`` as anybody may: each event once, also when the server or the stream was away meanwhile."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import msgspec
import nats.errors
from autopost_contracts.events import Action
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.subjects import Topology
from autopost_runtime.backoff import Backoff
from autopost_runtime.streams import servers_of
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, StreamInfo
from nats.js.errors import NotFoundError, ServiceUnavailableError

CONNECT_LIMIT = 5.0
FETCH_LIMIT = 1.0
BATCH = 500
REMEMBERED = 100_000
"""Ids: an event that comes again comes soon, or with all the others."""

TOLD_LATE = timedelta(minutes=1)
"""So long before one began to follow an event may have happened that is news: it was relayed late, or clocks differ."""


class UnreadableError(Exception):
    """The text is for the person at the terminal."""


class Wanted(msgspec.Struct, frozen=True):
    workspace: UUID | None = None
    action: Action | None = None
    since: datetime | None = None
    follow: bool = True


class Told(msgspec.Struct, frozen=True):
    """An event, and the very text in which it came."""

    event: dict[str, Any]
    text: bytes


class Tail:
    def __init__(self, js: JetStreamContext, topology: Topology, wanted: Wanted) -> None:
        self._js = js
        self._stream = topology.audit_stream.name
        self._subject = topology.audit(
            None if wanted.workspace is None else WorkspaceId(wanted.workspace), wanted.action
        )
        self._wanted = wanted
        self._since = wanted.since or (datetime.now(UTC) - TOLD_LATE if wanted.follow else None)
        self._created: datetime | None = None
        self._next = 0
        self._seen: OrderedDict[str, None] = OrderedDict()

    async def read(self) -> AsyncGenerator[Told, None]:
        """Ends only when nothing is to be followed; a server that goes away meanwhile is waited for."""
        backoff = Backoff()
        while True:
            try:
                async for told in self._until_trouble():
                    backoff.reset()
                    yield told
                return
            except (nats.errors.Error, OSError) as exc:
                if not self._wanted.follow:
                    raise UnreadableError(f"NATS stopped answering ({type(exc).__name__}); run it again") from None
            await backoff.wait()

    async def _until_trouble(self) -> AsyncGenerator[Told, None]:
        subscription = await self._subscribed()
        left = (await subscription.consumer_info()).num_pending or 0
        while self._wanted.follow or left:
            try:
                messages = await subscription.fetch(BATCH, timeout=FETCH_LIMIT)
            except nats.errors.TimeoutError:
                await subscription.consumer_info()  # raises when it is gone, which otherwise looks like silence
                continue
            for message in messages:
                self._next = message.metadata.sequence.stream + 1
                left = message.metadata.num_pending
                if told := self._fresh(message.data):
                    yield told

    async def _subscribed(self) -> JetStreamContext.PullSubscription:
        try:
            info = await self._js.stream_info(self._stream)
        except (NotFoundError, ServiceUnavailableError):
            if self._created is not None:
                raise
            raise UnreadableError(
                f"there is no stream {self._stream} on this NATS server; the monitor makes it when it starts, "
                "and --namespace must be the one of the services"
            ) from None
        start = ConsumerConfig(ack_policy=AckPolicy.NONE, inactive_threshold=60, mem_storage=True, **self._start(info))
        return await self._js.pull_subscribe(self._subject, stream=self._stream, config=start)

    def _start(self, info: StreamInfo) -> dict[str, Any]:
        """Where one left off; everything, when it is another stream than before."""
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

    def _fresh(self, text: bytes) -> Told | None:
        """``None`` for what was told already, and for what happened before it was asked for and is only told again."""
        event = msgspec.json.decode(text, type=dict[str, Any])
        if event["id"] in self._seen or self._is_too_old(event):
            return None
        self._seen[event["id"]] = None
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return Told(event, text)

    def _is_too_old(self, event: dict[str, Any]) -> bool:
        return self._since is not None and datetime.fromisoformat(event["ts"]) < self._since


@asynccontextmanager
async def connected(nats_url: str) -> AsyncIterator[JetStreamContext]:
    """Raises ``UnreadableError`` naming the server, never what is before the ``@``."""
    client = Client()
    try:
        await _connect(client, nats_url)
        yield client.jetstream(timeout=CONNECT_LIMIT)
    finally:
        with suppress(Exception):
            await client.close()


async def _connect(client: Client, nats_url: str) -> None:
    if nats_url == "off":
        raise UnreadableError("AUTOPOST_NATS_URL is off, and without NATS there is no audit stream; set it")
    places = ", ".join(urlsplit(server).netloc.rpartition("@")[2] for server in servers_of(nats_url))
    refused = False

    async def note(exc: Exception) -> None:
        nonlocal refused
        refused = refused or "authorization" in str(exc).lower()

    connecting = client.connect(servers_of(nats_url), name="autopost-events", error_cb=note, max_reconnect_attempts=-1)
    try:
        await asyncio.wait_for(connecting, CONNECT_LIMIT)
    except (nats.errors.Error, OSError, ValueError) as exc:  # TimeoutError is one
        what = "refuses these credentials" if refused else f"does not answer ({type(exc).__name__})"
        raise UnreadableError(f"NATS at {places} {what}; check AUTOPOST_NATS_URL") from None
