"""Telegram's HTML as the Bot API server reads it: TDLib's ``parse_html`` and what the server was seen to do.

Positions in the source are bytes, because the server's words name bytes.
"""

import re
from dataclasses import dataclass, field

from adapters.readers.addresses import link, person
from adapters.readers.dates import is_date_format
from adapters.readers.entities import Entity, Read, Refused, shown

KINDS = {
    **dict.fromkeys(("b", "strong"), "bold"),
    **dict.fromkeys(("i", "em"), "italic"),
    **dict.fromkeys(("u", "ins"), "underline"),
    **dict.fromkeys(("s", "strike", "del"), "strikethrough"),
    **dict.fromkeys(("tg-spoiler", "span"), "spoiler"),
}
TAGS = {*KINDS, "a", "code", "pre", "blockquote", "tg-emoji", "tg-time"}

SPACE = b" \t\r\n\x00\x0b"
CHARACTER = re.compile(rb"&(?:#x([0-9a-fA-F]*)|#([0-9]*)|([A-Za-z]*))")
SURROGATE = (
    "can't parse entities: Text contains invalid Unicode characters after decoding HTML entities, "
    "check for unmatched surrogate code units"
)
NAMED = {b"lt": "<", b"gt": ">", b"amp": "&", b"quot": '"'}


def read(source: str) -> Read:
    """Raises ``Refused`` with the server's words."""
    reader = Reader(source.encode())
    reader.run()
    return shown("".join(reader.text), reader.parsed)


@dataclass
class Open:
    tag: str
    start: int
    values: dict[str, str]


@dataclass
class Reader:
    source: bytes
    at: int = 0
    text: list[str] = field(default_factory=list)
    """One code point each."""
    entities: list[Entity] = field(default_factory=list)
    open: list[Open] = field(default_factory=list)

    def run(self) -> None:
        while self.at < len(self.source):
            if self.source.startswith(b"</", self.at):
                self.close_tag()
            elif self.here() == b"<":
                self.open_tag()
            else:
                self.text.append(self.character())
        if self.open:
            raise Refused(
                f"can't parse entities: Can't find end tag corresponding to start tag \"{self.open[-1].tag}\""
            )

    def here(self) -> bytes:
        """One byte; beyond the end the NUL that ends a string in C."""
        return self.source[self.at : self.at + 1] or b"\x00"

    def skip(self, stop: bytes) -> bytes:
        """Everything up to a byte of ``stop``; the end of the source always stops."""
        start = self.at
        while self.at < len(self.source) and self.here() not in stop:
            self.at += 1
        return self.source[start : self.at]

    def skip_spaces(self) -> None:
        while self.at < len(self.source) and self.here() in SPACE:
            self.at += 1

    def character(self) -> str:
        """The next code point of text, a reference resolved."""
        if self.here() == b"&":
            known = self.reference()
            if known is not None:
                return known
        first = self.source[self.at]
        size = 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
        self.at += size
        return self.source[self.at - size : self.at].decode()

    def reference(self) -> str | None:
        match = CHARACTER.match(self.source, self.at)
        assert match is not None
        if match[3] is not None:
            found = NAMED.get(match[3])
        else:
            code = int(match[1] or b"0", 16) if match[1] is not None else int(match[2] or b"0")
            found = chr(code) if 0 < code < 0x10FFFF and len(match[0]) < 10 else None
        if found is None:
            return None
        if 0xD800 <= ord(found) <= 0xDFFF:
            raise Refused(SURROGATE)
        self.at = match.end() + self.source.startswith(b";", match.end())
        return found

    def open_tag(self) -> None:
        begin = self.at
        self.at += 1
        tag = self.skip(SPACE + b">").decode().lower()
        if self.at >= len(self.source):
            raise Refused(f"can't parse entities: Unclosed start tag at byte offset {begin}")
        if tag not in TAGS:
            raise Refused(f'can\'t parse entities: Unsupported start tag "{tag}" at byte offset {begin}')
        values: dict[str, str] = {}
        while self.attribute(tag, begin, values):
            pass
        self.at += 1
        if tag == "span" and values.get("class") != "tg-spoiler":
            raise Refused(
                f'can\'t parse entities: Tag "span" must have class "tg-spoiler" at byte offset {begin}',
            )
        self.open.append(Open(tag, len(self.text), values))

    def attribute(self, tag: str, begin: int, values: dict[str, str]) -> bool:
        self.skip_spaces()
        if self.here() == b">":
            return False
        name = self.skip(SPACE + b"=>/\"'").decode()
        if not name:
            raise Refused(f'can\'t parse entities: Empty attribute name in the tag "{tag}" at byte offset {begin}')
        self.skip_spaces()
        if self.here() == b"=":
            self.at += 1
            self.skip_spaces()
            self.unclosed(f' "{tag}"', begin)
            value = self.value()
            self.unclosed("", begin)
            if matters(tag, name, value):
                values[name] = value
        else:
            self.unclosed(f' "{tag}"', begin)
            if (tag, name) == ("blockquote", "expandable"):
                values[name] = "1"
        return True

    def unclosed(self, tag: str, begin: int) -> None:
        if self.at >= len(self.source):
            raise Refused(f"can't parse entities: Unclosed start tag{tag} at byte offset {begin}")

    def value(self) -> str:
        quote = self.here()
        if quote not in (b'"', b"'"):
            start = self.at
            while re.fullmatch(rb"[A-Za-z0-9.-]", self.here()):
                self.at += 1
            if self.here() not in SPACE + b">":
                raise Refused(f"can't parse entities: Unexpected end of name token at byte offset {start}")
            return self.source[start : self.at].decode().lower()
        self.at += 1
        found: list[str] = []
        while self.at < len(self.source) and self.here() != quote:
            found.append(self.character())
        self.at += 1
        return "".join(found)

    def close_tag(self) -> None:
        begin = self.at
        if not self.open:
            raise Refused(f"can't parse entities: Unexpected end tag at byte offset {begin}")
        self.at += 2
        tag = self.skip(SPACE + b">").decode().lower()
        self.skip_spaces()
        if self.here() != b">":
            raise Refused(f"can't parse entities: Unclosed end tag at byte offset {begin}")
        self.at += 1
        opened = self.open.pop()
        if tag and tag != opened.tag:
            raise Refused(
                f"can't parse entities: Unmatched end tag at byte offset {begin}, "
                f'expected "</{opened.tag}>", found "</{tag}>"'
            )
        if len(self.text) > opened.start:
            self.cover(opened)

    def cover(self, opened: Open) -> None:
        start, end, values = opened.start, len(self.text), opened.values
        last = self.entities[-1] if self.entities else None
        same = last is not None and (last.start, last.end) == (start, end)
        if opened.tag == "pre" and same and last is not None and last.kind == "code" and last.value:
            self.entities[-1] = Entity("pre", start, end, last.value)
        elif opened.tag == "code" and same and last is not None and last.kind == "pre" and "class" in values:
            self.entities[-1] = Entity("pre", start, end, values["class"].removeprefix("language-"))
        else:
            self.entities += meant(opened, start, end, "".join(self.text[start:]))

    @property
    def parsed(self) -> list[Entity]:
        """The language of inline code was needed only beside a ``pre``."""
        return [Entity(one.kind, one.start, one.end) if one.kind == "code" else one for one in self.entities]


def matters(tag: str, name: str, value: str) -> bool:
    """The last of several attributes wins, but only among those that say something."""
    match tag, name:
        case ("a", "href") | ("tg-emoji", "emoji-id") | ("tg-time", "unix" | "format") | ("blockquote", "expandable"):
            return True
        case "code", "class":
            return value.startswith("language-") and value != "language-"
        case "span", "class":
            return value.startswith("tg-")
    return False


def meant(opened: Open, start: int, end: int, text: str) -> list[Entity]:
    values = opened.values
    match opened.tag:
        case "a":
            address = values.get("href") or text
            if (known := person(address)) is not None:
                return [Entity("text_mention", start, end, known)]
            return [Entity("text_link", start, end, found)] if (found := link(address)) else []
        case "tg-emoji":
            if not re.fullmatch("-?[1-9][0-9]{0,18}", values.get("emoji-id", "")):
                raise Refused("can't parse entities: Invalid custom emoji identifier specified")
            return [Entity("custom_emoji", start, end, values["emoji-id"])]
        case "tg-time":
            if not is_date_format(values.get("format", "")):
                raise Refused("can't parse entities: Invalid date format used")
            digits = re.match("[0-9]*", values.get("unix", ""))
            moment = int(digits[0] or 0) if digits else 0
            return [Entity("date_time", start, end, str(moment))] if 0 < moment < 2**31 else []
        case "blockquote":
            return [Entity("expandable_blockquote" if "expandable" in values else "blockquote", start, end)]
        case "pre":
            return [Entity("pre", start, end)]
        case "code":
            return [Entity("code", start, end, values.get("class", "").removeprefix("language-"))]
    return [Entity(KINDS[opened.tag], start, end)]
