"""Acks of JetStream for messages that are published without waiting for each ack.

The library's own ``publish_async`` does not report errors: a rejected message looks like a lost one.
"""

import asyncio

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg

NO_RESPONDERS = "503"


class PublishError(msgspec.Struct, frozen=True):
    code: int = 0
    description: str = ""


class Ack(msgspec.Struct, frozen=True):
    """With ``error`` the message was not stored; with ``duplicate`` it was already stored, as number ``seq``."""

    seq: int = 0
    duplicate: bool = False
    error: PublishError | None = None


NOBODY = Ack(error=PublishError(int(NO_RESPONDERS), "the stream does not exist"))

Answer = asyncio.Future[Ack]


class PendingAcks:
    """The pending acks of one connection: a reply subject per message, one subscription for all."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._inbox = ""
        self._given = 0
        self._open: dict[str, Answer] = {}

    async def start(self) -> None:
        """Idempotent."""
        if not self._inbox:
            inbox = self._client.new_inbox()
            await self._client.subscribe(f"{inbox}.*", cb=self._on_ack)
            self._inbox = inbox

    def expect(self) -> tuple[str, Answer]:
        """The reply subject for a message, and the future of its ack."""
        self._given += 1
        token = str(self._given)
        self._open[token] = answer = asyncio.get_running_loop().create_future()
        return f"{self._inbox}.{token}", answer

    def forget(self) -> None:
        """Drop all pending acks."""
        for answer in self._open.values():
            answer.cancel()
        self._open.clear()

    async def _on_ack(self, msg: Msg) -> None:
        answer = self._open.pop(msg.subject.rpartition(".")[2], None)
        if answer is None or answer.done():
            return
        no_stream = msg.headers and msg.headers.get("Status") == NO_RESPONDERS
        answer.set_result(NOBODY if no_stream else msgspec.json.decode(msg.data, type=Ack))
