"""The answer to a dry run."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from autopost_contracts.plan import Plan, Problem
from msgspec import Struct

from autopost_ingest.gateway import Repeated, Twin
from autopost_ingest.posts.warnings import PostWarning, ProblemGroup

Verdict = Literal["accepted", "refused", "duplicate", "rate_limited"]
Outcome = Literal["enqueued", "deduped", "validation_failed", "not_routed"]


class Route(Struct, frozen=True, kw_only=True):
    routed: bool
    reasons: tuple[str, ...]


class Dedup(Struct, frozen=True, kw_only=True):
    """``known`` is false when the media was skipped, so the content could not be compared."""

    known: bool
    twin: Twin | None
    """The delivery that suppresses this one; ``until`` is null while it is in flight."""


class Timing(Struct, frozen=True, kw_only=True):
    earliest: datetime | None
    """``None``: never with the current settings of the channel."""
    waits: tuple[str, ...]


class ChannelDecision(Struct, frozen=True, kw_only=True):
    channel_id: UUID
    platform: str
    title: str | None
    outcome: Outcome
    route: Route
    dedup: Dedup
    timing: Timing
    profile: str | None
    """Key of its plan in ``plans``; ``None`` when not routed."""
    plan_hash: str | None


class PlanPreview(Struct, frozen=True, kw_only=True):
    """Result of one render profile: a plan, or the problems that prevent it."""

    plan_hash: str | None
    plan: Plan | None
    problems: tuple[Problem, ...]
    template_version: int | None


class ChannelCounts(Struct, frozen=True, kw_only=True):
    routed: int
    enqueued: int
    deduped: int
    validation_failed: int


class Refused(Struct, frozen=True, kw_only=True):
    """The answer to a post that reaches no channel."""

    status: Literal[422, 503]
    code: Literal["no_channel", "no_channel_enabled", "validation_failed"]
    detail: str


class DryRun(Struct, frozen=True, kw_only=True):
    """The answer to ``POST /v1/posts?dry_run=1``."""

    status: Literal["dry_run"] = "dry_run"
    verdict: Verdict
    reason: str
    duplicate_of: Repeated | None
    retry_after_ms: int | None
    content_hash: str | None
    message_id: UUID | None
    """Message of the same content, posted before."""
    counts: ChannelCounts
    channels: tuple[ChannelDecision, ...]
    plans: dict[str, PlanPreview]
    problems: tuple[ProblemGroup, ...]
    """Why channels would not get it; with the verdict ``refused``, why none would."""
    refusal: Refused | None
    warnings: tuple[PostWarning, ...]
    trace_id: str | None = None
