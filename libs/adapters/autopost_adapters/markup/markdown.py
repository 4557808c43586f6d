"""Markdown as people write it to a chat: what CommonMark and MAX share, and ``||spoilers||``.

    **b** __b__ *i* _i_ ~~s~~ ++u++ ^^highlight^^ ||spoiler|| `code` [text](address) > quote # heading
    and code between lines of three backticks, which may name a language

A mark without its pair is text, never an error, and so is one behind a backslash. A line break is shown as one. Lists,
tables, pictures and raw HTML are text as well. It is read by hand: a CommonMark library knows neither of the four marks
that MAX adds, joins the lines of a paragraph, and would have to be undone more than it would do.
"""

import re
from collections.abc import Mapping

from autopost_adapters.markup.builder import Builder
from autopost_adapters.markup.links import wrong_address
from autopost_adapters.markup.marked import Kind, Marked

PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
PAIRS: Mapping[str, Kind] = {
    "**": "bold",
    "__": "bold",
    "*": "italic",
    "_": "italic",
    "~~": "strike",
    "++": "underline",
    "^^": "highlight",
    "||": "spoiler",
}

_MARK = re.compile(r"[\\`\[*_~+^|]|https?://")
_TICKS = re.compile(r"`+")
_LANGUAGE = re.compile(r"([\w+#.-]*)[^\S\n]*\n")
# Up to one pair of brackets may stand in an address, as in CommonMark's simplest form.
_ADDRESS = re.compile(r"\(\s*<?([^\s()<>]{1,2048}(?:\([^\s()<>]*\)[^\s()<>]*)?)>?\s*\)")
_BARE_ADDRESS = re.compile(r"https?://[^\s<>`*|\[\]()\\]*[^\s<>`*|\[\]()\\_~+^.,!?;:'\"]")
_QUOTED = re.compile(r" {0,3}> ?")
_HEADING = re.compile(r" {0,3}#{1,6} +(?=\S)")
_FENCE = re.compile(r" {0,3}(?=`{3})")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def read_markdown(text: str) -> tuple[Marked, str | None]:
    """The text, and the first thing that is wrong: only a link can be."""
    reader = _Reader()
    reader.blocks(text)
    return reader.out.marked(), reader.wrong


class _Reader:
    def __init__(self) -> None:
        self.out = Builder()
        self.wrong: str | None = None

    def blocks(self, text: str, depth: int = 0) -> None:
        """``depth``: a quote in a quote is found, to be told; one more level is text."""
        at = 0
        while at < len(text):
            starts_line = at == 0 or text[at - 1] == "\n"
            at = (starts_line and self._block(text, at, depth)) or self._paragraph(text, at)

    def link(self, since: int, address: str) -> None:
        url = _ESCAPED.sub(r"\1", address)
        problem = wrong_address(url)
        if problem is None:
            self.out.cover("link", since, url)
        self.wrong = self.wrong or problem

    def code(self, inner: str, ticks: int) -> None:
        since = self.out.here
        if ticks < 3:
            padded = inner[0] == inner[-1] == " " and inner.strip()
            self.out.add(inner[1:-1] if padded else inner)
            self.out.cover("code", since)
            return
        opening = _LANGUAGE.match(inner)
        if opening and not inner[opening.end() :].strip():
            opening = None
        self.out.add(inner[opening.end() :].removesuffix("\n") if opening else inner)
        self.out.cover("pre", since, opening[1] if opening else "")

    def _block(self, text: str, at: int, depth: int) -> int:
        """Where the block that begins here ends; 0 when none does."""
        if depth < 2 and _QUOTED.match(text, at):
            return self._quote(text, at, depth)
        if heading := _HEADING.match(text, at):
            return self._heading(text, heading.end())
        return self._fence(text, at)

    def _paragraph(self, text: str, at: int) -> int:
        end = _paragraph_end(text, at)
        _Inline(self, text[at:end]).read()
        return end

    def _quote(self, text: str, at: int, depth: int) -> int:
        lines = []
        while at < len(text) and (mark := _QUOTED.match(text, at)):
            end = _line_end(text, at)
            lines.append(text[mark.end() : end])
            at = end
        since = self.out.here
        self.blocks("".join(lines), depth + 1)
        self.out.cover("quote", since)
        return at

    def _heading(self, text: str, at: int) -> int:
        end = _line_end(text, at)
        since = self.out.here
        _Inline(self, text[at:end]).read()
        self.out.cover("heading", since)
        return end

    def _fence(self, text: str, at: int) -> int:
        fence = _FENCE.match(text, at)
        ticks = fence and _TICKS.match(text, fence.end())
        if not ticks:
            return 0
        end = _closing(text, ticks)
        if end < 0:
            return 0
        self.code(text[ticks.end() : end], len(ticks[0]))
        return end + len(ticks[0])


class _Inline:
    """One stretch of text without blocks in it."""

    def __init__(self, reader: _Reader, text: str, *, in_link: bool = False) -> None:
        self._reader, self._out, self._text = reader, reader.out, text
        self._open: list[tuple[str, int]] = []
        self._waiting: dict[str, int] = dict.fromkeys(PAIRS, 0)
        self._unclosed: set[int] = set()
        self._brackets = {} if in_link else _brackets(text)

    def read(self) -> None:
        at = 0
        while mark := _MARK.search(self._text, at):
            self._add(self._text[at : mark.start()])
            at = self._mark(mark)
        self._add(self._text[at:])

    def _mark(self, mark: re.Match[str]) -> int:
        at = mark.start()
        match mark[0]:
            case "\\":
                return self._escape(at)
            case "`":
                return self._code(at)
            case "[":
                return self._link(at)
            case "http://" | "https://":
                return self._literal(_BARE_ADDRESS.match(self._text, at) or mark)
            case _:
                return self._run(at)

    def _add(self, text: str) -> None:
        if text:
            self._out.add(text)

    def _literal(self, found: re.Match[str]) -> int:
        self._add(found[0])
        return found.end()

    def _escape(self, at: int) -> int:
        following = self._text[at + 1 : at + 2]
        self._add(following if following in PUNCTUATION else "\\" + following)
        return at + 1 + len(following)

    def _code(self, at: int) -> int:
        ticks = _TICKS.match(self._text, at)
        size = len(ticks[0]) if ticks else 0
        end = -1 if ticks is None or size in self._unclosed else _closing(self._text, ticks)
        if end < 0:
            self._unclosed.add(size)
            self._add("`" * size)
            return at + size
        self._reader.code(self._text[at + size : end], size)
        return end + size

    def _link(self, at: int) -> int:
        close = self._brackets.get(at)
        address = _ADDRESS.match(self._text, close + 1) if close is not None else None
        if address is None:
            self._add("[")
            return at + 1
        since = self._out.here
        _Inline(self._reader, self._text[at + 1 : close], in_link=True).read()
        self._reader.link(since, address[1])
        return address.end()

    def _run(self, at: int) -> int:
        """A run of one character closes what it can and opens with the rest."""
        character = self._text[at]
        end = at + 1
        while self._text.startswith(character, end):
            end += 1
        left = end - at
        before, after = self._text[max(at - 1, 0) : at], self._text[end : end + 1]
        closes = bool(before) and not before.isspace() and not (character == "_" and after.isalnum())
        opens = bool(after) and not after.isspace() and not (character == "_" and before.isalnum())
        while closes and (mark := self._match(character, left)):
            self._close(mark)
            left -= len(mark)
        while left:
            mark = character * 2 if left > 1 else character
            if opens and mark in PAIRS:
                self._open.append((mark, self._out.here))
                self._waiting[mark] += 1
            self._add(mark)
            left -= len(mark)
        return end

    def _match(self, character: str, left: int) -> str | None:
        """The open mark that a run closes next: one of its own size, or the innermost where it is longer."""
        single, double = character, character * 2
        fitting = [mark for mark in (double, single) if self._waiting.get(mark) and len(mark) <= left]
        if len(fitting) < 2 or left == 2:
            return fitting[0] if fitting else None
        return next(mark for mark, _ in reversed(self._open) if mark in fitting)

    def _close(self, mark: str) -> None:
        """What was opened inside and never closed stays text."""
        while True:
            opened, piece = self._open.pop()
            self._waiting[opened] -= 1
            if opened == mark:
                break
        self._out.forget(piece)
        self._out.cover(PAIRS[mark], piece + 1)


def _brackets(text: str) -> dict[int, int]:
    """For each opening bracket that has one, its closing bracket."""
    pairs: dict[int, int] = {}
    open_: list[int] = []
    for found in re.finditer(r"\\.|[\[\]]", text, re.DOTALL):
        if found[0] == "[":
            open_.append(found.start())
        elif found[0] == "]" and open_:
            pairs[open_.pop()] = found.start()
    return pairs


def _closing(text: str, ticks: re.Match[str]) -> int:
    """Where a run of as many backticks begins, with something in between; -1 when there is none."""
    size = len(ticks[0])
    found = re.compile(rf"(?<!`)`{{{size}}}(?!`)").search(text, ticks.end())
    return found.start() if found and text[ticks.end() : found.start()].strip() else -1


def _line_end(text: str, at: int) -> int:
    """Behind the line break."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _paragraph_end(text: str, at: int) -> int:
    """Behind the last line before a blank one or before another block."""
    at = _line_end(text, at)
    while at < len(text) and not text.startswith("\n", at):
        if _QUOTED.match(text, at) or _HEADING.match(text, at) or _FENCE.match(text, at):
            return at
        at = _line_end(text, at)
    return at
