"""Schema of ``config_json`` by kind of source; unknown fields are errors."""

import re
from datetime import datetime
from typing import Annotated, Any, Literal

from autopost_contracts.payload import ButtonText, Routing, Tag
from autopost_runtime.config.suggestions import suggest
from msgspec import Meta, Struct, ValidationError, convert

Address = Annotated[str, Meta(pattern=r"^https?://[^\s/]", max_length=2048)]
Name = Annotated[str, Meta(min_length=1, max_length=128)]
Path = Annotated[str, Meta(min_length=1, max_length=256)]
"""Names and indexes separated by dots: ``data.items``, ``images.0.url``; ``*`` matches every element of a list."""


class Misconfigured(Exception):  # noqa: N818  named for what happened
    """The configuration is invalid; an operator has to change it."""

    def __init__(self, message: str, code: str = "config_invalid") -> None:
        super().__init__(message)
        self.code = code


class SourceOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How items become posts; templates of the channels do the rest."""

    include: Annotated[tuple[Literal["title", "summary", "content", "link"], ...], Meta(min_length=1)] = (
        "title",
        "summary",
        "link",
    )
    media: Literal["all", "first", "none"] = "all"
    button: ButtonText | None = None
    """A button that opens the item, instead of the URL after the text."""
    tags: Annotated[tuple[Tag, ...], Meta(max_length=50)] = ()
    item_tags: bool = False
    """The categories of an item also become tags."""
    routing: Routing = Routing()
    first: Literal["all", "none"] | Annotated[int, Meta(ge=1, le=1000)] = "none"
    """Which existing items of a new source are posted: none, all, or the newest n. The others are marked as seen."""
    since: Annotated[datetime, Meta(tz=True)] | None = None
    """Items dated earlier are recorded as refused and skipped, also with ``first`` = ``all``."""
    silent: bool = False
    disable_preview: bool = False


class RssSource(SourceOptions, frozen=True, kw_only=True):
    url: Address


class Auth(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For the ``Authorization`` header; the secret is bound to ``ref`` under the platform ``pull``."""

    ref: Name
    scheme: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]*$", max_length=32)] = "Bearer"


class Fields(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Path of each field in a record."""

    id: Path | None = None
    title: Path | None = None
    text: Path | None = None
    url: Path | None = None
    date: Path | None = None
    media: Path | None = None
    tags: Path | None = None


class NextLink(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="next", tag_field="by"):
    """The response has the URL of the next page."""

    path: Path


class NextCursor(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="cursor", tag_field="by"):
    """The response has a cursor for the next page."""

    path: Path
    param: Name


class PageNumber(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="page", tag_field="by"):
    """Pages are numbered; an empty page ends the list."""

    param: Name
    first: Annotated[int, Meta(ge=0, le=1)] = 1


class ApiSource(SourceOptions, frozen=True, kw_only=True):
    url: Address
    items: Path | None = None
    """``None``: the response itself is the list."""
    fields: Fields
    text_format: Literal["plain", "html"] = "plain"
    auth: Auth | None = None
    paging: NextLink | NextCursor | PageNumber | None = None
    pages: Annotated[int, Meta(ge=1, le=100)] = 10
    """Maximum per pull; the next pull continues."""
    stop_when_seen: bool = True
    """Stop at a page without new items; valid when the newest come first."""


class DbCursor(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``$1`` of the query is the greatest value seen; the query must order its rows by the column."""

    column: Name
    start: int | float | str


class DbSource(SourceOptions, frozen=True, kw_only=True):
    dsn_ref: Name
    """The DSN is a secret, bound to this name under the platform ``pull``."""
    query: Annotated[str, Meta(pattern=r"(?i)^\s*(select|with|table|values)\b", max_length=20_000)]
    fields: Fields = Fields(id="id", title="title", text="text", url="url", date="date", media="media", tags="tags")
    text_format: Literal["plain", "html"] = "plain"
    cursor: DbCursor | None = None
    rows: Annotated[int, Meta(ge=1, le=10_000)] = 1000


Source = RssSource | ApiSource | DbSource

_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*?)`(?: - at `\$\.(?P<at>\w+)`)?$")
_KINDS: dict[str, type[Source]] = {"rss": RssSource, "api": ApiSource, "db": DbSource}


def read_cursor(cursor: Any) -> dict[str, Any]:
    """Raises ``Misconfigured``."""
    if not isinstance(cursor, dict):
        raise Misconfigured("pull_cursors.cursor_json: must be an object; delete the row to start over")
    return cursor


def read_source(kind: str, config: Any) -> Source:
    """Raises ``Misconfigured`` with the name of the field."""
    if kind not in _KINDS:
        raise Misconfigured(f"kind: unknown kind {kind!r}; known kinds: {', '.join(_KINDS)}")
    try:
        source = convert(config, _KINDS[kind])
    except ValidationError as exc:
        raise Misconfigured(_with_suggestion(str(exc), _KINDS[kind])) from None
    if isinstance(source, ApiSource | DbSource):
        _check_fields(source.fields)
    return source


def _with_suggestion(message: str, kind: type[Struct]) -> str:
    """Add the nearest known name to an unknown field."""
    unknown = _UNKNOWN.match(message)
    objects: dict[str | None, type[Struct]] = {None: kind, "routing": Routing, "fields": Fields, "auth": Auth}
    if unknown is None or unknown["at"] not in objects:
        return message
    return f"{message}; {suggest(unknown['name'], objects[unknown['at']].__struct_fields__)}"


def _check_fields(fields: Fields) -> None:
    if not (fields.title or fields.text or fields.url or fields.media):
        raise Misconfigured("fields: at least one of title, text, url and media is required")
