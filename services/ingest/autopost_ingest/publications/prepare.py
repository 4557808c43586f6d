"""Compile the creative of a publication for its channel: the same way, whoever asks.

A preview, an approval and the sending show one plan: its hash is what is approved.
"""

from typing import Any

import msgspec
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.plan import Profile
from msgspec import Raw, Struct

from autopost_ingest.errors import InvalidPost
from autopost_ingest.posts.enqueue import content_fields
from autopost_ingest.posts.normalize import HASH_VERSION
from autopost_ingest.posts.offload import Offload
from autopost_ingest.posts.stored_media import StoredMedia
from autopost_ingest.publications.creative import CreativeDraft, request_of
from autopost_ingest.publications.gateway import Prepared


class CompiledCreative(Struct, frozen=True, kw_only=True):
    """The post document with the one rendering of its channel."""

    post: dict[str, Any]
    plan_hash: str | None
    problems: tuple[dict[str, Any], ...]

    @property
    def approval(self) -> dict[str, Any]:
        return {
            "plan_hash": self.plan_hash,
            "hash_version": HASH_VERSION,
            "content_hash": self.post["content_hash"],
        }


class CreativeCompiler:
    """What can be no post, or has a file that is not stored, has no plan: its problem names the field."""

    def __init__(self, offload: Offload, stored_media: StoredMedia) -> None:
        self._offload = offload
        self._stored_media = stored_media

    async def compile(self, workspace: WorkspaceId, prepared: Prepared) -> CompiledCreative:
        if prepared.profile is None:
            raise LookupError("the channel of a publication is gone")
        try:
            return await self._compile(workspace, prepared, prepared.profile)
        except InvalidPost as exc:
            return _invalid(prepared, exc)

    async def _compile(self, workspace: WorkspaceId, prepared: Prepared, profile: Profile) -> CompiledCreative:
        request = request_of(msgspec.convert(prepared.publication.creative_draft, CreativeDraft))
        normalized = await self._offload.normalize(workspace, request)
        normalized = await self._stored_media.look_up(workspace, normalized)
        [made] = await self._offload.render(workspace, normalized, (profile,))
        rendering = msgspec.json.decode(made) if isinstance(made, Raw) else msgspec.to_builtins(made)
        post = content_fields(request, normalized) | {
            "trace_id": prepared.publication.trace_id,
            "renderings": [rendering],
        }
        return CompiledCreative(
            post=post, plan_hash=rendering.get("plan_hash"), problems=tuple(rendering.get("problems", ()))
        )


def _invalid(prepared: Prepared, exc: InvalidPost) -> CompiledCreative:
    problem = {"code": "invalid", "field": exc.field.removeprefix("creative_draft."), "message": exc.reason}
    post = {
        "content_hash": f"invalid:{prepared.publication.document['publication_id']}",
        "hash_version": 0,
        "payload": {},
        "renderings": [{"problems": [problem]}],
    }
    return CompiledCreative(post=post, plan_hash=None, problems=(problem,))
