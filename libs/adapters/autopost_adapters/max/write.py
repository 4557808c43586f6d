"""Text for MAX: Markdown where the post is Markdown, else HTML."""

from autopost_contracts.payload import ParseMode

from autopost_adapters.markup.html import quoted, write_html
from autopost_adapters.markup.marked import Entity, Kind, Marked
from autopost_adapters.markup.max_markdown import write_markdown
from autopost_adapters.planning.limits import Written

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
