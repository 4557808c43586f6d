"""Enqueue a normalised post: one database call decides and stores everything, then the dispatcher is woken."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, TypeVar

import msgspec
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.payload import Content, PostRequest
from autopost_contracts.subjects import Topology
from autopost_runtime import telemetry
from autopost_runtime.identity import new_id_text
from autopost_runtime.jetstream import Bus

from autopost_ingest.compile import Profiles, compile_for
from autopost_ingest.gateway import Endpoint, Gateway, Push, Verdict
from autopost_ingest.normalize import HASH_VERSION, NORMALIZATION_VERSION, Normalized, Refused
from autopost_ingest.staged_gateway import Finished, StagedGateway, StagedPost
from autopost_ingest.together import Together

Answer = TypeVar("Answer", Verdict, Finished)

_encode_sorted = msgspec.json.Encoder(order="sorted").encode

ROUNDS = 3
"""How often a post is offered when profiles appear that it was not compiled for."""


class ProfilesUnsettled(Exception):  # noqa: N818  named for what happened
    """Channels kept changing while the post was compiled; nothing was written."""


class Enqueuer:
    """``staged`` is set after a post was staged; without it nobody fetches, and media by URL is refused."""

    def __init__(
        self,
        gateway: Gateway,
        bus: Bus,
        topology: Topology,
        *,
        audit_deduped: bool,
        staged: asyncio.Event | None = None,
    ) -> None:
        self._together = Together(gateway, audit_deduped=audit_deduped)
        self._bus = bus
        self._wakeup_of = lru_cache(topology.wakeup_dispatch)
        self._audit_deduped = audit_deduped
        self._staged = staged
        self._profiles = Profiles()

    async def enqueue(self, endpoint: Endpoint, request: PostRequest, normalized: Normalized) -> Verdict:
        if telemetry.exporting():
            with telemetry.tracer().start_as_current_span("enqueue_messages_and_deliveries") as span:
                span.set_attribute("autopost.workspace_id", str(endpoint.workspace_id))
                verdict = await self._take(endpoint, request, normalized)
                span.set_attribute("autopost.verdict", verdict.verdict)
        else:
            verdict = await self._take(endpoint, request, normalized)
        if verdict.enqueued:
            self._bus.wake(self._wakeup_of(endpoint.workspace_id))
        return verdict

    def _take(self, endpoint: Endpoint, request: PostRequest, normalized: Normalized) -> Awaitable[Verdict]:
        media = normalized.content.media
        if media and any(medium.url is not None for medium in media):
            return self._stage(endpoint, request, normalized)
        return self._admit(endpoint, request, normalized)

    def _admit(self, endpoint: Endpoint, request: PostRequest, normalized: Normalized) -> Awaitable[Verdict]:
        payload_hash = payload_hash_of(request)

        def admit(post: dict[str, Any], again: bool) -> Awaitable[Verdict]:
            return self._together.admit(endpoint, Push(post=encoded(post), payload_hash=payload_hash, past_gate=again))

        return self._compiled(endpoint.workspace_id, request, normalized, admit)

    async def _stage(self, endpoint: Endpoint, request: PostRequest, normalized: Normalized) -> Verdict:
        """The whole request is kept: the post is made from it once its media is known."""
        if self._staged is None:
            place = next(place for place, medium in enumerate(normalized.content.media) if medium.url is not None)
            raise Refused(f"media[{place}].url", "media is not fetched here; name stored media by blob_ref")
        post = post_of(request, normalized) | {"request": msgspec.to_builtins(request)}
        push = Push(post=encoded(post), payload_hash=payload_hash_of(request))
        verdict = await self._together.admit(endpoint, push)
        self._staged.set()
        return verdict

    async def finish(
        self,
        gateway: StagedGateway,
        staged: StagedPost,
        request: PostRequest,
        normalized: Normalized,
        lost: Sequence[dict[str, Any]] = (),
    ) -> Finished:
        """A staged post, now that its media is known; the transaction checks that it is still ours."""

        async def finish(post: dict[str, Any], _: bool) -> Finished:
            return await gateway.finish_staged_post(staged, post, audit_deduped=self._audit_deduped, lost=lost)

        finished = await self._compiled(staged.workspace_id, request, normalized, finish)
        if finished.enqueued:
            self._bus.wake(self._wakeup_of(staged.workspace_id))
        return finished

    async def _compiled(
        self,
        workspace: WorkspaceId,
        request: PostRequest,
        normalized: Normalized,
        ask: Callable[[dict[str, Any], bool], Awaitable[Answer]],
    ) -> Answer:
        """Asks with a rendering for every profile; ``ask`` is told whether it was asked before."""
        post = post_of(request, normalized)
        post["renderings"] = compile_for(normalized, self._profiles.known(workspace))
        for turn in range(ROUNDS):
            verdict = await ask(post, turn > 0)
            if verdict.verdict != "missing_profiles":
                return verdict
            self._profiles.learn(workspace, verdict.missing_profiles)
            post["renderings"] += compile_for(normalized, verdict.missing_profiles)
        raise ProfilesUnsettled


def payload_hash_of(request: PostRequest) -> str:
    """The same for two bodies that say the same."""
    return sha256(_encode_sorted(request)).hexdigest()


def encoded(post: dict[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(post))


def post_of(request: PostRequest, normalized: Normalized) -> dict[str, Any]:
    """As the database takes it, without renderings. What a post does not have is not said: most have little."""
    source: dict[str, Any] = {"kind": "push"}
    if request.meta is not None:
        source["meta"] = request.meta
    if request.workspace_id is not None:
        source["workspace_hint"] = request.workspace_id
    trace_id, traceparent = telemetry.current_ids()
    post = {
        "content_hash": normalized.content_hash,
        "hash_version": HASH_VERSION,
        "normalization_version": NORMALIZATION_VERSION,
        "payload": stored(normalized.content),
        "source": source,
        "run_id": new_id_text(),
        "trace_id": trace_id,
        "traceparent": traceparent,
    }
    if normalized.tags:
        post["tags"] = normalized.tags
    if request.routing.channels or normalized.channel_tags:
        post["routing"] = {"channels": request.routing.channels, "channel_tags": normalized.channel_tags}
    if request.source_ref is not None:
        post["source_ref"] = request.source_ref
    if request.scheduled_for is not None:
        post["scheduled_for"] = request.scheduled_for
    return post


def stored(content: Content) -> Content | dict[str, Any]:
    """It always says its type, which among defaults would be left out."""
    if content.type != "text":
        return content
    said: dict[str, Any] = {"type": content.type, "text": content.text}
    if content.parse_mode or content.links or content.buttons or not content.text:
        said |= {"parse_mode": content.parse_mode, "links": content.links, "buttons": content.buttons}
        return {name: value for name, value in said.items() if value}
    return said
