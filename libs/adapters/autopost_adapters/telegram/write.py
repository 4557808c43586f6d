"""Text for Telegram, as HTML."""

from autopost_contracts.payload import ParseMode

from autopost_adapters.markup.html import quoted, write_html
from autopost_adapters.markup.marked import Entity, Kind, Marked
from autopost_adapters.planning.limits import Written

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
