"""Markdown for MAX, where it can be said without doubt.

MAX publishes no grammar, so only what every reader of Markdown takes the same way is written. A mark in the middle of a
word or over a line break, or a backslash inside one, has no Markdown here, and the caller says it in HTML.
"""

import re

from msgspec.structs import replace

from autopost_adapters.markup.markdown import read_markdown
from autopost_adapters.markup.marked import Entity, Kind, Marked
from autopost_adapters.markup.writing import write

_TAGS: dict[Kind, tuple[str, str]] = {
    "quote": ("> ", ""),
    "heading": ("# ", ""),
    "bold": ("**", "**"),
    "italic": ("_", "_"),
    "underline": ("++", "++"),
    "strike": ("~~", "~~"),
    "highlight": ("^^", "^^"),
    "code": ("`", "`"),
    "pre": ("```\n", "```"),
}
_SPECIAL = re.compile(r"[\\`*_\[\]]|([~+^|])(?=\1)|(?<=([~+^|]))\2|(?m:^[^\S\n]*)[#>]")
_UNSAFE_IN_ADDRESS = re.compile(r"[\s()<>\\]")


def escape(text: str) -> str:
    """As text that is no markup."""
    return _SPECIAL.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", text)


def write_markdown(marked: Marked) -> str | None:
    """``None`` where Markdown might be read as something else."""
    known = all(entity.kind in _TAGS or entity.kind == "link" for entity in marked.entities)
    if not known or "\r" in marked.text or not _is_certain(marked):
        return None
    written = write(marked, _tags, _say)
    read, wrong = read_markdown(written)
    return written if wrong is None and read == _without_languages(marked) else None


def _is_certain(marked: Marked) -> bool:
    styled_until = 0
    for entity in marked.entities:
        seen = marked.text[entity.start : entity.end]
        if entity.kind in ("code", "pre"):
            certain = "`" not in marked.text and not (entity.kind == "code" and "\n" in seen)
        elif entity.kind in ("quote", "heading"):
            certain = True
        else:
            certain = _is_simple(seen) and _is_safe(entity, entity.start < styled_until)
            styled_until = max(styled_until, entity.end)
        if not certain:
            return False
    return True


def _is_simple(seen: str) -> bool:
    return "\n" not in seen and escape(seen) == seen


def _is_safe(entity: Entity, inside: bool) -> bool:
    """An address has no character that could end it, and none that could end what stands around it."""
    return not _UNSAFE_IN_ADDRESS.search(entity.value) and not (inside and escape(entity.value) != entity.value)


def _tags(entity: Entity) -> tuple[str, str]:
    return ("[", f"]({entity.value})") if entity.kind == "link" else _TAGS[entity.kind]


def _say(text: str, inside: Kind | None) -> str:
    if inside in ("code", "pre"):
        return text
    return escape(text).replace("\n", "\n> ") if inside == "quote" else escape(text)


def _without_languages(marked: Marked) -> Marked:
    """MAX shows none."""
    entities = tuple(replace(entity, value="") if entity.kind == "pre" else entity for entity in marked.entities)
    return Marked(marked.text, entities)
