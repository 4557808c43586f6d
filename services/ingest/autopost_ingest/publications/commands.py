"""Handle the commands of ``delivery.commands``. A handler makes a delivery and never sends.

A message that is no command goes to the dead letters and does not come again.
"""

from datetime import timedelta
from hashlib import sha256
from typing import Protocol

import msgspec
from autopost_contracts.commands import PublishPost, UnreadableCommand
from autopost_runtime.nats.bus import Done, Later, Message, NotPublished, Poison, PublishUnknown, Verdict
from autopost_runtime.postgres.errors import is_of_the_database

from autopost_ingest.errors import log_background_error
from autopost_ingest.publications.begin import PublicationStarter
from autopost_ingest.publications.gateway import Due

AGAIN = timedelta(seconds=2)
_decode = msgspec.json.Decoder(PublishPost).decode


class Publishes(Protocol):
    async def publish(self, subject: str, payload: bytes, *, msg_id: str) -> object: ...


class CommandHandler:
    def __init__(self, starter: PublicationStarter, bus: Publishes, dead_letters: str) -> None:
        self._starter = starter
        self._bus = bus
        self._dead_letters = dead_letters

    async def handle(self, message: Message) -> Verdict:
        try:
            command = _decode(message.payload)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return await self._set_aside(message)
        due = Due(
            workspace_id=command.workspace_id,
            publication_id=command.publication_id,
            version=command.version,
            traceparent=message.headers.get("traceparent"),
        )
        try:
            await self._starter.begin(due)
        except Exception as exc:
            log_background_error(exc, "command.not_handled")
            # An error of ours would come back for ever: the sweep of the table tries it beside the others.
            return Later(AGAIN) if is_of_the_database(exc) else Done()
        return Done()

    async def _set_aside(self, message: Message) -> Verdict:
        """As long as the dead letter is not stored, the message comes again."""
        digest = sha256(message.payload).hexdigest()
        letter = UnreadableCommand(size=len(message.payload), sha256=digest)
        try:
            await self._bus.publish(self._dead_letters, msgspec.json.encode(letter), msg_id=f"dlq:unreadable:{digest}")
        except (NotPublished, PublishUnknown):
            return Later(AGAIN)
        return Poison(letter.error_type)
