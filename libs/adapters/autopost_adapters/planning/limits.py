"""What a platform allows, as data: one ``Limits`` per platform, and everything that compiles asks it.

A limit that is ``None`` does not exist there.
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
    """Of one message: as text alone, or as the caption of media."""

    text: int
    caption: int
    entities: int | None = None
    raw_bytes: int | None = None
    counts: Literal["code points seen", "utf-16 units sent"]
    kinds: frozenset[Kind]
    """The markup that can be shown."""
    schemes: frozenset[str]
    """Where a link may lead."""
    hosts_have_dots: bool = False
    """An address without a public host is no link here."""


class ButtonLimits(Struct, frozen=True, kw_only=True):
    rows: int
    per_row: int
    total: int
    encoded: int | None = None
    """Bytes of all buttons together, as JSON."""
    schemes: frozenset[str]
    hosts_have_dots: bool = False


class PictureLimits(Struct, frozen=True, kw_only=True):
    """What is a picture; what is not goes as a file."""

    size: int
    types: frozenset[str]
    side: int | None = None
    sides: int | None = None
    """Width and height together."""
    ratio: int | None = None


class AlbumLimits(Struct, frozen=True, kw_only=True):
    """What is shown as one message."""

    size: int
    together: tuple[frozenset[MediaType], ...]
    """Types that may stand in one message; a type in none of these is alone."""
    captions: bool
    """Each item may have its own text; else an item with a text is a message."""
    buttons: bool
    """Buttons may stand under several items."""
    buttons_count: bool
    """Buttons take the place of an item."""


class Limits(Struct, frozen=True, kw_only=True):
    platform: str
    text: TextLimits
    buttons: ButtonLimits
    album: AlbumLimits
    picture: PictureLimits
    sizes: Mapping[MediaType, int]
    video_types: frozenset[str] | None = None
    animations: bool
    """There is an animation; else it is a video or a picture."""
    provider_id: Literal["file_id", "attachment_token"]
    """Which provider's own ids are meant for this platform."""
    by_url: frozenset[MediaType] = frozenset()
    """Types that the platform fetches by itself, where the channel allows it."""
    silent: bool
    protect: bool
    caption_above: bool
    preview_looks: bool
    write: Callable[[Marked, ParseMode | None], Written]
    """In the platform's dialect; the post's own parse mode says which where there are several."""
