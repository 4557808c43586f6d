"""MarkdownV2: everything nests, and every special character that is not markup must be escaped."""

import re
from dataclasses import dataclass

from autopost_simulator.telegram.markup.formatting import EntityBuilder, Formatted, ParseError, byte_offset

_RESERVED = frozenset("_*[]()~`>#+-=|{}.!")
_LANGUAGE = re.compile(r"([^\s`]+)(?!`)(?=\s)")
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


class _MarkdownV2:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._out = EntityBuilder()
        self._open: list[_OpenEntity] = []
        self._quote: tuple[int, int] | None = None

    def parse(self) -> Formatted:
        while self._at < len(self._source):
            self._step()
        self._all_closed()
        self._end_quote("blockquote")
        return self._out.formatted()

    def _step(self) -> None:
        character = self._source[self._at]
        if character == "\\" and "\x00" < self._source[self._at + 1 : self._at + 2] < "\x7f":
            self._take(2, self._source[self._at + 1])
        elif self._quote is not None and character == "\n":
            self._quoted_line_ends()
        elif character not in _RESERVED or (self._in_code() and character != "`"):
            self._take(1, character)
        elif not (self._close() or self._start_quote() or self._end_expandable() or self._begin()):
            raise ParseError(f"Character '{character}' is reserved and must be escaped with the preceding '\\'")

    def _take(self, width: int, shown: str) -> None:
        self._out.add(shown)
        self._at += width

    def _in_code(self) -> bool:
        return bool(self._open) and self._open[-1].kind in ("code", "pre")

    def _begin(self) -> bool:
        if self._in_code():
            self._take(1, "`")
            return True
        for mark, kind in _OPENERS:
            if self._source.startswith(mark, self._at):
                self._open.append(_OpenEntity(kind, self._at, self._out.mark()))
                self._at += len(mark)
                if kind == "pre":
                    self._language()
                return True
        return False

    def _language(self) -> None:
        if language := _LANGUAGE.match(self._source, self._at):
            self._open[-1].language = language[1]
            self._at = language.end()
        if self._source.startswith("\n", self._at):
            self._at += 1

    def _close(self) -> bool:
        if not self._open:
            return False
        top = self._open[-1]
        mark = _MARKS[top.kind]
        if not self._source.startswith(mark, self._at):
            return False
        if top.kind == "italic" and self._source.startswith("__", self._at):
            return False
        self._at += len(mark)
        self._open.pop()
        self._emit(top)
        return True

    def _emit(self, closed: _OpenEntity) -> None:
        match closed.kind:
            case "link":
                self._out.link(closed.mark, self._url())
            case "emoji":
                self._emit_emoji(closed)
            case "pre" if closed.language:
                self._out.entity("pre", closed.mark, language=closed.language)
            case kind:
                self._out.entity(kind, closed.mark)

    def _emit_emoji(self, closed: _OpenEntity) -> None:
        prefix, _, number = self._url().partition("?id=")
        if prefix != "tg://emoji" or not number.isdigit():
            raise ParseError("Custom emoji entity must contain a tg://emoji URL")
        self._out.entity("custom_emoji", closed.mark, custom_emoji_id=number)

    def _url(self) -> str:
        """The text in the round brackets; empty without brackets."""
        if not self._source.startswith("(", self._at):
            return ""
        begin = self._at
        self._at += 1
        url = []
        while self._source[self._at : self._at + 1] not in ("", ")"):
            self._at += self._source[self._at] == "\\" and self._at + 1 < len(self._source)
            url.append(self._source[self._at])
            self._at += 1
        if self._at >= len(self._source):
            raise ParseError(f"Can't find end of a URL at byte offset {byte_offset(self._source, begin)}")
        self._at += 1
        return "".join(url)

    def _start_quote(self) -> bool:
        at_line_start = self._at == 0 or self._source[self._at - 1] == "\n"
        begins = self._source.startswith(">", self._at) and at_line_start
        if self._source.startswith("**>", self._at) and at_line_start and not self._open:
            self._at += 2
            begins = True
        if not begins or self._quote is not None:
            return False
        self._quote = self._out.mark()
        self._at += 1
        return True

    def _quoted_line_ends(self) -> None:
        self._at += 1
        if self._source.startswith(">", self._at):
            self._out.add("\n")
            self._at += 1
            return
        self._all_closed()
        self._end_quote("blockquote")
        self._out.add("\n")

    def _end_expandable(self) -> bool:
        last = self._source[self._at + 2 : self._at + 3] in ("", "\n")
        if self._quote is None or self._open or not last or not self._source.startswith("||", self._at):
            return False
        self._at += 2
        self._end_quote("expandable_blockquote")
        return True

    def _end_quote(self, kind: str) -> None:
        if self._quote is not None:
            self._out.entity(kind, self._quote)
            self._quote = None

    def _all_closed(self) -> None:
        if self._open:
            top = self._open[-1]
            name = "PreCode" if top.language else _NAMES[top.kind]
            raise ParseError(f"Can't find end of {name} entity at byte offset {byte_offset(self._source, top.begin)}")
