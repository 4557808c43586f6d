"""The request body of a post (``PostRequest``) and its normalised form (``Content``).

Only ``Content`` is hashed, stored and compiled. Tags, routing hints, flags and schedules control how one post
is delivered; they are not part of its content.
"""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

ParseMode = Literal["HTML", "Markdown"]
ParseModeOfPost = Annotated[
    ParseMode | None,
    Meta(
        description="The markup of text and captions; without it they are plain text. Markdown is CommonMark's inline "
        "part with ~~strikethrough~~: *x* is italic, **x** bold. A mark that is never closed is shown as it stands, "
        "with a warning unclosed_mark. Headings become bold lines; lists, tables and HTML in Markdown are text. "
        "Telegram gets HTML; MAX gets the format of the post, or html where Markdown would be ambiguous."
    ),
]
MediaType = Literal["image", "video", "animation", "audio", "file"]
Platform = str
"""A name like ``telegram`` or ``max``; the registered adapters define the list."""

ButtonText = Annotated[str, Meta(min_length=1, max_length=128)]
LONGEST_LINK = 2048
Link = Annotated[str, Meta(min_length=1, max_length=LONGEST_LINK)]
Tag = Annotated[str, Meta(min_length=1, max_length=64)]
SourceRef = Annotated[str, Meta(min_length=1, max_length=256)]

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)
"""A time outside this range is a mistake, and arithmetic further out overflows ``datetime``."""
Moment = Annotated[
    datetime, Meta(tz=True, description=f"ISO 8601 with a time zone, years {EARLIEST.year} to {LATEST.year - 1}.")
]


class PostButton(Struct, frozen=True, forbid_unknown_fields=True):
    """A button of a post: it opens a link."""

    text: ButtonText
    url: Link


class MediaItem(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Has exactly one of the four sources; a platform's own id is sent to that platform only."""

    type: MediaType | Literal["photo", "document"]
    url: Link | None = None
    blob_ref: str | None = None
    file_id: str | None = None
    attachment_token: str | None = None
    caption: str | None = None


ChannelName = Annotated[
    str,
    Meta(min_length=1, max_length=256, description="A channel: its id, its chat id on the platform, or its title."),
]
GENERAL_TOPIC = 1
MOST_TOPICS = 2**31 - 1
Thread = Annotated[
    int,
    Meta(
        ge=GENERAL_TOPIC,
        le=MOST_TOPICS,
        description="The topic of a Telegram forum (message_thread_id), instead of the one in the settings of the "
        "channel; 1 is General. It selects no channel and is not part of the content: the same content in another "
        "topic of the same chat is a twin. On other platforms it is dropped.",
    ),
]


class Routing(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Narrows the channels that ``route_filter`` selects; never adds one. ``thread`` names a topic in them."""

    channels: Annotated[tuple[ChannelName, ...], Meta(max_length=1000)] = ()
    channel_tags: Annotated[tuple[Tag, ...], Meta(max_length=50)] = ()
    thread: Thread | None = None


class PostRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of ``POST /v1/posts``."""

    text: str | None = None
    parse_mode: ParseModeOfPost = None
    links: Annotated[tuple[Link, ...], Meta(max_length=20)] = ()
    media: Annotated[tuple[MediaItem, ...], Meta(max_length=100)] = ()
    buttons: Annotated[tuple[PostButton | tuple[PostButton, ...], ...], Meta(max_length=100)] = ()
    tags: Annotated[tuple[Tag, ...], Meta(max_length=50)] = ()
    routing: Routing = Routing()
    disable_preview: bool = False
    silent: bool = False
    protect: bool = False
    """Readers cannot forward or save it, where the platform supports that."""
    source_ref: SourceRef | None = None
    scheduled_for: Moment | None = None
    meta: dict[str, Any] | None = None
    workspace_id: Any = None
    """Only recorded as a hint: the endpoint alone decides the workspace."""


class Medium(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A media item of a normalised post, with exactly one of the four sources. A fetched item keeps its URL beside its
    ``blob_ref``, for platforms that accept URLs.

    ``blob_ref`` is ``sha256:`` and the digest of the bytes. The properties of the bytes follow from them, so they are
    not part of the hash of the post; neither is the file name.
    """

    type: MediaType
    blob_ref: str | None = None
    file_id: str | None = None
    attachment_token: str | None = None
    url: str | None = None
    caption: str = ""
    content_type: str | None = None
    size: int | None = None
    width: int | None = None
    height: int | None = None
    name: str | None = None


class Button(Struct, frozen=True, omit_defaults=True):
    """A button of a message. Buttons of posts open a link and have no ``kind`` in JSON; others only a bot can use.

    ``say``: pressing it writes ``text`` into the chat. ``callback``: pressing it sends ``payload`` to the bot.
    """

    text: str
    url: str = ""
    payload: str = ""
    kind: Literal["link", "say", "callback"] = "link"


class Content(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The normalised post: hashed, stored once, and compiled for each render profile."""

    type: Literal["text", "media"] = "text"
    text: str = ""
    parse_mode: ParseMode | None = None
    media: tuple[Medium, ...] = ()
    links: tuple[str, ...] = ()
    buttons: tuple[tuple[Button, ...], ...] = ()


class Flags(Struct, frozen=True, omit_defaults=True):
    """How a post is shown; not part of its content."""

    disable_preview: bool = False
    silent: bool = False
    protect: bool = False
    thread: int | None = None
    """The topic of a forum; ``None``: that of the channel."""
    tags: tuple[str, ...] = ()
    fields: dict[str, Any] = {}
    """The post's ``meta``. A template sees only the keys that it has a default for."""
