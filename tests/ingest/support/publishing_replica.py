"""What a replica of ingest does for publications, wired as the service wires it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from autopost_contracts.commands import PublishPost
from autopost_contracts.ids import PublicationId, WorkspaceId
from autopost_ingest.gateway import Gateway
from autopost_ingest.posts.enqueue import Enqueuer
from autopost_ingest.posts.offload import Offload
from autopost_ingest.posts.stored_media import StoredMedia
from autopost_ingest.publications.begin import PublicationStarter
from autopost_ingest.publications.commands import CommandHandler
from autopost_ingest.publications.due_loop import DueLoop
from autopost_ingest.publications.gateway import PublicationGateway
from autopost_ingest.publications.prepare import CreativeCompiler
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.nats.bus import Bus
from db.support.builders import Tenant

POLL = timedelta(seconds=2)


class PublishingReplica:
    def __init__(
        self,
        database: Any,
        bus: Bus,
        gateway_of: type[PublicationGateway] = PublicationGateway,
        poll: timedelta = POLL,
    ) -> None:
        self.bus = bus
        self.gateway = gateway_of(database)
        own = Gateway(database)
        enqueuer = Enqueuer(own, bus, bus.topology, audit_deduped=False)
        self.compiler = CreativeCompiler(Offload(), StoredMedia(own))
        self.starter = PublicationStarter(self.gateway, self.compiler, enqueuer)
        self.handler = CommandHandler(self.starter, bus, bus.topology.dead_commands)
        self.loop = DueLoop(self.gateway, self.starter, bus, bus.topology, poll)
        self.service = Service("ingest")

    def run(self) -> list["asyncio.Task[None]"]:
        return [
            asyncio.create_task(self.loop.run(self.service)),
            asyncio.create_task(self.bus.wakeups(self.bus.topology.publish_wakeups, self.loop.wake)),
            asyncio.create_task(
                self.bus.consume(self.bus.topology.publish_commands, self.handler.handle, concurrency=4)
            ),
        ]


class Replica(PublishingReplica):
    """One ingest process, as far as publications go, and what people of the tenant do in it."""

    def __init__(self, database: Any, bus: Bus, tenant: Tenant) -> None:
        super().__init__(database, bus)
        self.tenant = tenant
        self.workspace = WorkspaceId(tenant.workspace)

    async def draft(self, channel: UUID, text: str = "<b>Sale</b> & more", **creative: Any) -> PublicationId:
        given = {
            "channel_id": str(channel),
            "creative_draft": {"text": text.replace("&", "&amp;"), **creative},
            "media_type": "text",
        }
        answer = await self.gateway.draft_publication(self.workspace, given, "ann")
        return PublicationId(UUID(answer["publication"]["publication_id"]))

    async def approve(self, publication: PublicationId) -> None:
        prepared = await self.gateway.read_publication(self.workspace, publication)
        assert prepared is not None
        compiled = await self.compiler.compile(self.workspace, prepared)
        assert compiled.problems == ()
        version = prepared.publication.version
        answer = await self.gateway.approve_publication(self.workspace, publication, version, compiled.approval, "bob")
        assert answer["verdict"] == "approved"

    async def schedule(self, publication: PublicationId, wait: timedelta = timedelta(0)) -> datetime:
        at = datetime.now(UTC) + wait
        version = (await self.show(publication))["version"]
        answer = await self.gateway.schedule_publication(self.workspace, publication, version, at, None, "bob")
        assert answer["verdict"] == "scheduled"
        self.bus.wake(self.bus.topology.wakeup_publish(self.workspace))
        return at

    async def scheduled(self, channel: UUID, wait: timedelta = timedelta(0), **creative: Any) -> PublicationId:
        publication = await self.draft(channel, **creative)
        await self.approve(publication)
        await self.schedule(publication, wait)
        return publication

    async def show(self, publication: PublicationId) -> dict[str, Any]:
        prepared = await self.gateway.read_publication(self.workspace, publication)
        assert prepared is not None
        return prepared.publication.document

    async def begun(self, publication: PublicationId) -> bool:
        return (await self.show(publication))["delivery_id"] is not None

    async def has_settled(self) -> bool:
        """Every command in the stream was handled."""
        stream = self.bus.topology.stream("COMMANDS")
        info = await self.bus._connection.js.consumer_info(stream, "post-scheduler-worker")
        return not (info.num_pending or info.num_ack_pending)

    async def command(self, publication: PublicationId, msg_id: str) -> bool:
        """Publishes a command, as the outbox has it or once more."""
        command = PublishPost(
            workspace_id=self.workspace,
            publication_id=publication,
            version=(await self.show(publication))["version"],
        )
        payload = json.dumps(
            {"type": "publish_post.v1", **{f: str(getattr(command, f)) for f in ("workspace_id", "publication_id")}}
            | {"version": command.version}
        )
        return await self.bus.publish(self.bus.topology.commands, payload.encode(), msg_id=msg_id)


StartReplica = Callable[..., Awaitable[Replica]]
