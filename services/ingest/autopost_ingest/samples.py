"""Keep a sample of what was refused: what a known sender sent, as far as it was read."""

from aiohttp import web
from autopost_runtime import telemetry
from autopost_runtime.payloads import HURRIED, Payload, Payloads, readable
from autopost_runtime.web import READ
from msgspec import Struct

from autopost_ingest.gateway import Endpoint

LARGEST = 64 * 1024
"""Bytes of a refused body: a sender decides what is in it, and to look for secrets takes a while."""


class Sample(Struct, frozen=True):
    """A refused request; ``secrets`` are those that it was admitted by."""

    payload: Payload
    secrets: tuple[str, ...]


def sample_of(request: web.Request, endpoint: Endpoint, code: str, status: int, secrets: tuple[str, ...]) -> Sample:
    body = request.get(READ)
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


class Samples:
    """One for each event that tells of refusals, whatever their number; the sender does not wait long for it."""

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads

    async def keep(self, endpoint: Endpoint, sample: Sample) -> str | None:
        return await self._payloads.keep(endpoint.workspace_id, sample.payload, secrets=sample.secrets, within=HURRIED)
