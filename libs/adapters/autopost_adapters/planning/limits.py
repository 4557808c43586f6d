"""The limits of a platform as data: one ``Limits`` per platform, used by all compile steps.

``None`` means that the platform has no such limit.
"""

from collections.abc import Callable, Mapping
from typing import Literal

from autopost_contracts.payload import MediaType, ParseMode
from autopost_contracts.plan import Markup
from msgspec import Struct

from autopost_adapters.markup.marked import Kind, Marked

MEBIBYTE = 1024 * 1024


class Written(Struct, frozen=True):
    """A text as it is sent."""

    text: str
    markup: Markup = "plain"


class TextLimits(Struct, frozen=True, kw_only=True):
    """Limits of one message: of its text, or of a caption."""

    text: int
    caption: int
    entities: int | None = None
    raw_bytes: int | None = None
    counts: Literal["code points seen", "utf-16 units sent"]
    kinds: frozenset[Kind]
    """The supported markup."""
    schemes: frozenset[str]
    """The allowed schemes of links."""
    hosts_have_dots: bool = False
    """The platform does not link URLs without a public host."""


class ButtonLimits(Struct, frozen=True, kw_only=True):
    rows: int
    per_row: int
    """In a row with a link, or where the platform makes no difference."""
    per_row_without_links: int | None = None
    total: int
    kinds: frozenset[str] = frozenset({"link"})
    """Of ``Button.kind``."""
    text: int | None = None
    payload: int | None = None
    """Characters."""
    encoded: int | None = None
    """Bytes of all buttons as JSON."""
    schemes: frozenset[str]
    hosts_have_dots: bool = False


class PictureLimits(Struct, frozen=True, kw_only=True):
    """Limits of a picture; any other image is sent as a file."""

    size: int
    types: frozenset[str]
    side: int | None = None
    sides: int | None = None
    """Width plus height."""
    ratio: int | None = None


class AlbumLimits(Struct, frozen=True, kw_only=True):
    """Limits of an album."""

    size: int
    together: tuple[frozenset[MediaType], ...]
    """Types that may share a message; a type in none of the sets is sent alone."""
    captions: bool
    """Each item may have its own caption; else an item with a caption is its own message."""
    buttons: bool
    """An album may have buttons."""
    buttons_count: bool
    """Buttons count as an item."""


class Limits(Struct, frozen=True, kw_only=True):
    platform: str
    text: TextLimits
    buttons: ButtonLimits
    album: AlbumLimits
    picture: PictureLimits
    sizes: Mapping[MediaType, int]
    video_types: frozenset[str] | None = None
    animations: bool
    """The platform has animations; else they are sent as a video or a picture."""
    provider_id: Literal["file_id", "attachment_token"]
    """The field with this platform's own ids."""
    by_url: frozenset[MediaType] = frozenset()
    """Types that the platform fetches by URL, where the channel allows it."""
    silent: bool
    protect: bool
    caption_above: bool
    preview_looks: bool
    threads: bool
    """Chats may have topics."""
    write: Callable[[Marked, ParseMode | None], Written]
    """Writes a text in the platform's dialect; with several dialects the post's parse mode selects one."""
