"""Turn a staged post into deliveries: with its media fetched, or with URLs that the platforms fetch themselves."""

from collections.abc import Sequence
from typing import Any

from autopost_contracts.ids import WorkspaceId
from autopost_contracts.payload import PostRequest
from autopost_contracts.plan import Profile

from autopost_ingest.posts.compile import needs_upload
from autopost_ingest.posts.enqueue import ATTEMPTS, Enqueuer, ProfilesUnsettled, post_of
from autopost_ingest.posts.normalize import Normalized
from autopost_ingest.posts.offload import Rendering
from autopost_ingest.staging.gateway import FinishResult, StagedGateway, StagedPost


class Finisher:
    """Every write checks the lease in its transaction."""

    def __init__(self, gateway: StagedGateway, enqueuer: Enqueuer) -> None:
        self._gateway = gateway
        self._enqueuer = enqueuer

    async def finish(
        self, staged: StagedPost, request: PostRequest, normalized: Normalized, lost: Sequence[dict[str, Any]] = ()
    ) -> FinishResult:
        """``normalized`` has its media; ``lost`` are the missing media, each in the form of its event."""

        async def finish(post: dict[str, Any], _: bool) -> FinishResult:
            return await self._gateway.finish_staged_post(
                staged, post, audit_deduped=self._enqueuer.audit_deduped, lost=lost
            )

        finished = await self._enqueuer.with_renderings(staged.workspace_id, request, normalized, finish)
        self._wake_dispatchers(staged.workspace_id, finished)
        return finished

    async def finish_by_url(
        self, staged: StagedPost, request: PostRequest, normalized: Normalized
    ) -> FinishResult | None:
        """Without fetching. ``None`` when a channel needs the bytes: nothing was written.

        A profile that needs the bytes gets no rendering, so the database names it if the post is routed there.
        """
        if any(medium.url is not None and medium.type != "image" for medium in normalized.content.media):
            return None
        post = post_of(request, normalized) | {"renderings": []}
        workspace = staged.workspace_id
        profiles = self._enqueuer.profiles.known(workspace)
        for _ in range(ATTEMPTS + 1):
            post["renderings"] += await self._renderings_by_url(workspace, normalized, profiles)
            finished = await self._gateway.finish_staged_post(staged, post, audit_deduped=self._enqueuer.audit_deduped)
            if finished.verdict != "missing_profiles":
                self._wake_dispatchers(workspace, finished)
                return finished
            profiles = finished.missing_profiles
            self._enqueuer.profiles.learn(workspace, profiles)
            if await self._needing_upload(workspace, normalized, profiles):
                return None
        raise ProfilesUnsettled

    async def _renderings_by_url(
        self, workspace: WorkspaceId, normalized: Normalized, profiles: tuple[Profile, ...]
    ) -> list[Rendering]:
        needing = await self._needing_upload(workspace, normalized, profiles)
        by_url = tuple(profile for profile in profiles if profile.profile_hash not in needing)
        return await self._enqueuer.offload.render(workspace, normalized, by_url)

    async def _needing_upload(
        self, workspace: WorkspaceId, normalized: Normalized, profiles: tuple[Profile, ...]
    ) -> set[str]:
        made = await self._enqueuer.offload.compile(workspace, normalized, profiles)
        return {each.profile_hash for each in made if needs_upload(each.problems)}

    def _wake_dispatchers(self, workspace: WorkspaceId, finished: FinishResult) -> None:
        if finished.enqueued:
            self._enqueuer.wake_dispatchers(workspace)
