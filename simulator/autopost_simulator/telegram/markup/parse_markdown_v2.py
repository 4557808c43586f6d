"""MarkdownV2: everything nests, and every special character that is not markup must be escaped.

A line break ends a quote, and then every other entity in it must be closed; ``||`` alone at the end of the quote
makes it expandable. The line break belongs to the quote.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from autopost_simulator.telegram.markup.formatting import EntityBuilder, Formatted, ParseError, byte_offset
from autopost_simulator.telegram.markup.time_links import linked_entity

_RESERVED = frozenset("_*[]()~`>#+-=|{}.!\n")
_PLAIN = re.compile(r"[^\\_*\[\]()~`>#+\-=|{}.!\n]+")
_LANGUAGE = re.compile(r"([^ \t\r\n\0\v`]+)(?=[ \t\r\n\0\v])")
_NAMES = {
    "bold": "Bold",
    "italic": "Italic",
    "underline": "Underline",
    "strikethrough": "Strikethrough",
    "spoiler": "Spoiler",
    "code": "Code",
    "pre": "Pre",
    "link": "TextUrl",
    "emoji": "CustomEmoji",
    "blockquote": "BlockQuote",
}
_MARKS = {
    "bold": "*",
    "italic": "_",
    "underline": "__",
    "strikethrough": "~",
    "spoiler": "||",
    "code": "`",
    "pre": "```",
    "link": "]",
    "emoji": "]",
}
_OPENERS = (
    ("__", "underline"),
    ("_", "italic"),
    ("*", "bold"),
    ("~", "strikethrough"),
    ("||", "spoiler"),
    ("![", "emoji"),
    ("[", "link"),
    ("```", "pre"),
    ("`", "code"),
)


@dataclass(slots=True)
class _OpenEntity:
    kind: str
    begin: int
    mark: tuple[int, int]
    language: str = ""


def parse_markdown_v2(text: str) -> Formatted:
    return _MarkdownV2(text).parse()


def skip_line_break(text: str, at: int) -> int:
    """One line break directly after the opening of a block is not part of it."""
    first, second = text[at : at + 1], text[at + 1 : at + 2]
    if first not in ("\n", "\r"):
        return at
    return at + (2 if second in ("\n", "\r") and second != first else 1)


class _MarkdownV2:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._out = EntityBuilder()
        self._open: list[_OpenEntity] = []
        self._in_quote = False
        self._line_start = True

    def parse(self) -> Formatted:
        while self._at < len(self._source):
            self._step()
        if self._in_quote:
            self._end_last_quote()
        if self._open:
            raise self._unclosed(self._open[-1])
        return self._out.formatted()

    def _step(self) -> None:
        character = self._source[self._at]
        if character == "\\" and "\x00" < self._source[self._at + 1 : self._at + 2] < "\x7f":
            self._at += 1
            self._take(self._source[self._at])
        elif plain := _PLAIN.match(self._source, self._at):
            self._out.add(plain[0])
            self._at = plain.end()
            self._line_start = self._line_start and not plain[0].strip("\r")
        elif character not in _RESERVED or (self._in_code() and character != "`"):
            self._out.add(character)
            self._at += 1
            self._line_start = False
        elif self._quote_ends():
            self._end_quote()
        elif self._closes():
            self._close()
        else:
            self._begin(character)

    def _take(self, character: str) -> None:
        self._out.add(character)
        self._at += 1
        if character != "\r":
            self._line_start = character == "\n"

    def _in_code(self) -> bool:
        return bool(self._open) and self._open[-1].kind in ("code", "pre")

    def _begin(self, character: str) -> None:
        if character == "\n":
            self._take(character)
        elif character == ">" and self._line_start:
            if not self._in_quote:
                self._open.append(_OpenEntity("blockquote", self._at, self._out.mark()))
                self._in_quote = True
            self._at += 1
        else:
            self._open_entity(character)

    def _open_entity(self, character: str) -> None:
        for mark, kind in _OPENERS:
            if self._source.startswith(mark, self._at):
                self._open.append(_OpenEntity(kind, self._at, self._out.mark()))
                self._at += len(mark)
                if kind == "pre":
                    self._language()
                return
        raise ParseError(f"Character '{character}' is reserved and must be escaped with the preceding '\\'")

    def _language(self) -> None:
        if language := _LANGUAGE.match(self._source, self._at):
            self._open[-1].language = language[1]
            self._at = language.end()
        self._at = skip_line_break(self._source, self._at)

    def _closes(self) -> bool:
        if not self._open or self._open[-1].kind == "blockquote":
            return False
        kind = self._open[-1].kind
        double = kind == "italic" and self._source.startswith("__", self._at)
        return not double and self._source.startswith(_MARKS[kind], self._at)

    def _close(self) -> None:
        top = self._open[-1]
        self._at += len(_MARKS[top.kind])
        emit: dict[str, Callable[[_OpenEntity], None]] = {
            "link": self._emit_link,
            "emoji": self._emit_linked_entity,
            "pre": self._emit_pre,
        }
        emit.get(top.kind, self._emit)(top)
        self._open.pop()

    def _emit(self, closed: _OpenEntity) -> None:
        self._out.entity(closed.kind, closed.mark)

    def _emit_pre(self, closed: _OpenEntity) -> None:
        self._out.entity("pre", closed.mark, **({"language": closed.language} if closed.language else {}))

    def _emit_link(self, closed: _OpenEntity) -> None:
        self._out.link(closed.mark, self._url() if self._source.startswith("(", self._at) else None)

    def _emit_linked_entity(self, closed: _OpenEntity) -> None:
        if not self._source.startswith("(", self._at):
            raise ParseError("The entity must contain a tg://emoji or tg://time URL")
        kind, extra = linked_entity(self._url())
        self._out.entity(kind, closed.mark, **extra)

    def _url(self) -> str:
        self._at += 1
        begin = self._at
        url = []
        while self._source[self._at : self._at + 1] not in ("", ")"):
            escaped = self._source[self._at] == "\\" and "\x00" < self._source[self._at + 1 : self._at + 2] < "\x7f"
            self._at += escaped
            url.append(self._source[self._at])
            self._at += 1
        if self._at >= len(self._source):
            raise ParseError(f"Can't find end of a URL at byte offset {byte_offset(self._source, begin)}")
        self._at += 1
        return "".join(url)

    def _quote_ends(self) -> bool:
        """A line break inside code does not end the quote, because only ``\\``` is special there."""
        if not self._in_quote or self._in_code() or self._source[self._at] != "\n":
            return False
        return not self._source.startswith(">", self._at + 1)

    def _end_quote(self) -> None:
        after_return = self._source[self._at - 1] == "\r"  # ``||\r\n`` ends a quote as ``||\n`` does
        kind = self._quote_kind((self._at - 2, self._at - 3) if after_return else (self._at - 2,))
        self._take("\n")
        self._out.entity(kind, self._open.pop().mark)
        self._in_quote = False

    def _end_last_quote(self) -> None:
        if self._open[-1].kind not in ("blockquote", "spoiler"):
            return
        kind = self._quote_kind((len(self._source) - 2,))
        self._out.entity(kind, self._open.pop().mark)
        self._in_quote = False

    def _quote_kind(self, empty_spoiler_at: tuple[int, ...]) -> str:
        top = self._open[-1]
        if top.kind == "spoiler" and top.begin in empty_spoiler_at:
            self._open.pop()
            top = self._open[-1]
            if top.kind == "blockquote":
                return "expandable_blockquote"
        if top.kind != "blockquote":
            raise self._unclosed(top)
        return "blockquote"

    def _unclosed(self, top: _OpenEntity) -> ParseError:
        name = "PreCode" if top.language else _NAMES[top.kind]
        return ParseError(f"Can't find end of {name} entity at byte offset {byte_offset(self._source, top.begin)}")
