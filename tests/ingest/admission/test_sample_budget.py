"""To keep a sample of what was refused holds the loop no longer than a request may, whatever was sent."""

import time
from collections.abc import Callable
from uuid import UUID

import pytest
from aiohttp.test_utils import make_mocked_request
from autopost_contracts.ids import EndpointId, WorkspaceId
from autopost_ingest.admission.refusal_samples import SampleStore, sample_of
from autopost_ingest.gateway import Endpoint
from autopost_runtime.http.web import BODY
from autopost_runtime.secrets.redaction import redact_secrets
from autopost_runtime.storage.payloads import Payloads
from harness.growth import assert_linear
from harness.hostile_texts import SECRETS, Text

KiB = 1024
LONGEST_BODY = 256 * KiB
BUDGET = 0.05
"""Seconds of CPU time."""
RUNS = 5
ENDPOINT = Endpoint(
    workspace_id=WorkspaceId(UUID(int=1)),
    endpoint_id=EndpointId(UUID(int=2)),
    workspace_status="active",
    max_payload_bytes=LONGEST_BODY,
)
NO_TEXT: dict[str, bytes] = {
    "bytes and equals signs": b"\xff=",
    "bytes and colons": b"a:\xff",
    "passwords of bytes": b"://a:\xff",
    "paths of bytes": b"/bot\xff",
    "tokens of bytes": b'"token":"\xff',
    "names of bytes": b'"a_token": \xff',
}
BODIES: dict[str, Callable[[], bytes]] = {
    **{name: lambda make=make: make(LONGEST_BODY).encode() for name, make in SECRETS.items()},
    **{name: lambda unit=unit: unit * (LONGEST_BODY // len(unit)) for name, unit in NO_TEXT.items()},
}


class Shelf:
    def __init__(self) -> None:
        self.kept = 0

    async def put(self, *_: object, **__: object) -> None:
        self.kept += 1


@pytest.mark.parametrize("name", BODIES)
async def test_a_sample_of_a_refused_body_is_made_in_time(name: str) -> None:
    shelf, body, taken = Shelf(), BODIES[name](), []
    for _ in range(RUNS):
        request = make_mocked_request("POST", "/v1/posts")
        request[BODY] = body
        begun = time.thread_time()
        sample = sample_of(request, ENDPOINT, "malformed", 400, ("secret",))
        await SampleStore(Payloads(shelf, "ingest")).keep(ENDPOINT, sample)
        taken.append(time.thread_time() - begun)

    assert shelf.kept == RUNS
    assert min(taken) < BUDGET


@pytest.mark.parametrize("make", SECRETS.values(), ids=SECRETS)
def test_secrets_are_taken_out_in_linear_time(make: Text) -> None:
    assert_linear(redact_secrets, make, 64 * KiB)
