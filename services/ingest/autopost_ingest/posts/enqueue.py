"""Enqueue a normalised post: one database call decides and stores everything, then the dispatchers are woken."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any, Protocol, TypeVar

import msgspec
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.payload import Content, PostRequest
from autopost_contracts.plan import Profile
from autopost_contracts.subjects import Topology
from autopost_runtime.nats.bus import Bus
from autopost_runtime.postgres.identity import new_id_text
from autopost_runtime.telemetry import tracing as telemetry
from msgspec.structs import replace

from autopost_ingest.admission.batching import AdmissionBatcher
from autopost_ingest.errors import InvalidPost
from autopost_ingest.gateway import Endpoint, Gateway, Push, Verdict
from autopost_ingest.posts.compile import KnownProfiles
from autopost_ingest.posts.normalize import HASH_VERSION, NORMALIZATION_VERSION, Normalized
from autopost_ingest.posts.offload import Offload


class Decision(Protocol):
    """The database's decision about a post with its renderings."""

    @property
    def verdict(self) -> str: ...

    @property
    def missing_profiles(self) -> tuple[Profile, ...]: ...


AnyDecision = TypeVar("AnyDecision", bound=Decision)

Admit = Callable[[Push], Awaitable[Verdict]]

_encode_sorted = msgspec.json.Encoder(order="sorted").encode

ATTEMPTS = 3
"""Calls for one post, when the database names profiles without a rendering."""


class ProfilesUnsettled(Exception):  # noqa: N818  named for what happened
    """Channels kept changing while the post was compiled; nothing was stored."""


class Enqueuer:
    """``staged`` is set after a post was staged. Without it nothing fetches media, and media by URL is refused."""

    def __init__(
        self,
        gateway: Gateway,
        bus: Bus,
        topology: Topology,
        *,
        audit_deduped: bool,
        staged: asyncio.Event | None = None,
        offload: Offload | None = None,
    ) -> None:
        self.offload = offload or Offload()
        self._batcher = AdmissionBatcher(gateway, audit_deduped=audit_deduped)
        self._bus = bus
        self._wakeup_of = lru_cache(topology.wakeup_dispatch)
        self.audit_deduped = audit_deduped
        self._staged = staged
        self.profiles = KnownProfiles()

    async def enqueue(
        self, endpoint: Endpoint, request: PostRequest, normalized: Normalized, admit: Admit | None = None
    ) -> Verdict:
        """``admit`` stands in for the batched admission, where the call is another one."""
        if telemetry.exporting():
            with telemetry.tracer().start_as_current_span("enqueue") as span:
                span.set_attribute("autopost.workspace_id", str(endpoint.workspace_id))
                verdict = await self._take(endpoint, request, normalized, admit)
                span.set_attribute("autopost.verdict", verdict.verdict)
        else:
            verdict = await self._take(endpoint, request, normalized, admit)
        if verdict.enqueued:
            self.wake_dispatchers(endpoint.workspace_id)
        return verdict

    def _take(
        self, endpoint: Endpoint, request: PostRequest, normalized: Normalized, admit: Admit | None
    ) -> Awaitable[Verdict]:
        admit = admit or partial(self._batcher.admit, endpoint)
        media = normalized.content.media
        if media and any(medium.url is not None for medium in media):
            return self._stage(request, normalized, admit)
        return self._admit(endpoint.workspace_id, request, normalized, admit)

    def _admit(
        self, workspace: WorkspaceId, request: PostRequest, normalized: Normalized, admit: Admit
    ) -> Awaitable[Verdict]:
        payload_hash = payload_hash_of(request)

        def ask(post: dict[str, Any], again: bool) -> Awaitable[Verdict]:
            return admit(Push(post=encoded(post), payload_hash=payload_hash, past_gate=again))

        return self.with_renderings(workspace, request, normalized, ask)

    async def _stage(self, request: PostRequest, normalized: Normalized, admit: Admit) -> Verdict:
        """Store the whole request; the post is created from it when its media is fetched."""
        if self._staged is None:
            place = next(place for place, medium in enumerate(normalized.content.media) if medium.url is not None)
            raise InvalidPost(
                f"media[{place}].url", "fetching media by URL is not configured on this server; send a blob_ref"
            )
        post = post_of(request, normalized) | {"request": msgspec.to_builtins(request)}
        push = Push(post=encoded(post), payload_hash=payload_hash_of(request))
        verdict = await admit(push)
        self._staged.set()
        return verdict

    def wake_dispatchers(self, workspace: WorkspaceId) -> None:
        self._bus.wake(self._wakeup_of(workspace))

    async def with_renderings(
        self,
        workspace: WorkspaceId,
        request: PostRequest,
        normalized: Normalized,
        ask: Callable[[dict[str, Any], bool], Awaitable[AnyDecision]],
    ) -> AnyDecision:
        """Call ``ask`` until every profile has a rendering. Its second argument is true for a repeated call."""
        post = post_of(request, normalized)
        post["renderings"] = await self.offload.render(workspace, normalized, self.profiles.known(workspace))
        for turn in range(ATTEMPTS):
            verdict = await ask(post, turn > 0)
            if verdict.verdict != "missing_profiles":
                return verdict
            self.profiles.learn(workspace, verdict.missing_profiles)
            post["renderings"] += await self.offload.render(workspace, normalized, verdict.missing_profiles)
        raise ProfilesUnsettled


def payload_hash_of(request: PostRequest) -> str:
    """The same for two bodies with equal fields."""
    return sha256(_encode_sorted(request)).hexdigest()


def encoded(post: dict[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(post))


def post_of(request: PostRequest, normalized: Normalized) -> dict[str, Any]:
    """The post document for the database, without renderings. Empty fields are left out."""
    source: dict[str, Any] = {"kind": "push"}
    if request.meta is not None:
        source["meta"] = request.meta
    if request.workspace_id is not None:
        source["workspace_hint"] = request.workspace_id
    trace_id, traceparent = telemetry.current_ids()
    post = content_fields(request, normalized) | {
        "source": source,
        "run_id": new_id_text(),
        "trace_id": trace_id,
        "traceparent": traceparent,
    }
    if request.source_ref is not None:
        post["source_ref"] = request.source_ref
    if request.scheduled_for is not None:
        post["scheduled_for"] = request.scheduled_for
    return post


def content_fields(request: PostRequest, normalized: Normalized) -> dict[str, Any]:
    """What a post says and where it goes: the same for a request and for an item of a source."""
    fields: dict[str, Any] = {
        "content_hash": normalized.content_hash,
        "hash_version": HASH_VERSION,
        "normalization_version": NORMALIZATION_VERSION,
        "payload": stored(normalized.content),
    }
    if normalized.tags:
        fields["tags"] = normalized.tags
    if request.routing.channels or normalized.channel_tags:
        fields["routing"] = {"channels": request.routing.channels, "channel_tags": normalized.channel_tags}
    return fields


def stored(content: Content) -> Content | dict[str, Any]:
    """The content as stored: always with its type; fetched media only with its ``blob_ref``."""
    if content.type != "text":
        return replace(
            content, media=tuple(replace(each, url=None) if each.blob_ref else each for each in content.media)
        )
    fields: dict[str, Any] = {"type": content.type, "text": content.text}
    if content.parse_mode or content.links or content.buttons or not content.text:
        fields |= {"parse_mode": content.parse_mode, "links": content.links, "buttons": content.buttons}
        return {name: value for name, value in fields.items() if value}
    return fields
