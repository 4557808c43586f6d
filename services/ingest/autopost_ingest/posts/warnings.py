"""Warnings in the response to an accepted post."""

from collections.abc import Sequence
from typing import Literal

from autopost_runtime.secrets.redaction import quoted
from msgspec import Struct


class TagWarning(Struct, frozen=True, kw_only=True):
    """The content was posted before with other tags and is routed by those."""

    code: Literal["tag_mismatch"] = "tag_mismatch"
    message: str = "this content was first posted with other tags; it is routed by first_tags, tags are ignored"
    first_tags: tuple[str, ...]
    tags: tuple[str, ...]


def tag_warnings(first_tags: Sequence[str] | None, tags: Sequence[str]) -> tuple[TagWarning, ...]:
    """``first_tags`` is ``None`` if the content is new or has the same tags."""
    if first_tags is None or tuple(first_tags) == tuple(tags):
        return ()
    return (TagWarning(first_tags=tuple(map(quoted, first_tags)), tags=tuple(map(quoted, tags))),)
