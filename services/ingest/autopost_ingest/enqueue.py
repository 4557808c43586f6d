"""Enqueue a normalised post: one database call decides and stores everything, then the dispatcher is woken."""

from hashlib import sha256
from typing import Any

import asyncpg
import msgspec
from autopost_contracts.ids import RunId
from autopost_contracts.payload import PostRequest
from autopost_contracts.plan import Profile
from autopost_contracts.subjects import Topology
from autopost_runtime import telemetry
from autopost_runtime.identity import new_id
from autopost_runtime.jetstream import Bus

from autopost_ingest.compile import Profiles, compile_for
from autopost_ingest.gateway import Endpoint, Gateway, Verdict, profiles_changed
from autopost_ingest.normalize import HASH_VERSION, NORMALIZATION_VERSION, Normalized

ROUNDS = 3
"""How often a post is compiled anew when profiles appear that it was not compiled for."""


class ProfilesUnsettled(Exception):  # noqa: N818  named for what happened
    """Channels kept changing while the post was compiled; nothing was written."""


class Enqueuer:
    def __init__(self, gateway: Gateway, bus: Bus, topology: Topology, *, audit_deduped: bool) -> None:
        self._gateway = gateway
        self._bus = bus
        self._topology = topology
        self._audit_deduped = audit_deduped
        self._profiles = Profiles()

    async def enqueue(self, endpoint: Endpoint, request: PostRequest, normalized: Normalized) -> Verdict:
        with telemetry.tracer().start_as_current_span("enqueue_messages_and_deliveries") as span:
            span.set_attribute("autopost.workspace_id", str(endpoint.workspace_id))
            verdict = await self._admit(endpoint, request, normalized)
            span.set_attribute("autopost.verdict", verdict.verdict)
        if verdict.enqueued:
            self._bus.wake(self._topology.wakeup_dispatch(endpoint.workspace_id))
        return verdict

    async def _admit(self, endpoint: Endpoint, request: PostRequest, normalized: Normalized) -> Verdict:
        post = _post(request, normalized)
        payload_hash = sha256(msgspec.json.encode(request, order="sorted")).hexdigest()
        profiles = self._profiles.known(endpoint.workspace_id)
        past_gate = False
        for _ in range(ROUNDS):
            post["renderings"] = compile_for(normalized, profiles)
            try:
                verdict = await self._gateway.admit_post(
                    endpoint, post, payload_hash, audit_deduped=self._audit_deduped, past_gate=past_gate
                )
            except asyncpg.PostgresError as exc:
                if not profiles_changed(exc):
                    raise
                continue
            if verdict.verdict != "missing_profiles":
                return verdict
            past_gate = True
            profiles = self._learn(endpoint, verdict.missing_profiles)
        raise ProfilesUnsettled

    def _learn(self, endpoint: Endpoint, missing: tuple[Profile, ...]) -> tuple[Profile, ...]:
        self._profiles.learn(endpoint.workspace_id, missing)
        known = {profile.profile_hash: profile for profile in self._profiles.known(endpoint.workspace_id)}
        return tuple((known | {profile.profile_hash: profile for profile in missing}).values())


def _post(request: PostRequest, normalized: Normalized) -> dict[str, Any]:
    traceparent = telemetry.current_traceparent()
    source = {"kind": "push", "meta": request.meta, "workspace_hint": request.workspace_id}
    return {
        "content_hash": normalized.content_hash,
        "hash_version": HASH_VERSION,
        "normalization_version": NORMALIZATION_VERSION,
        "payload": msgspec.to_builtins(normalized.content) | {"type": normalized.content.type},
        "tags": normalized.tags,
        "routing": {"channels": request.routing.channels, "channel_tags": normalized.channel_tags},
        "source": {name: value for name, value in source.items() if value is not None},
        "source_ref": request.source_ref,
        "scheduled_for": request.scheduled_for,
        "run_id": RunId(new_id()),
        "trace_id": telemetry.trace_id_of(traceparent),
        "traceparent": traceparent,
    }
