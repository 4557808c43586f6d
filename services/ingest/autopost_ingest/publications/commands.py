"""Handle the commands of ``delivery.commands``. A handler makes a delivery and never sends."""

from datetime import timedelta

import msgspec
from autopost_contracts.commands import PublishPost
from autopost_runtime.nats.bus import Done, Later, Message, Poison, Verdict
from autopost_runtime.postgres.errors import is_of_the_database

from autopost_ingest.errors import log_background_error
from autopost_ingest.publications.begin import PublicationStarter
from autopost_ingest.publications.gateway import Due

AGAIN = timedelta(seconds=2)
_decode = msgspec.json.Decoder(PublishPost).decode


class CommandHandler:
    def __init__(self, starter: PublicationStarter) -> None:
        self._starter = starter

    async def handle(self, message: Message) -> Verdict:
        try:
            command = _decode(message.payload)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return Poison("unreadable_command")
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
