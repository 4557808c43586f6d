"""Markdown as used in chats: the common subset of CommonMark and MAX, and ``||spoilers||``.

    **b** __b__ *i* _i_ ~~s~~ ++u++ ^^highlight^^ ||spoiler|| `code` [text](address) > quote # heading
    and code between lines of three backticks, which may name a language

Marks are paired by CommonMark's rules for emphasis. An unpaired or escaped mark is text, never an error. A heading
becomes a line in bold, and a line break stays one. Lists, tables, pictures and raw HTML are text. The parser is our
own: a CommonMark library supports none of the four marks that MAX adds and joins the lines of a paragraph, and most
of its output would have to be reverted.
"""

import re
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping

from msgspec import Struct

from autopost_adapters.markup.builder import Builder
from autopost_adapters.markup.links import BARE_ADDRESS, wrong_address
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
_TICK_OR_ESCAPE = re.compile(r"\\.|`+", re.DOTALL)
_BRACKET = re.compile(r"\\.|[\[\]]", re.DOTALL)
_LANGUAGE = re.compile(r"([\w+#.-]*)[^\S\n]*\n")
# A URL may contain one pair of brackets, as in CommonMark's simplest form.
_ADDRESS = re.compile(r"\(\s*<?([^\s()<>]{1,2048}(?:\([^\s()<>]*\)[^\s()<>]*)?)>?\s*\)")
# Any indentation is accepted, because normalisation removes it.
_GAP = r"[ \t\v\f\x1c-\x1f]"
_BLANK = re.compile(rf"{_GAP}*\n")
_QUOTED = re.compile(rf"{_GAP}*> ?")
_HEADING = re.compile(rf"{_GAP}*#{{1,6}}{_GAP}+(?=\S)")
_FENCE = re.compile(rf"{_GAP}*(?=`{{3}})")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def read_markdown(text: str) -> tuple[Marked, str | None]:
    """The parsed text, and the first invalid link."""
    marked, wrong, _ = read_markdown_closely(text)
    return marked, wrong


def read_markdown_closely(text: str) -> tuple[Marked, str | None, str | None]:
    """Also the first mark that was opened and never closed."""
    reader = _MarkdownReader()
    reader.blocks(text)
    return reader.out.marked(), reader.wrong, reader.unclosed


def code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Ranges that may be code, marks included: everything parsed as code, and slightly more in quotes."""
    at, ticks = 0, _Ticks(text)
    while at < len(text):
        starts_line = at == 0 or text[at - 1] == "\n"
        opening = _fence_at(text, at) if starts_line else None
        if opening and (end := _fence_end(text, at, ticks)):
            yield opening.start(), end
        else:
            end = _prose_end(text, at) if starts_line else _paragraph_end(text, at)
            for since, until in _code_within(text[at:end]):
                yield at + since, at + until
        at = end


class _MarkdownReader:
    def __init__(self) -> None:
        self.out = Builder()
        self.wrong: str | None = None
        self.unclosed: str | None = None

    def note_unclosed(self, mark: str) -> None:
        self.unclosed = self.unclosed or mark

    def blocks(self, text: str, depth: int = 0) -> None:
        """``depth``: a quote in a quote is parsed so that it can be reported; a third level is text."""
        at, ticks = 0, _Ticks(text)
        while at < len(text):
            starts_line = at == 0 or text[at - 1] == "\n"
            at = (starts_line and self._block(text, at, depth, ticks)) or self._paragraph(text, at)

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

    def _block(self, text: str, at: int, depth: int, ticks: "_Ticks") -> int:
        """The end of the block that begins here; 0 when no block begins here."""
        if depth < 2 and _QUOTED.match(text, at):
            return self._quote(text, at, depth)
        if heading := _HEADING.match(text, at):
            return self._heading(text, heading.end())
        return self._fence(text, at, ticks)

    def _paragraph(self, text: str, at: int) -> int:
        end = _paragraph_end(text, at)
        self._inline(text[at:end])
        return end

    def _inline(self, text: str) -> None:
        if _MARK.search(text):
            _Inline(self, text).read()
        else:
            self.out.add(text)

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
        self._inline(text[at:end])
        self.out.cover("bold", since)
        return end

    def _fence(self, text: str, at: int, ticks: "_Ticks") -> int:
        opening = _fence_at(text, at)
        end = _fence_end(text, at, ticks)
        if opening is None or not end:
            return 0
        size = len(opening[0])
        self.code(text[opening.end() : end - size], size)
        return end


class _Opener(Struct):
    """A run of one character that may open an entity."""

    character: str
    piece: int
    """The piece of its first character; each character is one piece."""
    left: int
    size: int
    closes: bool


class _Inline:
    """Parses text without blocks."""

    def __init__(self, reader: _MarkdownReader, text: str, *, in_link: bool = False) -> None:
        self._reader, self._out, self._text = reader, reader.out, text
        self._open: list[_Opener] = []
        self._bottom: dict[tuple[str, bool, int], int] = {}
        """The height of the stack that was searched without a match, by the kind of the run."""
        self._unclosed: set[int] = set()
        self._ticks = _Ticks(text)
        self._brackets = {} if in_link else _brackets(text)

    def read(self) -> None:
        at = 0
        while mark := _MARK.search(self._text, at):
            self._add(self._text[at : mark.start()])
            at = self._mark(mark)
        self._add(self._text[at:])
        self._discard_unclosed(0)

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
                return self._literal(BARE_ADDRESS.match(self._text, at) or mark)
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
        end = -1 if ticks is None or size in self._unclosed else self._ticks.closing(ticks)
        if end < 0:
            self._unclosed.add(size)
            self._reader.note_unclosed("`" * min(size, 3))
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
        size = left = end - at
        opens, closes = _flanks(character, self._text[at - 1 : at] if at else "", self._text[end : end + 1])
        if closes:
            left = self._close(character, size, opens)
        if opens and left >= _min_run(character):
            self._open.append(_Opener(character, self._out.here, left, size, closes))
            self._out.add_each(character * left)
        else:
            self._add(character * left)
        return end

    def _close(self, character: str, size: int, opens: bool) -> int:
        """The rest of a run after it has closed every opener that it can."""
        left = size
        while left >= _min_run(character) and (opener := self._opener(character, size, opens)):
            taken = 2 if min(opener.left, left) > 1 else 1
            opener.left -= taken
            left -= taken
            inner = opener.piece + opener.left
            for piece in range(inner, inner + taken):
                self._out.forget(piece)
            self._out.cover(PAIRS[character * taken], inner + taken)
            if opener.left < _min_run(character):
                if opener.left:
                    self._reader.note_unclosed(character * opener.left)
                self._shrink_stack(len(self._open) - 1)
        return left

    def _opener(self, character: str, size: int, opens: bool) -> _Opener | None:
        """The nearest matching opener; the openers above it are discarded."""
        key = (character, opens, size % 3)
        for place in range(len(self._open) - 1, self._bottom.get(key, 0) - 1, -1):
            if _is_pair(self._open[place], character, size, opens):
                self._discard_unclosed(place + 1)
                return self._open[place]
        self._bottom[key] = len(self._open)
        return None

    def _discard_unclosed(self, height: int) -> None:
        """Openers that were never closed stay text."""
        for opener in self._open[height:]:
            self._reader.note_unclosed(opener.character * min(opener.left, 3))
        self._shrink_stack(height)

    def _shrink_stack(self, height: int) -> None:
        del self._open[height:]
        for key, bottom in self._bottom.items():
            self._bottom[key] = min(bottom, height)


def _flanks(character: str, before: str, after: str) -> tuple[bool, bool]:
    """Whether a run may open and may close, by the characters on both sides."""
    if before.isalnum() and after.isalnum():
        return character != "_", character != "_"
    is_space_before, is_space_after = not before or before.isspace(), not after or after.isspace()
    is_sign_before, is_sign_after = _is_sign(before), _is_sign(after)
    left = not is_space_after and (not is_sign_after or is_space_before or is_sign_before)
    right = not is_space_before and (not is_sign_before or is_space_after or is_sign_after)
    if character == "_":
        return left and (not right or is_sign_before), right and (not left or is_sign_after)
    return left, right


def _is_sign(character: str) -> bool:
    return bool(character) and not character.isalnum() and unicodedata.category(character)[0] in "PS"


def _min_run(character: str) -> int:
    """The shortest run that is a mark."""
    return 1 if character in PAIRS else 2


def _is_pair(opener: _Opener, character: str, size: int, opens: bool) -> bool:
    """For runs that can both open and close, the sizes decide (CommonMark's rule of 3)."""
    if opener.character != character or opener.left < _min_run(character):
        return False
    either = opens or opener.closes
    return not (either and _min_run(character) == 1 and (opener.size + size) % 3 == 0 and (opener.size % 3 or size % 3))


def _brackets(text: str) -> dict[int, int]:
    """The closing bracket of each opening bracket that has one."""
    pairs: dict[int, int] = {}
    open_: list[int] = []
    for found in _BRACKET.finditer(text):
        if found[0] == "[":
            open_.append(found.start())
        elif found[0] == "]" and open_:
            pairs[open_.pop()] = found.start()
    return pairs


class _Ticks:
    """The runs of backticks in a text by size, found once: a search per run would take quadratic time."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._runs: dict[int, list[int]] | None = None

    def closing(self, ticks: re.Match[str]) -> int:
        """The start of the next run of the same size, with text in between; -1 when there is none."""
        runs = self._by_size().get(len(ticks[0]), [])
        place = bisect_left(runs, ticks.end())
        if place == len(runs) or not self._text[ticks.end() : runs[place]].strip():
            return -1
        return runs[place]

    def _by_size(self) -> dict[int, list[int]]:
        if self._runs is None:
            self._runs = defaultdict(list)
            for run in _TICKS.finditer(self._text):
                self._runs[len(run[0])].append(run.start())
        return self._runs


def _fence_at(text: str, at: int) -> re.Match[str] | None:
    fence = _FENCE.match(text, at)
    return _TICKS.match(text, fence.end()) if fence else None


def _fence_end(text: str, at: int, ticks: _Ticks) -> int:
    """The end of the fence that begins here; 0 when no fence begins here."""
    opening = _fence_at(text, at)
    end = ticks.closing(opening) if opening else -1
    return end + len(opening[0]) if opening and end >= 0 else 0


def _prose_end(text: str, at: int) -> int:
    """The end of the heading, quote or paragraph that begins here."""
    if _HEADING.match(text, at):
        return _line_end(text, at)
    if not _QUOTED.match(text, at):
        return _paragraph_end(text, at)
    while at < len(text) and _QUOTED.match(text, at):
        at = _line_end(text, at)
    return at


def _code_within(text: str) -> Iterator[tuple[int, int]]:
    at, ticks = 0, _Ticks(text)
    unmatched: set[int] = set()
    while found := _TICK_OR_ESCAPE.search(text, at):
        at = found.end()
        size = len(found[0])
        if found[0][0] == "\\" or size in unmatched:
            continue
        end = ticks.closing(found)
        if end < 0:
            unmatched.add(size)
        else:
            at = end + size
            yield found.start(), at


def _line_end(text: str, at: int) -> int:
    """After the line break."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _paragraph_end(text: str, at: int) -> int:
    """The end of the last line before a blank line or another block."""
    at = _line_end(text, at)
    while at < len(text) and not _BLANK.match(text, at):
        if _QUOTED.match(text, at) or _HEADING.match(text, at) or _FENCE.match(text, at):
            return at
        at = _line_end(text, at)
    return at
