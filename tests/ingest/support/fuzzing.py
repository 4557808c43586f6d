"""Many bodies on the way of a post, without HTTP: read, normalised, compiled for every channel, many admitted.

Run it as a separate process, so that its memory can be measured: ``python -m ingest.support.fuzzing DATABASE_URL SEED
BODIES`` writes the verdicts to standard output. Anything but a verdict or a refusal ends it, with the body that caused
it.
"""

import asyncio
import sys
from collections import Counter
from hashlib import sha256

import msgspec
from autopost_contracts.subjects import Topology
from autopost_ingest.errors import InvalidPost
from autopost_ingest.gateway import Endpoint, Gateway
from autopost_ingest.posts.compile import compile_for
from autopost_ingest.posts.enqueue import Enqueuer
from autopost_ingest.posts.normalize import normalize
from autopost_ingest.posts.stored_media import StoredMedia
from autopost_ingest.request.post_request import read_post
from autopost_runtime.config.load import ServiceConfig
from autopost_runtime.http.web import HttpProblem, respond
from autopost_runtime.postgres.pool import open_database
from ingest.support.ingest_client import DEMO, Ear
from ingest.support.memory import peak_memory
from ingest.support.mutations import Mutator
from msgspec import Struct

AT_ONCE = 200
ADMITTED = 4
"""One in so many of those that are accepted goes into the database; all are compiled."""


class Found(Struct):
    outcomes: dict[str, int]
    peak: int
    """In bytes."""


class Path:
    def __init__(self, gateway: Gateway, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._accepted = 0
        self._stored_media = StoredMedia(gateway)
        self._enqueuer = Enqueuer(gateway, Ear(), Topology(), audit_deduped=False, staged=asyncio.Event())  # type: ignore[arg-type]

    async def outcome(self, body: bytes) -> str:
        try:
            return await self._outcome(body)
        except Exception as exc:
            exc.add_note(f"the body was {body!r}")
            raise

    async def _outcome(self, body: bytes) -> str:
        if len(body) > self._endpoint.max_payload_bytes:
            return "too large"
        try:
            post = read_post(body)
            normalized = await self._stored_media.look_up(self._endpoint.workspace_id, normalize(post))
        except HttpProblem as problem:
            assert respond(problem).status == 400
            return "unreadable"
        except InvalidPost as refused:
            assert respond(HttpProblem(422, "Unprocessable Content", refused.reason, field=refused.field)).body
            return "unprocessable"
        self._accepted += 1
        profiles = self._enqueuer.profiles.known(self._endpoint.workspace_id)
        if profiles and self._accepted % ADMITTED:
            compile_for(normalized, profiles)
            return "compiled"
        return (await self._enqueuer.enqueue(self._endpoint, post, normalized)).verdict


async def fuzz(url: str, seed: int, count: int) -> Found:
    config = ServiceConfig(database_url=url, database_role="autopost_ingest")
    mutator, outcomes = Mutator(seed), Counter[str]()
    async with open_database(config, "ingest") as database:
        gateway = Gateway(database)
        endpoint = await gateway.resolve_endpoint("webhook_push", sha256(DEMO.encode()).hexdigest())
        assert endpoint is not None
        path = Path(gateway, endpoint)
        while (left := count - outcomes.total()) > 0:
            bodies = [mutator.body() for _ in range(min(left, AT_ONCE))]
            outcomes.update(await asyncio.gather(*map(path.outcome, bodies)))
    return Found(outcomes=dict(outcomes), peak=peak_memory("self"))


if __name__ == "__main__":
    found = asyncio.run(fuzz(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
    sys.stdout.buffer.write(msgspec.json.encode(found))
