"""Warnings in the response to an accepted post."""

from collections.abc import Iterable, Sequence

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


PostWarning = TagWarning | MarkWarning


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
