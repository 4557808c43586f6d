"""Response schemas of ingest for the OpenAPI document, except ``DryRun``."""

from typing import Literal
from uuid import UUID

from autopost_runtime.http.problem import Refusal
from msgspec import Struct

from autopost_ingest.dry_run.answer import ChannelCounts
from autopost_ingest.posts.warnings import PostWarning, ProblemGroup


class ApiResponse(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A response has no other fields."""


class Accepted(ApiResponse, frozen=True, kw_only=True):
    status: Literal["accepted"]
    message_id: UUID
    run_id: UUID
    new: bool
    """False if this content was posted before."""
    channels: ChannelCounts
    trace_id: str | None
    warnings: tuple[PostWarning, ...] = ()


class Staged(ApiResponse, frozen=True, kw_only=True):
    """Accepted; the message is created when its media has been fetched."""

    status: Literal["staged"]
    post_id: UUID
    run_id: UUID
    message_id: None
    trace_id: str | None
    warnings: tuple[PostWarning, ...] = ()


class Duplicate(ApiResponse, frozen=True, kw_only=True):
    status: Literal["duplicate"]
    of: Literal["source_ref", "payload"]
    run_id: UUID | None
    """Run of the earlier request."""
    post_id: UUID | None
    """The earlier request's post, if it was staged; see ``GET /v1/posts/{post_id}``."""
    trace_id: str | None


class PostRefusal(Refusal, kw_only=True, forbid_unknown_fields=True):
    """problem+json. A post that reaches no channel has ``code`` and ``problems``; it may be sent again, corrected, with
    the same ``source_ref``."""

    code: Literal["no_channel", "no_channel_enabled", "validation_failed"] | None = None
    problems: tuple[ProblemGroup, ...] = ()
    """Why no channel gets it, by cause."""
    run_id: UUID | None = None
    channels: ChannelCounts | None = None


class Update(ApiResponse, frozen=True, kw_only=True):
    status: Literal["stored", "duplicate"]
