"""Markdown as used in chats: the common subset of CommonMark and MAX, and ``||spoilers||``.

    **b** __b__ *i* _i_ ~~s~~ ++u++ ^^highlight^^ ||spoiler|| `code` > quote # heading
    [text](address "title") [text](<address>) <https://address> &amp;
    and code between lines of three or more backticks or tildes, which may name a language

Marks are paired by CommonMark's rules for emphasis. An unpaired or escaped mark is text, never an error. A heading
becomes a line in bold, and a line break stays one. Lists, tables, pictures and raw HTML are text. The parser is our
own: a CommonMark library supports none of the four marks that MAX adds and joins the lines of a paragraph, and most
of its output would have to be reverted.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping

from msgspec import Struct

from autopost_adapters.markup.builder import Builder
from autopost_adapters.markup.html import REFERENCE, character_of
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

_MARK = re.compile(r"[\\`\[*_~+^|<&]|https?://")
_TICKS = re.compile(r"`+")
_TICK_OR_ESCAPE = re.compile(r"\\.|`+", re.DOTALL)
_LANGUAGE = re.compile(r"[^\S\n]*([\w+#.-]*)[^\S\n]*\n")
# A URL without <> may contain brackets, two levels deep. Possessive, so that a URL is read once.
_PLAIN = r"[^\s()\\]|\\."
_IN_BRACKETS = rf"\((?:{_PLAIN}|\((?:{_PLAIN})*+\))*+\)"
_TITLE = r"""(?:\s++(?:"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|\((?:[^()\\]|\\.)*+\)))?"""
_ADDRESS = re.compile(
    rf"\(\s*+(?:<(?P<quoted>(?:[^<>\n\\]|\\.)++)>|(?P<plain>(?!<)(?:{_PLAIN}|{_IN_BRACKETS})++)){_TITLE}\s*+\)",
)
_AUTOLINK = re.compile(r"<((?:https?|tg|max|tel|mailto):[^\s<>]++)>", re.IGNORECASE)
_BRACKET = re.compile(rf"\\.|[\[\]]|{_AUTOLINK.pattern}", re.DOTALL | re.IGNORECASE)
_EMAIL = re.compile(r"<([\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8})>")
# Any indentation is accepted, because normalisation removes it.
_GAP = r"[ \t\v\f\x1c-\x1f]"
_BLANK = re.compile(rf"{_GAP}*\n")
_QUOTED = re.compile(rf"{_GAP}*> ?")
_HEADING = re.compile(rf"{_GAP}*#{{1,6}}{_GAP}+(?=\S)")
_HEADING_END = re.compile(rf"{_GAP}#+{_GAP}*$")
_FENCE = re.compile(rf"{_GAP}*(?P<run>`{{3,}}|~{{3,}})(?P<info>[^\n]*)")
_CLOSING_FENCE = re.compile(rf"^{_GAP}*+(?P<run>`{{3,}}+|~{{3,}}+){_GAP}*+$", re.MULTILINE)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_DEPTH = 2
"""A quote in a quote is parsed so that it can be reported; a third level is text."""
_FENCE_TICKS = 3


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
    """Ranges that are parsed as code, marks included; in a quote also the quote marks in between."""
    if "`" in text or "~~~" in text:  # in most texts there are neither; all code is between them
        yield from _code_spans(text, 0)


def _code_spans(text: str, depth: int) -> Iterator[tuple[int, int]]:
    at, fences = 0, _Fences(text)
    while at < len(text):
        starts_line = at == 0 or text[at - 1] == "\n"
        if starts_line and (fence := fences.at(at)):
            end = fence.end
            yield fence.start, end
        elif starts_line and depth < _DEPTH and _QUOTED.match(text, at):
            quote = _quote_at(text, at)
            end = quote.end
            for since, until in _code_spans(quote.text, depth + 1):
                yield quote.place(since), quote.place(until - 1) + 1
        else:
            is_heading = starts_line and _HEADING.match(text, at)
            end = _line_end(text, at) if is_heading else _paragraph_end(text, at)
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
        at, fences = 0, _Fences(text)
        while at < len(text):
            starts_line = at == 0 or text[at - 1] == "\n"
            at = (starts_line and self._block(text, at, depth, fences)) or self._paragraph(text, at)

    def link(self, since: int, url: str) -> None:
        problem = wrong_address(url)
        if problem is None:
            self.out.cover("link", since, url)
        self.wrong = self.wrong or problem

    def code(self, inner: str, ticks: int) -> None:
        since = self.out.here
        if ticks < _FENCE_TICKS:
            padded = inner[0] == inner[-1] == " " and inner.strip()
            self.out.add(inner[1:-1] if padded else inner)
            self.out.cover("code", since)
            return
        opening = _LANGUAGE.match(inner)
        if opening and not inner[opening.end() :].strip():
            opening = None
        self.out.add(inner[opening.end() :].removesuffix("\n") if opening else inner)
        self.out.cover("pre", since, opening[1] if opening else "")

    def _block(self, text: str, at: int, depth: int, fences: "_Fences") -> int:
        """The end of the block that begins here; 0 when no block begins here."""
        if depth < _DEPTH and _QUOTED.match(text, at):
            return self._quote(text, at, depth)
        if heading := _HEADING.match(text, at):
            return self._heading(text, heading.end())
        if fence := fences.at(at):
            self.code(fence.inner, _FENCE_TICKS)
            return fence.end
        return 0

    def _paragraph(self, text: str, at: int) -> int:
        end = _paragraph_end(text, at)
        self._inline(text[at:end])
        return end

    def _inline(self, text: str) -> None:
        if _MARK.search(text):
            _InlineReader(self, text).read()
        else:
            self.out.add(text)

    def _quote(self, text: str, at: int, depth: int) -> int:
        quote = _quote_at(text, at)
        since = self.out.here
        self.blocks(quote.text, depth + 1)
        self.out.cover("quote", since)
        return quote.end

    def _heading(self, text: str, at: int) -> int:
        end = _line_end(text, at)
        since = self.out.here
        line = text[at:end].removesuffix("\n")
        self._inline(_HEADING_END.sub("", line))
        self.out.cover("bold", since)
        self.out.add(text[at + len(line) : end])
        return end


class _Opener(Struct):
    """A run of one character that may open an entity."""

    character: str
    piece: int
    """The piece of its first character; each character is one piece."""
    left: int
    size: int
    closes: bool


class _InlineReader:
    """Parses text without blocks."""

    def __init__(self, reader: _MarkdownReader, text: str, *, in_link: bool = False) -> None:
        self._reader, self._out, self._text = reader, reader.out, text
        self._open: list[_Opener] = []
        self._bottom: dict[tuple[str, bool, int], int] = {}
        """The height of the stack that was searched without a match, by the kind of the run."""
        self._unclosed: set[int] = set()
        self._ticks = _Ticks(text)
        self._is_in_link = in_link
        self._links = {} if in_link else _links(text)

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
            case "<":
                return self._autolink(at)
            case "&":
                return self._reference(at)
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
        """A backslash at the end of a line, except the last one, is a line break, as the line break itself is."""
        following = self._text[at + 1 : at + 2]
        is_mark = following in PUNCTUATION or (following == "\n" and (self._is_in_link or at + 2 < len(self._text)))
        self._add(following if is_mark else "\\" + following)
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
        found = self._links.get(at)
        if found is None:
            self._add("[")
            return at + 1
        close, address = found
        since = self._out.here
        _InlineReader(self._reader, self._text[at + 1 : close], in_link=True).read()
        self._reader.link(since, _url(address["quoted"] or address["plain"]))
        return address.end()

    def _autolink(self, at: int) -> int:
        """A URL or an e-mail address in angle brackets; platforms find the latter themselves."""
        url = _AUTOLINK.match(self._text, at)
        found = url or _EMAIL.match(self._text, at)
        if found is None:
            self._add("<")
            return at + 1
        since = self._out.here
        self._add(found[1])
        if url and not self._is_in_link:
            self._reader.link(since, url[1])
        return found.end()

    def _reference(self, at: int) -> int:
        found = REFERENCE.match(self._text, at)
        self._add(character_of(found) if found else "&")
        return found.end() if found else at + 1

    def _run(self, at: int) -> int:
        """A run of one character closes what it can and opens with the rest."""
        character = self._text[at]
        end = at + 1
        while self._text.startswith(character, end):
            end += 1
        size = left = end - at
        before, after = "[]" if self._is_in_link else ("", "")
        before, after = self._text[at - 1 : at] if at else before, self._text[end : end + 1] or after
        opens, closes = _flanks(character, before, after)
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


def _links(text: str) -> dict[int, tuple[int, re.Match[str]]]:
    """By the opening bracket of each link: its closing bracket and its address. Brackets in code do not count.

    A link contains no link: the inner one counts.
    """
    links: dict[int, tuple[int, re.Match[str]]] = {}
    open_: list[int] = []
    code = list(_code_within(text)) if "](" in text else []
    ends = [end for _, end in code]
    after = 0
    for found in _BRACKET.finditer(text):
        at = found.start()
        place = bisect_right(ends, at)
        if at < after or (place < len(code) and code[place][0] <= at):
            continue
        if found[0] == "[":
            open_.append(at)
        elif found[0] == "]" and open_:
            opening = open_.pop()
            if address := _ADDRESS.match(text, at + 1):
                links[opening] = at, address
                after = address.end()
                open_.clear()
    return links


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


class _Fence(Struct, frozen=True):
    """A block of code with its marks, without the indentation before them."""

    start: int
    end: int
    inner: str


class _Fences:
    """The fences of a text.

    A fence ends at a line with only its mark, at least as long. In chats the mark also follows the last line of the
    code, or the whole fence is in one line; this is allowed for backticks, if there is no such line.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._ticks = _Ticks(text)
        self._closing: dict[str, list[tuple[int, int]]] | None = None
        """The start of each closing line, and the end of its mark, by the mark."""
        self._unclosed: dict[str, int] = {}
        """The smallest size of each mark that is known to have no end from here on."""

    def at(self, at: int) -> _Fence | None:
        """The fence that begins in the line at this position."""
        opening = _FENCE.match(self._text, at)
        if opening is None:
            return None
        return self._by_lines(opening) or self._by_ticks(opening)

    def _by_lines(self, opening: re.Match[str]) -> _Fence | None:
        mark = opening["run"][0]
        closing = None if mark in opening["info"] else self._closing_line(opening)
        if closing is None:
            return None
        start, end = closing
        inner = self._text[opening.end("run") : start]
        return _Fence(opening.start("run"), end, inner) if inner.strip() else None

    def _by_ticks(self, opening: re.Match[str]) -> _Fence | None:
        ticks = _TICKS.match(self._text, opening.start("run"))
        end = self._ticks.closing(ticks) if ticks else -1
        if ticks is None or end < 0:
            return None
        return _Fence(ticks.start(), end + len(ticks[0]), self._text[ticks.end() : end])

    def _closing_line(self, opening: re.Match[str]) -> tuple[int, int] | None:
        mark, size = opening["run"][0], len(opening["run"])
        if size >= self._unclosed.get(mark, len(self._text)):
            return None
        lines = self._closing_lines()[mark]
        for place in range(bisect_left(lines, (opening.end(), 0)), len(lines)):
            start, end = lines[place]
            if end - size >= start and self._text.startswith(mark * size, end - size):
                return start, end
        self._unclosed[mark] = size
        return None

    def _closing_lines(self) -> dict[str, list[tuple[int, int]]]:
        if self._closing is None:
            self._closing = {"`": [], "~": []}
            for line in _CLOSING_FENCE.finditer(self._text):
                self._closing[line["run"][0]].append((line.start(), line.end("run")))
        return self._closing


class _Quote(Struct, frozen=True):
    """The lines of a quote without their marks."""

    text: str
    end: int
    starts: tuple[int, ...]
    """Where each line begins in the text of the quote."""
    places: tuple[int, ...]
    """Where each line begins in the whole text, after its mark."""

    def place(self, at: int) -> int:
        """The position in the whole text."""
        line = bisect_right(self.starts, at) - 1
        return self.places[line] + at - self.starts[line]


def _quote_at(text: str, at: int) -> _Quote:
    lines, starts, places = list[str](), list[int](), list[int]()
    length = 0
    while at < len(text) and (mark := _QUOTED.match(text, at)):
        at = _line_end(text, at)
        lines.append(text[mark.end() : at])
        starts.append(length)
        places.append(mark.end())
        length += len(lines[-1])
    return _Quote("".join(lines), at, tuple(starts), tuple(places))


def _url(address: str) -> str:
    unescaped = REFERENCE.sub(character_of, address) if "&" in address else address
    return _ESCAPED.sub(r"\1", unescaped).replace(" ", "%20")


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
