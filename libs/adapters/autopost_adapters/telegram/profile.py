"""Telegram's limits. It counts visible code points, after the markup is parsed."""

from autopost_contracts.payload import ParseMode

from autopost_adapters.markup.html import quoted, write_html
from autopost_adapters.markup.marked import NAMES, Entity, Kind, Marked
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
    "spoiler": "tg-spoiler",
    "code": "code",
    "quote": "blockquote",
}


def write(marked: Marked, _parse_mode: ParseMode | None) -> Written:
    """Always HTML: of Telegram's dialects it needs the fewest escapes."""
    return Written(write_html(marked, _tags), "html") if marked.entities else Written(marked.text)


def _tags(entity: Entity) -> tuple[str, str]:
    match entity.kind:
        case "link":
            return f"<a href={quoted(entity.value)}>", "</a>"
        case "pre" if entity.value:
            return f"<pre><code class={quoted(f'language-{entity.value}')}>", "</code></pre>"
        case "pre":
            return "<pre>", "</pre>"
        case "expandable_quote":
            return "<blockquote expandable>", "</blockquote>"
        case "custom_emoji":
            return f"<tg-emoji emoji-id={quoted(entity.value)}>", "</tg-emoji>"
        case "time":
            shown = f" format={quoted(entity.format)}" if entity.format else ""
            return f"<tg-time unix={quoted(entity.value)}{shown}>", "</tg-time>"
        case simple:
            return f"<{_TAGS[simple]}>", f"</{_TAGS[simple]}>"


WEB = frozenset({"http", "https", "tg"})

LIMITS = Limits(
    platform="telegram",
    text=TextLimits(
        text=4096,
        caption=1024,
        entities=100,  # Telegram silently drops the markup of the rest
        raw_bytes=32_768,
        counts="code points seen",
        kinds=frozenset(NAMES) - {"highlight"},
        schemes=WEB,
        hosts_have_dots=True,
    ),
    buttons=ButtonLimits(
        rows=100,
        per_row=8,
        total=100,
        encoded=10_000,  # not documented; Telegram refuses near this size
        schemes=WEB,
        hosts_have_dots=True,
    ),
    album=AlbumLimits(
        size=10,
        together=(frozenset({"image", "video"}), frozenset({"file"}), frozenset({"audio"})),
        captions=True,
        buttons=False,
        buttons_count=False,
    ),
    picture=PictureLimits(
        size=10 * MEBIBYTE,
        types=frozenset({"image/jpeg", "image/png", "image/webp"}),
        sides=10_000,
        ratio=20,
    ),
    sizes={
        "image": 10 * MEBIBYTE,
        "video": 50 * MEBIBYTE,
        "animation": 50 * MEBIBYTE,
        "audio": 50 * MEBIBYTE,
        "file": 50 * MEBIBYTE,
    },
    animations=True,
    provider_id="file_id",
    silent=True,
    protect=True,
    caption_above=True,
    preview_looks=True,
    write=write,
)
