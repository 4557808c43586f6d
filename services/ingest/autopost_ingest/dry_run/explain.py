"""Explain to a sender what became of a post: why it reaches nobody, or what to know about a post that was accepted.

The database has decided by then. What is said here comes from a dry run of the same post, so both use the same words;
ordinary posts need none.
"""

from collections.abc import Sequence
from datetime import timedelta

from autopost_contracts.ids import WorkspaceId
from autopost_contracts.payload import PostRequest
from autopost_runtime.http.endpoint_cache import TtlCache
from autopost_runtime.http.web import HttpProblem
from msgspec import Struct

from autopost_ingest.dry_run.answer import DryRun, Refused
from autopost_ingest.dry_run.dry_run import DryRunner
from autopost_ingest.errors import log_background_error
from autopost_ingest.gateway import Endpoint, Gateway, RoutingFacts, Verdict
from autopost_ingest.posts.normalize import Normalized
from autopost_ingest.posts.schedule import is_late, late
from autopost_ingest.posts.warnings import PostWarning, ProblemGroup, TagWarning, unused_tags

FACTS_TTL = timedelta(seconds=10)
"""Warnings may be a little behind; decisions are not made from these facts."""
RETRY_WHEN_DISABLED = "60"
TITLES = {422: "Unprocessable Content", 503: "Service Unavailable"}


class Reach(Struct, frozen=True, kw_only=True):
    refusal: Refused | None = None
    problems: tuple[ProblemGroup, ...] = ()
    warnings: tuple[PostWarning, ...] = ()


class Explainer:
    def __init__(self, dry_runner: DryRunner, gateway: Gateway) -> None:
        self._dry_runner = dry_runner
        self._facts: TtlCache[WorkspaceId, RoutingFacts] = TtlCache(gateway.routing_facts, FACTS_TTL)

    async def check(self, endpoint: Endpoint, request: PostRequest, normalized: Normalized) -> None:
        """Refuse what enqueueing would not: a post that is late, and one that no channel could show even once its media
        is fetched. A repetition is left to enqueueing, which drops it. Raises ``InvalidPost`` or ``HttpProblem``."""
        waits_for_media = any(medium.url is not None for medium in normalized.content.media)
        if not waits_for_media and not is_late(request):
            return
        found = await self._dry_runner.explain(endpoint, request, normalized)
        if found.duplicate_of is not None:
            return
        if is_late(request):
            raise late(request)
        if found.refusal is not None and found.refusal.code == "validation_failed":
            raise unreachable(_reach(found))

    async def explain(
        self, endpoint: Endpoint, request: PostRequest, normalized: Normalized, verdict: Verdict
    ) -> Reach:
        match verdict.verdict:
            case "refused":
                return _reach(await self._dry_runner.explain(endpoint, request, normalized))
            case "accepted":
                return await self._warnings(endpoint, request, normalized, verdict)
            case _:
                return Reach()

    async def _warnings(
        self, endpoint: Endpoint, request: PostRequest, normalized: Normalized, verdict: Verdict
    ) -> Reach:
        """The post is stored, so a failure here costs only the warnings."""
        try:
            facts = await self._facts.get(endpoint.workspace_id)
            if verdict.validation_failed or 0 < verdict.enqueued <= facts.closed:
                return _reach(await self._dry_runner.explain(endpoint, request, normalized, is_stored=True))
            return Reach(warnings=unused_tags(normalized.tags, facts.filter_tags))
        except Exception as exc:
            log_background_error(exc, "receive.no_warnings")
            return Reach()


def unreachable(reach: Reach, verdict: Verdict | None = None) -> HttpProblem:
    """The answer to a post that reaches nobody."""
    refusal = reach.refusal
    if refusal is None:  # a channel was changed after the post was refused
        return HttpProblem(503, TITLES[503], "channels are being changed, retry later", headers={"Retry-After": "1"})
    stored = {} if verdict is None else {"run_id": verdict.run_id, "channels": verdict.counts}
    return HttpProblem(
        refusal.status,
        TITLES[refusal.status],
        refusal.detail,
        headers={"Retry-After": RETRY_WHEN_DISABLED} if refusal.status == 503 else None,
        more={"code": refusal.code, "problems": reach.problems, **stored},
    )


def _reach(found: DryRun) -> Reach:
    """Without the warning about tags, which the database has given already."""
    return Reach(refusal=found.refusal, problems=found.problems, warnings=_others(found.warnings))


def _others(warnings: Sequence[PostWarning]) -> tuple[PostWarning, ...]:
    return tuple(warning for warning in warnings if not isinstance(warning, TagWarning))
