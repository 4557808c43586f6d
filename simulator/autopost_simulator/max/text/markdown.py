"""The Markdown of MAX: ``*`` is italic and ``**`` bold; a mark without its pair is text."""

import re

from autopost_simulator.max.text.markup import MarkupBuilder

_PAIRS = (
    ("**", "strong"),
    ("__", "strong"),
    ("~~", "strikethrough"),
    ("++", "underline"),
    ("^^", "highlighted"),
    ("*", "emphasized"),
    ("_", "emphasized"),
)
_CODE = re.compile(r"```(?:\n)?(.+?)```|`([^`\n]+)`", re.DOTALL)
_LINK = re.compile(r"\[([^\]\n]+)\]\(([^)\s]+)\)")
_LINE = re.compile(r"(#|>) ?")


def parse_markdown(text: str) -> MarkupBuilder:
    out = MarkupBuilder()
    _lines(text, out)
    return out


def _lines(text: str, out: MarkupBuilder) -> None:
    at = 0
    while at < len(text):
        end = _line_end(text, at)
        start = out.length
        opening = _LINE.match(text, at, end)
        _inline(text[opening.end() if opening else at : end], out)
        if opening:
            out.mark("heading" if opening[1] == "#" else "quote", start)
        if end < len(text):
            out.add("\n")
        at = end + 1


def _line_end(text: str, start: int) -> int:
    """A fenced block belongs to the line where it starts."""
    end = text.find("\n", start)
    for code in _CODE.finditer(text, start):
        if end < 0 or code.start() > end:
            break
        if end < code.end():
            end = text.find("\n", code.end())
    return len(text) if end < 0 else end


def _inline(text: str, out: MarkupBuilder) -> None:
    at = 0
    while at < len(text):
        at = _code(text, at, out) or _link(text, at, out) or _pair(text, at, out) or _plain(text, at, out)


def _plain(text: str, at: int, out: MarkupBuilder) -> int:
    escaped = text[at] == "\\" and at + 1 < len(text) and not text[at + 1].isalnum()
    out.add(text[at + escaped])
    return at + 1 + escaped


def _code(text: str, at: int, out: MarkupBuilder) -> int:
    code = _CODE.match(text, at)
    if code is None:
        return 0
    start = out.length
    out.add(code[1] or code[2])
    out.mark("monospaced", start)
    return code.end()


def _link(text: str, at: int, out: MarkupBuilder) -> int:
    link = _LINK.match(text, at)
    if link is None:
        return 0
    start = out.length
    _inline(link[1], out)
    out.mark("link", start, link[2])
    return link.end()


def _pair(text: str, at: int, out: MarkupBuilder) -> int:
    for mark, kind in _PAIRS:
        if not text.startswith(mark, at):
            continue
        inner = at + len(mark)
        end = text.find(mark, inner + 1)
        if end > 0 and not text[inner].isspace() and not text[end - 1].isspace():
            start = out.length
            _inline(text[inner:end], out)
            out.mark(kind, start)
            return end + len(mark)
    return 0
