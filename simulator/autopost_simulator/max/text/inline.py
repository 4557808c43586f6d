"""Inline Markdown by the rules of CommonMark: what may open and close, the rule of three, code and links first."""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from autopost_simulator.max.text.markup import MarkupBuilder

_PAIRS = {"~": "strikethrough", "+": "underline", "^": "highlighted"}
_CODE = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~\n])")
_AUTOLINK = re.compile(r"<([A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*)>")
_TAIL_BEGINS = re.compile(r"\(\s*")
_ADDRESS = re.compile(r"<((?:[^<>\n\\]|\\.)*)>")
_TAIL_ENDS = re.compile(r"""(?:\s+(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\((?:[^()\\]|\\.)*\)))?\s*\)""", re.DOTALL)
_PLAIN = re.compile(r"[^\\`*_~+^\[\]<]+")


@dataclass(slots=True)
class _Piece:
    """Text, or ``count`` marks of which unused ones are text; ``run`` tells where their run begins."""

    text: str = ""
    mark: str = ""
    count: int = 0
    length: int = 0
    can_open: bool = False
    can_close: bool = False
    run: int = 0


@dataclass(slots=True)
class _Bracket:
    piece: int
    is_active: bool = True


Span = tuple[str, int, int, str]
"""Kind, first and last piece, exclusive, and the address of a link."""


def read_inline(text: str, out: MarkupBuilder) -> None:
    _Inline(text).read_into(out)


class _Inline:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._pieces: list[_Piece] = []
        self._brackets: list[_Bracket] = []
        self._spans: list[Span] = []

    def read_into(self, out: MarkupBuilder) -> None:
        while self._at < len(self._source):
            self._step()
        self._match_marks(0)
        self._lay_out(out)

    def _step(self) -> None:
        if plain := _PLAIN.match(self._source, self._at):
            self._text(plain[0], plain.end())
            return
        readers: dict[str, Callable[[], bool]] = {
            "\\": self._escape,
            "`": self._code,
            "<": self._autolink,
            "[": self._open_bracket,
            "]": self._close_bracket,
        }
        character = self._source[self._at]
        if not readers.get(character, self._marks)():
            run = re.compile(re.escape(character) + "+").match(self._source, self._at)
            end = run.end() if run and character == "`" else self._at + 1
            self._text(self._source[self._at : end], end)

    def _text(self, text: str, end: int) -> None:
        self._pieces.append(_Piece(text))
        self._at = end

    def _covered(self, kind: str, text: str, end: int, url: str = "") -> bool:
        self._text(text, end)
        self._spans.append((kind, len(self._pieces) - 2, len(self._pieces), url))
        return True

    def _escape(self) -> bool:
        escaped = _ESCAPE.match(self._source, self._at)
        if escaped:
            self._text(escaped[1], escaped.end())
        return escaped is not None

    def _code(self) -> bool:
        code = _CODE.match(self._source, self._at)
        if code is None:
            return False
        content = code[2].replace("\n", " ")
        padded = content.startswith(" ") and content.endswith(" ") and content.strip(" ")
        return self._covered("monospaced", content[1:-1] if padded else content, code.end())

    def _autolink(self) -> bool:
        link = _AUTOLINK.match(self._source, self._at)
        return link is not None and self._covered("link", link[1], link.end(), link[1])

    def _open_bracket(self) -> bool:
        self._brackets.append(_Bracket(len(self._pieces)))
        self._text("[", self._at + 1)
        return True

    def _close_bracket(self) -> bool:
        if not self._brackets:
            return False
        bracket = self._brackets.pop()
        tail = _link_tail(self._source, self._at + 1) if bracket.is_active else None
        if tail is None:
            return False
        url, end = tail
        self._match_marks(bracket.piece)
        self._pieces[bracket.piece].text = ""
        self._spans.append(("link", bracket.piece, len(self._pieces), url))
        for outer in self._brackets:  # a link cannot contain a link
            outer.is_active = False
        self._at = end
        return True

    def _marks(self) -> bool:
        character = self._source[self._at]
        end = self._at
        while self._source[end : end + 1] == character:
            end += 1
        can_open, can_close = _flanking(self._source, self._at, end)
        count = end - self._at
        paired = character in _PAIRS
        alone = [_Piece(character)] * (count % 2) if paired else []
        runs = [
            _Piece("", character, size, size, can_open, can_close, self._at)
            for size in ([2] * (count // 2) if paired else [count])
        ]
        self._pieces += runs + alone if can_close and not can_open else alone + runs
        self._at = end
        return True

    def _match_marks(self, bottom: int) -> None:
        """The algorithm of CommonMark: every closer takes the nearest opener that fits."""
        for at in range(bottom, len(self._pieces)):
            closer = self._pieces[at]
            while closer.mark and closer.can_close and closer.count:
                found = self._opener(closer, at, bottom)
                if found is None:
                    break
                self._pair(found, at)
        for piece in self._pieces[bottom:]:
            piece.can_open = piece.can_close = False

    def _opener(self, closer: _Piece, at: int, bottom: int) -> int | None:
        for position in range(at - 1, bottom - 1, -1):
            opener = self._pieces[position]
            if opener.mark == closer.mark and opener.can_open and opener.count and _fit(opener, closer):
                return position
        return None

    def _pair(self, opened: int, closed: int) -> None:
        opener, closer = self._pieces[opened], self._pieces[closed]
        size = 2 if opener.count >= 2 and closer.count >= 2 else 1
        opener.count -= size
        closer.count -= size
        kind = _PAIRS.get(opener.mark) or ("strong" if size == 2 else "emphasized")
        self._spans.append((kind, opened, closed, ""))
        for between in self._pieces[opened + 1 : closed]:
            between.can_open = between.can_close = False

    def _lay_out(self, out: MarkupBuilder) -> None:
        """A span begins behind what is left of its opener and ends before what is left of its closer."""
        starts, ends = [], []
        for piece in self._pieces:
            starts.append(out.length)
            out.add(piece.mark * piece.count if piece.mark else piece.text)
            ends.append(out.length)
        ends.append(starts[0] if starts else 0)  # for a span that begins with the first piece
        starts.append(out.length)
        places = [(ends[first], starts[last], kind, url) for kind, first, last, url in self._spans]
        for begin, end, kind, url in sorted(places, key=lambda place: (place[0], -place[1])):
            out.cover(kind, begin, end, url)


def _fit(opener: _Piece, closer: _Piece) -> bool:
    """The rule of three, for marks that could both open and close. Marks of one run are no pair."""
    if opener.run == closer.run:
        return False
    if opener.mark in _PAIRS or not (opener.can_close or closer.can_open):
        return True
    return (opener.length + closer.length) % 3 != 0 or (opener.length % 3 == 0 and closer.length % 3 == 0)


def _flanking(text: str, begin: int, end: int) -> tuple[bool, bool]:
    before, after = text[begin - 1 : begin] if begin else " ", text[end : end + 1] or " "
    left = not _is_space(after) and (not _is_punctuation(after) or _is_space(before) or _is_punctuation(before))
    right = not _is_space(before) and (not _is_punctuation(before) or _is_space(after) or _is_punctuation(after))
    if text[begin] != "_":
        return left, right
    return left and (not right or _is_punctuation(before)), right and (not left or _is_punctuation(after))


def _is_space(character: str) -> bool:
    return character in " \t\n\f\r" or unicodedata.category(character) == "Zs"


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def _link_tail(text: str, at: int) -> tuple[str, int] | None:
    """The address in round brackets and the position behind them; a title is ignored."""
    begins = _TAIL_BEGINS.match(text, at)
    if begins is None:
        return None
    address = _address(text, begins.end())
    ends = _TAIL_ENDS.match(text, address[1]) if address else None
    return (address[0], ends.end()) if address and ends else None


def _address(text: str, at: int) -> tuple[str, int] | None:
    if text.startswith("<", at):
        found = _ADDRESS.match(text, at)
        return (_unescaped(found[1]), found.end()) if found else None
    end, depth = at, 0
    while end < len(text) and text[end] > " ":
        if text[end] == "\\" and end + 1 < len(text):
            end += 1
        elif text[end] == "(":
            depth += 1
        elif text[end] == ")":
            depth -= 1
            if depth < 0:
                break
        end += 1
    return (_unescaped(text[at:end]), end) if depth <= 0 else None


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(r"\1", text)
