"""Markdown for MAX, where it is unambiguous.

MAX publishes no grammar, so only Markdown that every parser reads the same way is written. A mark inside a word, beside
a sign that may be one, or over a line break is not written here, nor is anything that needs a fence, a quote, a
backslash, an indented line, a line of dashes or a link after an exclamation mark; the caller uses HTML for them.
"""

import re
import unicodedata

from autopost_adapters.markup.markdown import read_markdown
from autopost_adapters.markup.marked import Entity, Kind, Marked
from autopost_adapters.markup.writing import write

_TAGS: dict[Kind, tuple[str, str]] = {
    "bold": ("**", "**"),
    "italic": ("_", "_"),
    "underline": ("++", "++"),
    "strike": ("~~", "~~"),
    "highlight": ("^^", "^^"),
    "code": ("`", "`"),
}
_SPECIAL = re.compile(r"[\\`*_\[\]]|<(?=[A-Za-z/!?])|&(?=[#\w])|([~+^|])(?=\1)|(?<=([~+^|]))\2|(?m:^[^\S\n]*)[#>]")
_INDENTED = re.compile(r"^[ \t]", re.MULTILINE)
_RULE = re.compile(r"^[^\S\n]*+(?:[-=][^\S\n]*+)++$", re.MULTILINE)
"""A line that makes the one before it a heading, or is shown as a line across the page."""
_UNSAFE_IN_ADDRESS = re.compile(r"[\s()<>\\]|&(?=[#\w])")


def escape(text: str) -> str:
    """Escape a text so that none of it is markup."""
    return _SPECIAL.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", text)


def write_markdown(marked: Marked) -> str | None:
    """``None`` where the Markdown would be ambiguous."""
    known = all(entity.kind in _TAGS or entity.kind == "link" for entity in marked.entities)
    if not known or "\r" in marked.text or not _is_certain(marked):
        return None
    written = write(marked, _tags, _write_text)
    if "\\" in written or "![" in written or _INDENTED.search(marked.text) or _RULE.search(marked.text):
        return None
    return written if read_markdown(written) == (marked, None) else None


def _is_certain(marked: Marked) -> bool:
    styled_until = 0
    has_ticks = "`" in marked.text
    for entity in marked.entities:
        seen = marked.text[entity.start : entity.end]
        if entity.kind == "code":
            certain = not has_ticks and "\n" not in seen
        else:
            certain = _is_simple(seen) and _is_safe(entity, entity.start < styled_until)
            certain = certain and (entity.kind == "link" or _stands_apart(marked.text, entity))
            styled_until = max(styled_until, entity.end)
        if not certain:
            return False
    return True


def _stands_apart(text: str, entity: Entity) -> bool:
    """Parsers differ on marks beside a letter or a symbol, such as an emoji."""
    beside = text[max(entity.start - 1, 0) : entity.start], text[entity.end : entity.end + 1]
    return all(not one or one.isspace() or unicodedata.category(one).startswith("P") for one in beside)


def _is_simple(seen: str) -> bool:
    return "\n" not in seen and escape(seen) == seen


def _is_safe(entity: Entity, inside: bool) -> bool:
    """The URL has no character that could end the link or the entity around it."""
    return not _UNSAFE_IN_ADDRESS.search(entity.value) and not (inside and escape(entity.value) != entity.value)


def _tags(entity: Entity) -> tuple[str, str]:
    return ("[", f"]({entity.value})") if entity.kind == "link" else _TAGS[entity.kind]


def _write_text(text: str, inside: Kind | None) -> str:
    return text if inside == "code" else escape(text)
