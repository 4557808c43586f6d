"""Which clients listen to which chat, and what each chat has still to tell them.

A wakeup carries only a number of a chat. What changed is read from the database, once for all clients of the chat, in
the order of its numbers. So wakeups may be lost, repeated or reordered; a poll of the numbers finds what they missed.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Protocol
from uuid import UUID

from autopost_contracts.ids import WorkspaceId, chat_token
from autopost_runtime.lifecycle.backoff import Backoff
from autopost_runtime.postgres.errors import is_retryable
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

from autopost_bot.gateway import Change, Gateway
from autopost_bot.stream import frames
from autopost_bot.stream.subscription import Subscription

MOST_REPLAYED = 500
CHATS_PER_POLL = 1000
LAST_WRITES_LIMIT = timedelta(seconds=1)
"""How long a stop waits for clients that do not take the end of their stream."""

events = metrics.counter("autopost_chat_stream_events_total", "Events for clients of chats by kind.")
replayed = metrics.counter("autopost_chat_stream_replayed_total", "Missed events sent to clients that came back.")
failed = metrics.counter("autopost_chat_stream_reads_failed_total", "Failed reads of the changes of a chat.")
lag = metrics.histogram("autopost_chat_stream_lag_seconds", "From the commit of a change to its delivery to clients.")


class Link(Protocol):
    """What the hub needs to know of NATS."""

    @property
    def connected(self) -> bool: ...

    @property
    def connects(self) -> int: ...


class Chat:
    """A chat with clients. ``head`` is the number up to which all have been told, ``target`` the highest one known."""

    __slots__ = ("chat_id", "clients", "head", "reader", "target", "wakeups", "workspace")

    def __init__(self, workspace: WorkspaceId, chat_id: str) -> None:
        self.workspace, self.chat_id = workspace, chat_id
        self.clients: set[Subscription] = set()
        self.head: int | None = None
        self.target = 0
        self.wakeups = 0
        self.reader: asyncio.Task[None] | None = None


class Hub:
    def __init__(self, gateway: Gateway, link: Link) -> None:
        self._gateway = gateway
        self._link = link
        self._chats: dict[tuple[WorkspaceId, str], Chat] = {}
        self.clients = 0
        self._clients_of: Counter[WorkspaceId] = Counter()
        self.closed = False
        metrics.gauge("autopost_chat_stream_clients", "Open chat streams.", lambda: float(self.clients))

    def has_room(self, workspace: WorkspaceId, most: int) -> bool:
        """The last quarter of the room is kept for workspaces that have less than a quarter of it."""
        is_ample = self.clients * 4 < most * 3 or self._clients_of[workspace] * 4 < most
        return is_ample and self.clients < most

    async def join(
        self, workspace: WorkspaceId, chat_id: str, after: int | None, abort: Callable[[], None]
    ) -> tuple[Subscription, bytes]:
        """A subscription that must ``leave``, and the bytes to begin with. ``after``: the last number the client knows;
        without one it is told only of what comes."""
        chat = self._chats.setdefault((workspace, chat_token(workspace, chat_id)), Chat(workspace, chat_id))
        client = Subscription(abort)
        chat.clients.add(client)  # before the read, so that no change falls between both
        self.clients += 1
        self._clients_of[workspace] += 1
        try:
            first, position = await self._read_beginning(chat, after)
        except BaseException:
            self.leave(workspace, chat_id, client)
            raise
        client.begin_at(position)
        self._settle(chat, position)
        return client, first

    def leave(self, workspace: WorkspaceId, chat_id: str, client: Subscription) -> None:
        key = workspace, chat_token(workspace, chat_id)
        chat = self._chats.get(key)
        if chat is None or client not in chat.clients:
            return
        chat.clients.remove(client)
        self.clients -= 1
        self._clients_of[workspace] -= 1
        if not self._clients_of[workspace]:
            del self._clients_of[workspace]
        if not chat.clients:
            del self._chats[key]

    def wake(self, workspace: WorkspaceId, token: str, seq: int | None = None) -> None:
        """``None``: something has changed."""
        chat = self._chats.get((workspace, token))
        if chat is not None:
            self._aim(chat, (chat.head or 0) + 1 if seq is None else seq)

    def on_wakeup(self, subject: str, data: bytes) -> None:
        *_, workspace, token = subject.split(".")
        self.wake(WorkspaceId(UUID(workspace)), token, int(data) if data else None)

    async def run(
        self,
        every: timedelta = timedelta(seconds=30),
        every_when_away: timedelta = timedelta(seconds=2),
    ) -> None:
        """Poll the numbers of all chats: now and then, often without NATS, and at once when it is back."""
        loop = asyncio.get_running_loop()
        polled, connects = loop.time(), self._link.connects
        while True:
            await asyncio.sleep(every_when_away.total_seconds())
            due = loop.time() - polled >= every.total_seconds()
            if due or not self._link.connected or self._link.connects != connects:
                polled, connects = loop.time(), self._link.connects
                await self.poll()

    async def poll(self) -> None:
        for chats in _pieces(list(self._chats.values()), CHATS_PER_POLL):
            try:
                heads = await self._gateway.chat_heads(
                    [chat.workspace for chat in chats], [chat.chat_id for chat in chats]
                )
            except Exception as exc:
                _log_failure(exc)
                return
            for chat, head in zip(chats, heads, strict=True):
                self._aim(chat, head)

    def close(self) -> None:
        """End all streams; new ones are sent away. A client that takes nothing is dropped, or the stop waits for it."""
        self.closed = True
        for client in self._all_clients():
            client.close()
        asyncio.get_running_loop().call_later(LAST_WRITES_LIMIT.total_seconds(), self._drop_all)

    def _drop_all(self) -> None:
        for client in self._all_clients():
            client.drop("stopping")

    def _all_clients(self) -> list[Subscription]:
        return [client for chat in self._chats.values() for client in chat.clients]

    async def _read_beginning(self, chat: Chat, after: int | None) -> tuple[bytes, int]:
        if after is None:
            [head] = await self._gateway.chat_heads([chat.workspace], [chat.chat_id])
            return frames.opening(head), head
        changes = await self._gateway.chat_changes(chat.workspace, chat.chat_id, after, MOST_REPLAYED)
        replayed.add(len(changes))
        position = changes[-1].seq if changes else after
        known = after if after <= position else 0  # a number that the chat never had
        return frames.opening(known) + b"".join(map(frames.event, changes)), position

    def _settle(self, chat: Chat, position: int) -> None:
        """The first clients of a chat may begin at different numbers: reading goes on from the lowest."""
        if chat.head is not None:
            chat.target = max(chat.target, chat.head)
        chat.head = position if chat.head is None else min(chat.head, position)
        self._read_on(chat)

    def _aim(self, chat: Chat, seq: int) -> None:
        chat.wakeups += 1
        chat.target = max(chat.target, seq)
        self._read_on(chat)

    def _read_on(self, chat: Chat) -> None:
        if chat.reader is None and chat.head is not None and chat.target > chat.head and chat.clients:
            chat.reader = asyncio.create_task(self._read(chat))
            chat.reader.add_done_callback(lambda _: self._reader_ended(chat))

    def _reader_ended(self, chat: Chat) -> None:
        chat.reader = None
        self._read_on(chat)

    async def _read(self, chat: Chat) -> None:
        backoff = Backoff(timedelta(milliseconds=100), timedelta(seconds=5))
        while chat.clients and chat.head is not None and chat.target > chat.head:
            head, wakeups = chat.head, chat.wakeups
            try:
                changes = await self._gateway.chat_changes(chat.workspace, chat.chat_id, head, MOST_REPLAYED)
                self._deliver(chat, changes)
            except Exception as exc:
                _log_failure(exc)
                await backoff.wait()
                continue
            if chat.head == head:
                chat.head = changes[-1].seq if changes else head
            if not changes and chat.wakeups == wakeups:  # one that came meanwhile may tell of a later commit
                chat.target = chat.head  # the number was not the chat's

    def _deliver(self, chat: Chat, changes: list[Change]) -> None:
        now = datetime.now(UTC)
        for change in changes:
            frame = frames.event(change)
            events.add(len(chat.clients), {"kind": change.kind})
            if change.at is not None:
                lag.record(max(0.0, (now - change.at).total_seconds()))
            for client in list(chat.clients):
                client.put(change.seq, frame)


def _pieces(chats: list[Chat], size: int) -> Iterator[list[Chat]]:
    return (chats[at : at + size] for at in range(0, len(chats), size))


def _log_failure(exc: Exception) -> None:
    failed.add(1)
    get_logger().warning("chat.unreadable", exc_info=None if is_retryable(exc) else exc, error=type(exc).__name__)
