"""A replica of ingest that kills itself with SIGKILL somewhere between a due publication and its delivery.

Run as a program it is warmed up once and then forks a child for each line of standard input, which names the moment.
The child's pid goes to standard output, then its end.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from autopost_contracts.ids import PublicationId, WorkspaceId
from autopost_contracts.subjects import Topology
from autopost_ingest.publications.gateway import BeginVerdict, Command, PublicationGateway, Started
from autopost_runtime.config.load import ServiceConfig
from autopost_runtime.nats.bus import open_bus
from autopost_runtime.postgres.pool import Database, open_database
from autopost_runtime.telemetry import logs
from harness.eventually import eventually
from ingest.support.publishing_replica import PublishingReplica

POINTS = ("starting", "started", "published", "noted", "beginning", "begun")
"""In the order in which a publication meets them. ``starting`` and ``beginning``: all is written, nothing committed."""


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DyingDatabase:
    """Dies before the commit of what is not in vain."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def fetchval(self, query: str, *args: Any) -> Any:
        async with self._database.acquire() as connection, connection.transaction():
            answer = await connection.fetchval(query, *args)
            if answer.get("due") or answer.get("verdict") == "begun":
                die()
            return answer


def gateway_killed_at(point: str) -> type[PublicationGateway]:
    class KilledGateway(PublicationGateway):
        async def due_publications(self, limit: int) -> Started:
            if point == "starting":
                dying = PublicationGateway(DyingDatabase(self._database))  # type: ignore[arg-type]
                return await dying.due_publications(limit)
            started = await super().due_publications(limit)
            if started.due and point == "started":
                die()
            return started

        async def commands_published(self, commands: Sequence[Command]) -> None:
            if point == "published":
                die()
            await super().commands_published(commands)
            if point == "noted":
                die()

        async def begin_publication(
            self, workspace: WorkspaceId, publication: PublicationId, version: int, post: dict[str, Any]
        ) -> BeginVerdict:
            if point == "beginning":
                dying = PublicationGateway(DyingDatabase(self._database))  # type: ignore[arg-type]
                return await dying.begin_publication(workspace, publication, version, post)
            verdict = await super().begin_publication(workspace, publication, version, post)
            if verdict == "begun" and point == "begun":
                die()
            return verdict

    return KilledGateway


async def live(url: str, nats_url: str, namespace: str, point: str) -> None:
    config = ServiceConfig(
        database_url=url,
        database_role="autopost_ingest",
        nats_url=nats_url,
        nats_namespace=Topology(namespace).namespace,
    )
    async with open_database(config, "ingest") as database, open_bus(config, "ingest") as bus:
        replica = PublishingReplica(database, bus, gateway_killed_at(point), timedelta(milliseconds=50))
        await eventually(lambda: bus.connected)
        await asyncio.gather(*replica.run())


def main() -> None:
    where = sys.argv[1:4]
    logs.setup("ingest", "json", "error")
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            asyncio.run(live(*where, line.strip()))
            os._exit(0)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
