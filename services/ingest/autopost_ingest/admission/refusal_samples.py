"""Store a sample of a refused request: its headers and the part of the body that was read."""

from aiohttp import web
from autopost_runtime.http.web import BODY
from autopost_runtime.storage.payloads import HURRIED, Payload, Payloads, readable
from autopost_runtime.telemetry import tracing as telemetry
from msgspec import Struct

from autopost_ingest.gateway import Endpoint

LARGEST = 32 * 1024
"""Bytes of a stored body. A limit, because the search for secrets takes time and the sender chooses the content."""


class Sample(Struct, frozen=True):
    """A refused request; ``secrets`` are the ones it was authenticated with, to be masked."""

    payload: Payload
    secrets: tuple[str, ...]


def sample_of(request: web.Request, endpoint: Endpoint, code: str, status: int, secrets: tuple[str, ...]) -> Sample:
    body = request.get(BODY)
    payload = Payload(
        kind="refused_input",
        about={"endpoint_id": endpoint.endpoint_id, "code": code, "trace_id": telemetry.current_trace_id()},
        status=status,
        headers=request.headers,
        body=None if body is None else readable(body, LARGEST),
        size=0 if body is None else len(body),
        largest=LARGEST,
    )
    return Sample(payload, secrets)


class SampleStore:
    """One sample per refusal event. The time limit is short, because the sender waits for it."""

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads

    async def keep(self, endpoint: Endpoint, sample: Sample) -> str | None:
        return await self._payloads.keep(endpoint.workspace_id, sample.payload, secrets=sample.secrets, within=HURRIED)
