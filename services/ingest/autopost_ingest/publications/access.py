"""Who may call: an endpoint of kind ``publication_api`` by its secret, within its scopes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

from aiohttp import web
from autopost_contracts.ids import EndpointId, WorkspaceId
from autopost_runtime.http.endpoint_cache import Endpoint, TtlCache, secret_of
from autopost_runtime.http.problem import HttpProblem
from autopost_runtime.secrets.redaction import redact_secrets
from msgspec import Struct
from msgspec.structs import replace

from autopost_ingest.admission.admit import Admission, inactive, unknown
from autopost_ingest.publications.gateway import PublicationAccess, PublicationGateway
from autopost_ingest.publications.requests import LONGEST_BODY, Body, read_body

Scope = Literal["draft", "approve", "schedule"]

OPERATOR_HEADER = "X-Operator"
LONGEST_OPERATOR = 100


class Caller(Struct, frozen=True, kw_only=True):
    endpoint: Endpoint
    by: str
    """Who makes the change, in its event."""

    @property
    def workspace(self) -> WorkspaceId:
        return self.endpoint.workspace_id


class PublicationCallers:
    """A paused workspace may be worked in: its publications wait. A disabled one may not."""

    def __init__(self, admission: Admission, gateway: PublicationGateway) -> None:
        self._admission = admission.silent()
        self._access: TtlCache[tuple[WorkspaceId, EndpointId], PublicationAccess | None] = TtlCache(
            lambda key: gateway.publication_access(*key)
        )

    @asynccontextmanager
    async def admitted(self, request: web.Request, scope: Scope | None = None) -> AsyncIterator[Caller]:
        """Raises ``HttpProblem`` 401, 403, 429 or 503."""
        endpoint = await self._admission.find("publication_api", secret_of(request))
        if endpoint is None:
            raise unknown(request)
        if endpoint.workspace_status == "disabled":
            raise inactive("disabled")
        async with self._admission.accounted(request, endpoint):
            await self._admission.check_rate(endpoint)
            access = await self._access.get((endpoint.workspace_id, endpoint.endpoint_id))
            if access is None:  # disabled a moment ago
                raise unknown(request)
            if scope is not None and scope not in access.scopes:
                raise HttpProblem(403, "Forbidden", f"this endpoint has no scope `{scope}`", more={"scope": scope})
            yield Caller(endpoint=endpoint, by=_signature(request, access))

    async def body_of(self, request: web.Request, caller: Caller, shape: type[Body]) -> Body:
        """Must be called inside ``admitted``."""
        limit = min(LONGEST_BODY, caller.endpoint.max_payload_bytes)
        return read_body(await self._admission.read(request, replace(caller.endpoint, max_payload_bytes=limit)), shape)


def _signature(request: web.Request, access: PublicationAccess) -> str:
    """The endpoint, and the person that it names."""
    person = request.headers.get(OPERATOR_HEADER, "").strip()
    if not person:
        return redact_secrets(access.name)
    if len(person) > LONGEST_OPERATOR or not person.isprintable():  # undecodable bytes are not printable
        words = f"must be a name of at most {LONGEST_OPERATOR} characters in UTF-8"
        raise HttpProblem(400, "Bad Request", words, field=OPERATOR_HEADER)
    return redact_secrets(f"{person} ({access.name})")
