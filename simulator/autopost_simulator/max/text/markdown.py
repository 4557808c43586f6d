"""The Markdown of MAX, line by line: fences, headings and quotes; the rest is inline.

MAX documents it as the usual Markdown with ``++underline++`` and ``^^highlight^^``; a quote is told line by line.
"""

import re

from autopost_simulator.max.text.inline import read_inline
from autopost_simulator.max.text.markup import MarkupBuilder

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_OPENING = re.compile(r"(#{1,6}[ \t]+|> ?)")


def parse_markdown(text: str) -> MarkupBuilder:
    out = MarkupBuilder()
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        if at:
            out.add("\n")
        at = _block(lines, at, out)
    return out


def _block(lines: list[str], at: int, out: MarkupBuilder) -> int:
    """Read one block and return the line after it."""
    if fence := _fence(lines[at]):
        return _fenced(lines, at, fence, out)
    if opening := _OPENING.match(lines[at]):
        start = out.length
        read_inline(lines[at][opening.end() :], out)
        out.mark("heading" if opening[1].startswith("#") else "quote", start)
        return at + 1
    end = at + 1
    while end < len(lines) and lines[end].strip() and lines[at].strip() and not _begins_block(lines[end]):
        end += 1
    read_inline("\n".join(lines[at:end]), out)
    return end


def _begins_block(line: str) -> bool:
    return bool(_OPENING.match(line) or _fence(line))


def _fence(line: str) -> re.Match[str] | None:
    found = _FENCE.fullmatch(line)
    is_code = found is not None and found[1].startswith("`") and "`" in found[2]
    return None if is_code else found


def _fenced(lines: list[str], at: int, fence: re.Match[str], out: MarkupBuilder) -> int:
    """A fence that is never closed goes on to the end."""
    end = at + 1
    while end < len(lines) and not _closes(lines[end], fence[1]):
        end += 1
    start = out.length
    out.add("\n".join(lines[at + 1 : end]))
    out.mark("monospaced", start)
    return end + 1


def _closes(line: str, opening: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(opening) and not stripped.strip(opening[0]) and len(line) - len(line.lstrip()) < 4
