"""What a source may say in its ``config_json``, by its kind; whatever else it says is a mistake that is told."""

from datetime import datetime
from typing import Annotated, Any, Literal

from autopost_contracts.payload import ButtonText, Routing, Tag
from msgspec import Meta, Struct, ValidationError, convert

Kind = Literal["rss", "api", "db"]
Address = Annotated[str, Meta(pattern=r"^https?://[^\s/]", max_length=2048)]
Name = Annotated[str, Meta(min_length=1, max_length=128)]
Path = Annotated[str, Meta(min_length=1, max_length=256)]
"""Names and numbers with dots between them: ``data.items``, ``images.0.url``; ``*`` is every element of a list."""


class Misconfigured(Exception):  # noqa: N818  named for what happened
    """The source makes no sense as it is; a human has to change it."""

    def __init__(self, message: str, code: str = "config_invalid") -> None:
        super().__init__(message)
        self.code = code


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How items become posts; templates of the channels do the rest."""

    include: Annotated[tuple[Literal["title", "summary", "content", "link"], ...], Meta(min_length=1)] = (
        "title",
        "summary",
        "link",
    )
    media: Literal["all", "first", "none"] = "all"
    button: ButtonText | None = None
    """Opens the item, instead of its address under the text."""
    tags: Annotated[tuple[Tag, ...], Meta(max_length=50)] = ()
    item_tags: bool = False
    """The categories of an item become tags too."""
    routing: Routing = Routing()
    first: Literal["all", "none"] | Annotated[int, Meta(ge=1, le=1000)] = "all"
    """Of what a new source already has: all is posted, none, or the newest so many. The rest is known from then on."""
    since: Annotated[datetime, Meta(tz=True)] | None = None
    """What is dated before is told and passed over: a new source is not to post all that it ever had."""
    silent: bool = False
    disable_preview: bool = False


class RssSource(Options, frozen=True, kw_only=True):
    url: Address


class Auth(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Goes into ``Authorization``; the secret is bound to ``ref`` under the platform ``pull``."""

    ref: Name
    scheme: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]*$", max_length=32)] = "Bearer"


class Fields(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where in a record each thing is."""

    id: Path | None = None
    title: Path | None = None
    text: Path | None = None
    url: Path | None = None
    date: Path | None = None
    media: Path | None = None
    tags: Path | None = None


class NextLink(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="next", tag_field="by"):
    """The answer has the address of the next page."""

    path: Path


class NextCursor(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="cursor", tag_field="by"):
    """The answer has a word that the next page is asked for with."""

    path: Path
    param: Name


class PageNumber(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="page", tag_field="by"):
    """Pages are counted; the first one without items is behind the last."""

    param: Name
    first: Annotated[int, Meta(ge=0, le=1)] = 1


class ApiSource(Options, frozen=True, kw_only=True):
    url: Address
    items: Path | None = None
    """``None``: the answer itself is the list."""
    fields: Fields
    text_format: Literal["plain", "html"] = "plain"
    auth: Auth | None = None
    paging: NextLink | NextCursor | PageNumber | None = None
    pages: Annotated[int, Meta(ge=1, le=100)] = 10
    """At most so many in one pull; the next goes on where this one ended."""
    stop_when_seen: bool = True
    """The newest come first, so behind a page that is known there is nothing new."""


class DbCursor(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The query is given the greatest value seen as ``$1``, and puts its rows in the order of that column."""

    column: Name
    start: int | float | str


class DbSource(Options, frozen=True, kw_only=True):
    dsn_ref: Name
    """The DSN is a secret, bound to this name under the platform ``pull``."""
    query: Annotated[str, Meta(pattern=r"(?i)^\s*(select|with|table|values)\b", max_length=20_000)]
    fields: Fields = Fields(id="id", title="title", text="text", url="url", date="date", media="media", tags="tags")
    text_format: Literal["plain", "html"] = "plain"
    cursor: DbCursor | None = None
    rows: Annotated[int, Meta(ge=1, le=10_000)] = 1000


Source = RssSource | ApiSource | DbSource

_KINDS: dict[Kind, type[Source]] = {"rss": RssSource, "api": ApiSource, "db": DbSource}


def read_source(kind: Kind, config: Any) -> Source:
    """Raises ``Misconfigured`` in words that name the field."""
    try:
        source = convert(config, _KINDS[kind])
    except ValidationError as exc:
        raise Misconfigured(str(exc)) from None
    if isinstance(source, ApiSource | DbSource):
        _check_fields(source.fields)
    return source


def _check_fields(fields: Fields) -> None:
    if not (fields.title or fields.text or fields.url or fields.media):
        raise Misconfigured("fields: at least one of title, text, url and media says what there is to post")
