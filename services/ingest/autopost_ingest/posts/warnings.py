"""Warnings in the response to an accepted post."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from uuid import UUID

from autopost_runtime.secrets.redaction import quoted
from msgspec import Struct

from autopost_ingest.posts.unclosed_marks import UnclosedMark


class TagWarning(Struct, frozen=True, kw_only=True, tag_field="code", tag="tag_mismatch"):
    """The content was posted before with other tags and is routed by those."""

    message: str = "this content was first posted with other tags; it is routed by first_tags, tags are ignored"
    first_tags: tuple[str, ...]
    tags: tuple[str, ...]


class MarkWarning(Struct, frozen=True, kw_only=True, tag_field="code", tag="unclosed_mark"):
    """A Markdown mark has no pair and is shown as text."""

    message: str
    field: str
    mark: str


class ChannelName(Struct, frozen=True, kw_only=True):
    channel_id: UUID
    title: str | None
    platform: str


class ProblemGroup(Struct, frozen=True, kw_only=True):
    """One cause for which channels do not get a post."""

    code: str
    field: str | None
    """The part of the request that it is about."""
    message: str
    """What is wrong."""
    change: str
    """What to change."""
    channel_count: int
    channels: tuple[ChannelName, ...]
    """The first twenty."""


class ChannelsWarning(Struct, frozen=True, kw_only=True, tag_field="code", tag="channels_failed"):
    """Some of the channels cannot show the post, and do not get it."""

    message: str
    problems: tuple[ProblemGroup, ...]


class UnusedTagsWarning(Struct, frozen=True, kw_only=True, tag_field="code", tag="unused_tags"):
    """No channel filters on any tag of the post."""

    message: str
    tags: tuple[str, ...]


class WindowWarning(Struct, frozen=True, kw_only=True, tag_field="code", tag="outside_windows"):
    """The posting windows of all its channels are closed."""

    message: str
    until: datetime | None
    """When the first one opens; ``None``: none ever does."""


PostWarning = TagWarning | MarkWarning | ChannelsWarning | UnusedTagsWarning | WindowWarning


def unused_tags(tags: Sequence[str], filter_tags: Collection[str]) -> tuple[UnusedTagsWarning, ...]:
    if not tags or not set(tags).isdisjoint(filter_tags):
        return ()
    listed = tuple(map(quoted, tags))
    said = f"no channel filters on {', '.join(listed[:5])}: the post goes to every channel without such a filter"
    return (UnusedTagsWarning(message=said, tags=listed),)


def tag_warnings(first_tags: Sequence[str] | None, tags: Sequence[str]) -> tuple[TagWarning, ...]:
    """``first_tags`` is ``None`` if the content is new or has the same tags."""
    if first_tags is None or tuple(first_tags) == tuple(tags):
        return ()
    return (TagWarning(first_tags=tuple(map(quoted, first_tags)), tags=tuple(map(quoted, tags))),)


def mark_warnings(found: Iterable[UnclosedMark]) -> tuple[MarkWarning, ...]:
    return tuple(
        MarkWarning(
            message=f"{one.mark} is never closed and is shown as it stands; close it, or write a backslash before it",
            field=one.field,
            mark=one.mark,
        )
        for one in found
    )
