"""MAX's limits. Its counting is not documented, so the strictest rule applies: UTF-16 units of the text as sent, with
markup, and a keyboard counts as an attachment."""

from autopost_contracts.payload import ParseMode

from autopost_adapters.markup.html import quoted, write_html
from autopost_adapters.markup.links import SCHEMES
from autopost_adapters.markup.marked import NAMES, Entity, Kind, Marked
from autopost_adapters.markup.max_markdown import write_markdown
from autopost_adapters.planning.limits import (
    MEBIBYTE,
    AlbumLimits,
    ButtonLimits,
    Limits,
    PictureLimits,
    TextLimits,
    Written,
)

_TAGS: dict[Kind, str] = {
    "bold": "b",
    "italic": "i",
    "underline": "u",
    "strike": "s",
    "highlight": "mark",
    "code": "code",
    "pre": "pre",
    "quote": "blockquote",
}


def write(marked: Marked, parse_mode: ParseMode | None) -> Written:
    """In the parse mode of the post; ambiguous Markdown becomes the equivalent HTML.

    A text with a parse mode always has a format, even without any markup.
    """
    if not marked.text or not (marked.entities or parse_mode):
        return Written(marked.text)
    markdown = write_markdown(marked) if parse_mode == "Markdown" else None
    return Written(write_html(marked, _tags), "html") if markdown is None else Written(markdown, "markdown")


def _tags(entity: Entity) -> tuple[str, str]:
    """The language of code is left out, because MAX does not show it."""
    if entity.kind == "link":
        return f"<a href={quoted(entity.value)}>", "</a>"
    return f"<{_TAGS[entity.kind]}>", f"</{_TAGS[entity.kind]}>"


LIMITS = Limits(
    platform="max",
    text=TextLimits(
        text=4000,
        caption=4000,
        counts="utf-16 units sent",
        kinds=frozenset(NAMES) - {"spoiler", "expandable_quote", "custom_emoji", "time"},
        schemes=SCHEMES,
    ),
    buttons=ButtonLimits(
        rows=30,
        per_row=3,  # for link buttons; callback buttons may be seven
        total=210,
        schemes=SCHEMES,
    ),
    album=AlbumLimits(
        size=12,
        together=(frozenset({"image", "video"}),),
        captions=False,
        buttons=True,
        buttons_count=True,
    ),
    picture=PictureLimits(
        size=50 * MEBIBYTE,
        types=frozenset({"image/jpeg", "image/png", "image/gif", "image/tiff", "image/bmp", "image/heic"}),
        side=7680,
    ),
    sizes={
        "image": 50 * MEBIBYTE,
        "video": 250 * MEBIBYTE,
        "animation": 250 * MEBIBYTE,
        "audio": 256 * MEBIBYTE,
        "file": 4096 * MEBIBYTE,
    },
    video_types=frozenset({"video/mp4", "video/quicktime", "video/x-matroska", "video/webm"}),
    animations=False,
    provider_id="attachment_token",
    by_url=frozenset({"image"}),
    silent=False,  # channels reject notify: false
    protect=False,
    caption_above=False,
    preview_looks=False,
    write=write,
)
