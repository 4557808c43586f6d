"""The answers of ingest as its callers read them, for the OpenAPI document. That of a dry run is ``DryRun`` itself."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from msgspec import Struct

from autopost_ingest.dry_run import Counts


class Answer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nothing is answered that is not named here."""


class Accepted(Answer, frozen=True, kw_only=True):
    status: Literal["accepted"]
    message_id: UUID
    run_id: UUID
    new: bool
    """False where this content was posted before."""
    channels: Counts
    trace_id: str | None


class Staged(Answer, frozen=True, kw_only=True):
    """Taken in; its message is made when its media has been fetched."""

    status: Literal["staged"]
    post_id: UUID
    run_id: UUID
    message_id: None
    trace_id: str | None


class Duplicate(Answer, frozen=True, kw_only=True):
    status: Literal["duplicate"]
    of: Literal["source_ref", "payload"]
    run_id: UUID | None
    """Of the request that it repeats."""
    post_id: UUID | None
    """Of that request, where its media had to be fetched: ``GET /v1/posts/{post_id}`` tells what became of it."""
    trace_id: str | None


class PostState(Answer, frozen=True, kw_only=True):
    status: Literal["staged", "enqueued", "failed"]
    post_id: UUID
    run_id: UUID
    trace_id: str | None
    message_id: UUID | None
    attempt: int
    accepted_at: datetime
    next_attempt_at: datetime | None
    finished_at: datetime | None
    error: dict[str, Any] | None
    channels: Counts | None = None


class Update(Answer, frozen=True, kw_only=True):
    status: Literal["stored", "duplicate"]


class Refusal(Answer, frozen=True, kw_only=True):
    """problem+json."""

    type: Literal["about:blank"]
    title: str
    status: int
    detail: str | None = None
    field: str | None = None
    trace_id: str | None = None
