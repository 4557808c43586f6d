"""Publications over HTTP: ingest in process, with two tenants and real Postgres."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
from aiohttp import web
from autopost_contracts.subjects import Topology
from autopost_ingest.admission.admit import Admission
from autopost_ingest.gateway import Gateway
from autopost_ingest.http.publications import PublicationApi
from autopost_ingest.posts.offload import Offload
from autopost_ingest.posts.stored_media import StoredMedia
from autopost_ingest.publications.access import PublicationCallers
from autopost_ingest.publications.gateway import PublicationGateway
from autopost_ingest.publications.prepare import CreativeCompiler
from autopost_runtime.config.load import ServiceConfig
from autopost_runtime.http.web import MIDDLEWARES, serve
from autopost_runtime.postgres.pool import open_database
from db.support.builders import Tenant
from harness.databases import Database
from harness.http_client import http_client
from ingest.support.ingest_client import Ear

SECRET = "secret-of-the-test"
SCOPES = ("draft", "approve", "schedule")


class PublicationClient:
    """Ann of the CRM, who may do everything."""

    def __init__(self, url: str, http: httpx.AsyncClient, tenant: Tenant, ear: Ear) -> None:
        self.url, self.http, self.tenant, self.ear = url, http, tenant, ear
        self.gateway: PublicationGateway
        self.compiler: CreativeCompiler
        self.channel: UUID

    async def call(
        self, verb: str, path: str = "", body: Any = None, *, version: object = None, secret: str = SECRET, **more: Any
    ) -> httpx.Response:
        headers = {"Authorization": f"Bearer {secret}"} | more.pop("headers", {})
        if version is not None:
            headers["If-Match"] = str(version)
        given = {} if body is None else {"json": body}
        return await self.http.request(verb, f"{self.url}/v1/publications{path}", headers=headers, **given, **more)

    def creative(self, text: str = "<b>Sale</b>", **more: Any) -> dict[str, Any]:
        return {"channel_id": str(self.channel), "creative_draft": {"text": text}, **more}

    async def draft(self, text: str = "<b>Sale</b>", **more: Any) -> str:
        answer = await self.call("POST", "", self.creative(text, **more))
        assert answer.status_code == 201, answer.text
        return str(answer.json()["publication_id"])

    async def show(self, publication: str) -> dict[str, Any]:
        return dict((await self.call("GET", f"/{publication}")).json())

    async def do(self, publication: str, verb: str, body: Any = None, **more: Any) -> httpx.Response:
        """With the current version, unless another one is given."""
        more.setdefault("version", f'"{(await self.show(publication))["version"]}"')
        return await self.call("POST", f"/{publication}/{verb}", body, **more)

    async def approved(self, text: str = "<b>Sale</b>", **more: Any) -> str:
        publication = await self.draft(text, **more)
        answer = await self.do(publication, "approve")
        assert answer.status_code == 200, answer.text
        return publication

    async def scheduled(self, after: timedelta = timedelta(0), text: str = "<b>Sale</b>", **more: Any) -> str:
        publication = await self.approved(text, **more)
        answer = await self.do(publication, "schedule", {"at": at(after)})
        assert answer.status_code == 200, answer.text
        return publication

    async def endpoint(self, secret: str, scopes: tuple[str, ...] = SCOPES, name: str = "crm") -> UUID:
        made: UUID = await self.tenant.db.fetchval(
            """INSERT INTO workspace_endpoints (workspace_id, kind, secret_hash, ingress_rps, meta)
               VALUES ($1, 'publication_api', encode(sha256($2::bytea), 'hex'), 0,
                       jsonb_build_object('name', $3::text, 'scopes', to_jsonb($4::text[])))
               RETURNING endpoint_id""",
            *(self.tenant.workspace, secret.encode(), name, list(scopes)),
        )
        return made


def at(after: timedelta = timedelta(0)) -> str:
    return (datetime.now(UTC) + after).isoformat()


@asynccontextmanager
async def publication_client(database: Database, tenant: Tenant) -> AsyncIterator[PublicationClient]:
    config = ServiceConfig(database_url=database.url, database_role="autopost_ingest", database_pool=5)
    async with open_database(config, "ingest") as pool, http_client(timeout=30) as http:
        gateway, ear = PublicationGateway(pool), Ear()
        own = Gateway(pool)
        admission = Admission(own, timedelta(seconds=20), parser=Offload())
        compiler = CreativeCompiler(Offload(), StoredMedia(own))
        app = application_of(admission, gateway, compiler, ear)
        async with await serve(app, "127.0.0.1", 0) as site:
            client = PublicationClient(site.url, http, tenant, ear)
            client.gateway, client.compiler = gateway, compiler
            client.channel = await tenant.channel()
            await client.endpoint(SECRET)
            yield client


def application_of(
    admission: Admission, gateway: PublicationGateway, compiler: CreativeCompiler, ear: Ear
) -> web.Application:
    app = web.Application(middlewares=(*MIDDLEWARES, admission.body_reader.middleware))
    PublicationApi(PublicationCallers(admission, gateway), gateway, compiler, ear, Topology()).add_to(app)
    return app
