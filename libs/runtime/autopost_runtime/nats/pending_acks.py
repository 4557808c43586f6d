"""Answers of JetStream to messages that were published without waiting for each one.

The library's own ``publish_async`` never learns of a refusal: its message then looks like one that got lost.
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
    """``error`` says that it was not stored, ``duplicate`` that it had been: as number ``seq``."""

    seq: int = 0
    duplicate: bool = False
    error: PublishError | None = None


NOBODY = Ack(error=PublishError(int(NO_RESPONDERS), "the stream does not exist"))

Answer = asyncio.Future[Ack]


class PendingAcks:
    """Of one connection; a reply subject for each message, and one subscription to all of them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._inbox = ""
        self._given = 0
        self._open: dict[str, Answer] = {}

    async def start(self) -> None:
        """Again changes nothing."""
        if not self._inbox:
            inbox = self._client.new_inbox()
            await self._client.subscribe(f"{inbox}.*", cb=self._heard)
            self._inbox = inbox

    def expect(self) -> tuple[str, Answer]:
        """Where the answer is to go, and where it will be."""
        self._given += 1
        token = str(self._given)
        self._open[token] = answer = asyncio.get_running_loop().create_future()
        return f"{self._inbox}.{token}", answer

    def forget(self) -> None:
        """Whatever is still to come."""
        for answer in self._open.values():
            answer.cancel()
        self._open.clear()

    async def _heard(self, msg: Msg) -> None:
        answer = self._open.pop(msg.subject.rpartition(".")[2], None)
        if answer is None or answer.done():
            return
        gone = msg.headers and msg.headers.get("Status") == NO_RESPONDERS
        answer.set_result(NOBODY if gone else msgspec.json.decode(msg.data, type=Ack))
