"""The bodies and parameters of requests about publications."""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

import msgspec
from aiohttp import web
from autopost_contracts.ids import ChannelId, PublicationId
from autopost_contracts.payload import EARLIEST, LATEST, Moment, PostButton
from autopost_runtime.config.suggestions import suggest
from autopost_runtime.http.problem import HttpProblem
from autopost_runtime.http.strict_json import HINT, check_json
from autopost_runtime.secrets.redaction import quoted, redact
from msgspec import UNSET, Meta, Struct, UnsetType

from autopost_ingest.errors import InvalidPost
from autopost_ingest.posts.offload import SMALL_VALUES, is_quickly_read
from autopost_ingest.publications.creative import CreativeDraft, CreativeMedia, media_kind, request_of
from autopost_ingest.publications.owner import check_owner
from autopost_ingest.publications.times import zone_named
from autopost_ingest.request.unreadable import UNREADABLE, Objects, unreadable

LONGEST_BODY = 64 * 1024
"""A creative is small. Such a body is read in a few milliseconds, so it needs no worker process."""
MOST_LISTED = 100
STATUSES = ("draft", "approved", "scheduled", "publishing", "published", "paused", "failed", "cancelled")
LONGEST_LATENESS = timedelta(days=366)

Reason = Annotated[str, Meta(min_length=1, max_length=500, description="Why; recorded in the event.")]
Zone = Annotated[str, Meta(min_length=1, max_length=64, description="An IANA time zone, like Europe/Moscow.")]
Hint = Annotated[Any, Meta(description="Ignored: the endpoint alone decides the workspace.")]

Body = TypeVar("Body", bound=Struct)
Value = TypeVar("Value")


class PublicationRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A publication as it is drafted or edited. An edit keeps optional fields that it leaves out."""

    channel_id: UUID
    creative_draft: CreativeDraft
    owner: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=256,
                description="Who is told when it is paused or failed: telegram:<chat>, mailto:…, https://… or a name.",
            ),
        ]
        | UnsetType
        | None
    ) = UNSET
    timezone: Zone | UnsetType | None = UNSET
    late_after: (
        Annotated[timedelta, Meta(description="ISO 8601, like PT24H: how late it may still go out; then it is paused.")]
        | UnsetType
    ) = UNSET
    workspace_id: Hint = None

    def fields(self) -> dict[str, Any]:
        """For the database. Raises ``InvalidPost``."""
        request_of(self.creative_draft)
        if isinstance(self.owner, str):
            check_owner(self.owner)
        if isinstance(self.timezone, str):
            zone_named(self.timezone)
        if isinstance(self.late_after, timedelta) and not timedelta(seconds=1) <= self.late_after <= LONGEST_LATENESS:
            raise InvalidPost("late_after", "must be from PT1S to P366D")
        given: dict[str, Any] = msgspec.to_builtins(self)
        given.pop(HINT)
        return given | {"media_type": media_kind(self.creative_draft)}


class ApproveRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    plan_hash: Annotated[str, Meta(max_length=64)] | None = None
    """Of the preview that was looked at; another plan is refused."""
    workspace_id: Hint = None


class ScheduleRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Has exactly one of ``at`` and ``local``."""

    at: Moment | None = None
    local: Annotated[str, Meta(max_length=40, description="Like 2026-12-01T09:00, in timezone.")] | None = None
    timezone: Zone | None = None
    """Needed with ``local``. With ``at`` it is only for display; without it the publication keeps the one it has."""
    workspace_id: Hint = None


class ReasonRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: Reason
    workspace_id: Hint = None


class ResolveRequest(ReasonRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    decision: Literal["sent", "resend"]
    """``sent``: the message is in the channel. ``resend``: it is not, send it again."""
    provider_message_id: Annotated[str, Meta(min_length=1, max_length=64)] | None = None


class EmptyRequest(Struct, frozen=True, forbid_unknown_fields=True):
    workspace_id: Hint = None


class Filter(Struct, frozen=True, kw_only=True):
    begin: datetime | None = None
    end: datetime | None = None
    statuses: list[str] | None = None
    channel: ChannelId | None = None
    after: PublicationId | None = None
    limit: int = MOST_LISTED


FILTERS = ("from", "to", "status", "channel", "after", "limit")

_INSIDE: Objects = {
    "creative_draft": CreativeDraft,
    "creative_draft.media": CreativeMedia,
    "creative_draft.buttons": PostButton,
}


def read_body(body: bytes, shape: type[Body]) -> Body:
    """Raises ``HttpProblem`` 400, naming the field. No body is an empty object."""
    body = body or b"{}"
    if not is_quickly_read(body):
        raise HttpProblem(400, "Bad Request", f"the body must not have more than {SMALL_VALUES} values")
    try:
        check_json(body)
        read: Body = _decoder(shape)(body)
        return read
    except UNREADABLE as exc:
        raise unreadable(exc, {"": shape, **_INSIDE}) from None


@cache
def _decoder(shape: type[Struct]) -> Callable[[bytes], Any]:
    return msgspec.json.Decoder(shape).decode


def reason_of(request: ReasonRequest) -> str:
    if not request.reason.strip():
        raise InvalidPost("reason", "must not be empty")
    return redact(request.reason)


def check_parameters(query: Mapping[str, str], known: Collection[str] = ()) -> None:
    """Unknown parameters are refused: ignoring them would look as if they took effect."""
    for name in query:
        if name not in known and name != HINT:
            words = f"unknown parameter; {suggest(name, known)}" if known else "this call has no parameters"
            raise HttpProblem(400, "Bad Request", words, field=quoted(name))


def read_filter(request: web.Request) -> Filter:
    query = request.query
    check_parameters(query, FILTERS)
    statuses = [status for status in query.get("status", "").split(",") if status]
    if unknown := next((status for status in statuses if status not in STATUSES), None):
        raise _bad("status", f"unknown status; {suggest(unknown, STATUSES)}")
    return Filter(
        begin=_moment(query, "from"),
        end=_moment(query, "to"),
        statuses=statuses or None,
        channel=_read(query, "channel", ChannelId, UUID, "must be a UUID"),
        after=_read(query, "after", PublicationId, UUID, "must be the id of a publication"),
        limit=_limit(query),
    )


def publication_id(request: web.Request) -> PublicationId | None:
    """``None`` for what can be none."""
    try:
        return PublicationId(UUID(request.match_info["publication_id"]))
    except ValueError:
        return None


def _limit(query: Mapping[str, str]) -> int:
    text = query.get("limit", str(MOST_LISTED))
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= MOST_LISTED):
        raise _bad("limit", f"must be a whole number from 1 to {MOST_LISTED}")
    return int(text)


def _moment(query: Mapping[str, str], name: str) -> datetime | None:
    text = query.get(name)
    if text is None:
        return None
    try:  # an unescaped + arrives as a space
        moment: datetime = msgspec.convert(text.strip().replace(" ", "+"), Moment)
    except msgspec.ValidationError:
        raise _bad(name, "must be a time with an offset, like 2026-12-01T09:00:00Z") from None
    return min(max(moment, EARLIEST), LATEST)


def _read(
    query: Mapping[str, str], name: str, make: Callable[[UUID], Value], read: Callable[[str], UUID], words: str
) -> Value | None:
    text = query.get(name)
    if text is None:
        return None
    try:
        return make(read(text))
    except ValueError:
        raise _bad(name, words) from None


def _bad(field: str, words: str) -> HttpProblem:
    return HttpProblem(400, "Bad Request", words, field=field)
