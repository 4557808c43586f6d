"""Telegram's MarkdownV2, as the Bot API server reads it. Written from TDLib's ``parse_markdown_v2``.

Positions in the source are bytes, because the server's words name bytes.
"""

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from adapters.readers.addresses import link, person
from adapters.readers.dates import is_date_format
from adapters.readers.entities import Entity, Read, Refused, shown

RESERVED = set(b"_*[]()~`>#+-=|{}.!\n")
LITERAL = ("code", "pre")
NAMES = {
    "bold": "Bold",
    "italic": "Italic",
    "underline": "Underline",
    "strikethrough": "Strikethrough",
    "spoiler": "Spoiler",
    "code": "Code",
    "text_link": "TextUrl",
    "custom_emoji": "CustomEmoji",
    "blockquote": "BlockQuote",
}
ENDS = {
    "bold": b"*",
    "code": b"`",
    "pre": b"```",
    "text_link": b"]",
    "underline": b"__",
    "strikethrough": b"~",
    "spoiler": b"||",
    "custom_emoji": b"]",
}
"""An italic ends with one ``_``; a quote with its line."""
FENCE = re.compile(rb"```(?:([^ \t\r\n\x00\x0b`]+)(?=[ \t\r\n\x00\x0b]))?(?:\r\n|\n\r|\n|\r)?")


def read(source: str) -> Read:
    """Raises ``Refused`` with the server's words."""
    reader = Reader(source.encode())
    reader.run()
    return shown(bytes(reader.text).decode(), reader.decoded())


def refused(words: str) -> Refused:
    return Refused(f"can't parse entities: {words}")


@dataclass
class Open:
    kind: str
    start: int
    source_start: int
    value: str = ""


@dataclass
class Reader:
    source: bytes
    at: int = 0
    text: bytearray = field(default_factory=bytearray)
    entities: list[Entity] = field(default_factory=list)
    """In bytes of the text, until they are decoded."""
    open: list[Open] = field(default_factory=list)
    quoted: bool = False
    at_line_start: bool = True

    def run(self) -> None:
        while self.at < len(self.source):
            self.step()
        self.end_quote_at_the_end()
        if self.open:
            raise self.endless(self.open[-1])

    def decoded(self) -> list[Entity]:
        def characters(end: int) -> int:
            return len(self.text[:end].decode())

        return [Entity(one.kind, characters(one.start), characters(one.end), one.value) for one in self.entities]

    def step(self) -> None:
        byte = self.source[self.at]
        if byte == ord("\\") and self.at + 1 < len(self.source) and 0 < self.source[self.at + 1] <= 126:
            self.at += 1
            self.plain(escaped=True)
        elif byte not in (b"`" if self.open and self.open[-1].kind in LITERAL else RESERVED):
            self.plain(escaped=False)
        elif self.quoted and self.ends_a_line():
            self.end_quote()
        elif self.open and self.ends(self.open[-1].kind):
            self.close()
        else:
            self.begin()

    def plain(self, *, escaped: bool) -> None:
        byte = self.source[self.at]
        if byte != ord("\r"):
            self.at_line_start = escaped and byte == ord("\n")
        self.text.append(byte)
        self.at += 1

    def follows(self, words: bytes) -> bool:
        return self.source.startswith(words, self.at)

    def ends_a_line(self) -> bool:
        return self.follows(b"\n") and not self.follows(b"\n>")

    def ends(self, kind: str) -> bool:
        if kind == "italic":
            return self.follows(b"_") and not self.follows(b"__")
        return kind in ENDS and self.follows(ENDS[kind])

    def begin(self) -> None:
        start = self.at
        if self.follows(b"\n"):
            self.text += b"\n"
            self.at += 1
            self.at_line_start = True
        elif self.follows(b">") and self.at_line_start:
            self.at += 1
            if not self.quoted:
                self.quoted = True
                self.open.append(Open("blockquote", len(self.text), start))
        elif match := FENCE.match(self.source, self.at):
            self.at = match.end()
            self.open.append(Open("pre", len(self.text), start, (match[1] or b"").decode()))
        else:
            kind, size = self.begun()
            self.at += size
            self.open.append(Open(kind, len(self.text), start))

    def begun(self) -> tuple[str, int]:
        for words, kind in (
            (b"__", "underline"),
            (b"_", "italic"),
            (b"*", "bold"),
            (b"~", "strikethrough"),
            (b"||", "spoiler"),
            (b"[", "text_link"),
            (b"![", "custom_emoji"),
            (b"`", "code"),
        ):
            if self.follows(words):
                return kind, len(words)
        character = chr(self.source[self.at])
        raise refused(f"Character '{character}' is reserved and must be escaped with the preceding '\\'")

    def close(self) -> None:
        opened = self.open.pop()
        self.at += len(ENDS.get(opened.kind, b"_"))
        text = bytes(self.text[opened.start :])
        if opened.kind == "text_link":
            self.close_link(opened, self.address() if self.follows(b"(") else text.decode())
        elif opened.kind == "custom_emoji":
            if not self.follows(b"("):
                raise refused("The entity must contain a tg://emoji or tg://time URL")
            self.add(*special(self.address()), opened)
        else:
            self.add(opened.kind, opened.value, opened)

    def close_link(self, opened: Open, address: str) -> None:
        if (known := person(address)) is not None:
            self.add("text_mention", known, opened)
        elif (found := link(address)) is not None:
            self.add("text_link", found, opened)

    def add(self, kind: str, value: str, opened: Open) -> None:
        if len(self.text) > opened.start:
            self.entities.append(Entity(kind, opened.start, len(self.text), value))

    def address(self) -> str:
        self.at += 1
        start, found = self.at, bytearray()
        while self.at < len(self.source) and not self.follows(b")"):
            if self.follows(b"\\") and 0 < (self.source[self.at + 1 : self.at + 2] or b"\0")[0] <= 126:
                self.at += 1
            found.append(self.source[self.at])
            self.at += 1
        if not self.follows(b")"):
            raise refused(f"Can't find end of a URL at byte offset {start}")
        self.at += 1
        return found.decode()

    def end_quote(self) -> None:
        """An unclosed ``||`` at the end of the line makes the quote expandable."""
        opened, kind = self.open.pop(), "blockquote"
        if opened.kind != "blockquote":
            carriage_return = self.text.endswith(b"\r") and opened.source_start == self.at - 3
            if opened.kind != "spoiler" or not (opened.source_start == self.at - 2 or carriage_return):
                raise self.endless(opened)
            opened, kind = self.open.pop(), "expandable_blockquote"
            if opened.kind != "blockquote":
                raise self.endless(opened)
        self.text += b"\n"
        self.at += 1
        self.quoted, self.at_line_start = False, True
        self.add(kind, "", opened)

    def end_quote_at_the_end(self) -> None:
        if not self.quoted:
            return
        kind = "blockquote"
        if self.open[-1].kind == "spoiler" and self.open[-1].source_start == len(self.source) - 2:
            self.open.pop()
            kind = "expandable_blockquote"
        if self.open[-1].kind == "blockquote":
            self.add(kind, "", self.open.pop())

    def endless(self, opened: Open) -> Refused:
        name = "PreCode" if opened.kind == "pre" and opened.value else NAMES.get(opened.kind, "Pre")
        return refused(f"Can't find end of {name} entity at byte offset {opened.source_start}")


def special(address: str) -> tuple[str, str]:
    match = re.fullmatch("tg:(?://)?(emoji|time)/?\\?([^#]*)(?:#.*)?", address, re.IGNORECASE)
    values = dict(parse_qsl(match[2])) if match else {}
    kind = match[1].lower() if match else ""
    if kind == "emoji" and re.fullmatch("-?[1-9][0-9]{0,18}", values.get("id", "")):
        return "custom_emoji", values["id"]
    moment = values.get("unix", "")
    if kind == "time" and is_moment(moment) and is_date_format(values.get("format", "")):
        return "date_time", moment
    raise refused("Invalid tg://emoji or tg://time URL specified")


def is_moment(written: str) -> bool:
    return re.fullmatch("[1-9][0-9]*", written) is not None and int(written) < 2**31
