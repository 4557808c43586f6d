"""The HTML parser of the Bot API: few tags, four named entities, strict errors."""

import re
from dataclasses import dataclass, field

from autopost_simulator.telegram.markup.formatting import EntityBuilder, Formatted, ParseError, byte_offset

_SIMPLE = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
    "span": "spoiler",
}
TAGS = frozenset(_SIMPLE) | {"a", "code", "pre", "blockquote", "tg-emoji", "tg-time"}

_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_REFERENCE = re.compile(r"&(?:#x(?P<hex>[0-9a-fA-F]{1,6})|#(?P<dec>[0-9]{1,7})|(?P<name>lt|gt|amp|quot));?")
_TAG_NAME = re.compile(r"[^\s>]*")
_ATTRIBUTE_NAME = re.compile(r"[^\s=>]*")
_BARE_VALUE = re.compile(r"[0-9A-Za-z.-]*")
_PLAIN = re.compile(r"[^<&]*")
_SPACES = re.compile(r"\s*")


@dataclass(slots=True)
class _Tag:
    name: str
    mark: tuple[int, int]
    attributes: dict[str, str] = field(default_factory=dict)


def parse_html(text: str) -> Formatted:
    return _HtmlParser(text).parse()


class _HtmlParser:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._out = EntityBuilder()
        self._open: list[_Tag] = []

    def parse(self) -> Formatted:
        while self._at < len(self._source):
            if run := self._token(_PLAIN):
                self._out.add(run)
            elif self._peek() == "&":
                self._out.add(self._character())
            elif self._source.startswith("</", self._at):
                self._end_tag()
            else:
                self._start_tag()
        if self._open:
            raise ParseError(f'Can\'t find end tag corresponding to start tag "{self._open[-1].name}"')
        return self._out.formatted()

    def _character(self) -> str:
        reference = _REFERENCE.match(self._source, self._at)
        decoded = _decode(reference) if reference else None
        if reference and decoded:
            self._at = reference.end()
            return decoded
        self._at += 1
        return self._source[self._at - 1]

    def _start_tag(self) -> None:
        begin = self._at
        self._at += 1
        name = self._token(_TAG_NAME).lower()
        if self._at == len(self._source):
            raise self._error("Unclosed start tag", begin)
        if name not in TAGS:
            raise self._error(f'Unsupported start tag "{name}"', begin)
        tag = _Tag(name, self._out.mark())
        self._attributes(tag, begin)
        if name == "span" and tag.attributes.get("class") != "tg-spoiler":
            raise self._error('Tag "span" must have class "tg-spoiler"', begin)
        self._open.append(tag)

    def _attributes(self, tag: _Tag, begin: int) -> None:
        while True:
            self._token(_SPACES)
            if self._peek() == ">":
                self._at += 1
                return
            name = self._token(_ATTRIBUTE_NAME).lower()
            if not self._peek():
                raise self._error("Unclosed start tag", begin)
            if not name:
                raise self._error(f'Empty attribute name in the tag "{tag.name}"', begin)
            tag.attributes[name] = self._attribute_value(begin)

    def _attribute_value(self, begin: int) -> str:
        """Empty for an attribute without value."""
        self._token(_SPACES)
        if self._peek() != "=":
            return ""
        self._at += 1
        self._token(_SPACES)
        quote = self._peek()
        if quote and quote in "\"'":
            return self._quoted(quote, begin)
        value = self._token(_BARE_VALUE).lower()
        if not self._peek():
            raise self._error("Unclosed start tag", begin)
        if not self._peek().isspace() and self._peek() != ">":
            raise self._error("Unexpected end of name token", begin)
        return value

    def _quoted(self, quote: str, begin: int) -> str:
        self._at += 1
        value = []
        while self._peek() and self._peek() != quote:
            value.append(self._character())
        if not self._peek():
            raise self._error("Unclosed start tag", begin)
        self._at += 1
        return "".join(value)

    def _end_tag(self) -> None:
        begin = self._at
        if not self._open:
            raise self._error("Unexpected end tag", begin)
        self._at += 2
        name = self._token(_TAG_NAME).lower()
        self._token(_SPACES)
        if self._peek() != ">":
            raise self._error("Unclosed end tag", begin)
        self._at += 1
        tag = self._open.pop()
        if name not in ("", tag.name):
            where = byte_offset(self._source, begin)
            raise ParseError(f'Unmatched end tag at byte offset {where}, expected "</{tag.name}>", found "</{name}>"')
        self._emit(tag)

    def _emit(self, tag: _Tag) -> None:
        match tag.name:
            case "a":
                self._out.link(tag.mark, tag.attributes.get("href", ""))
            case "code":
                self._emit_code(tag)
            case "pre":
                self._emit_pre(tag)
            case "blockquote":
                kind = "expandable_blockquote" if "expandable" in tag.attributes else "blockquote"
                self._out.entity(kind, tag.mark)
            case "tg-emoji":
                self._out.entity("custom_emoji", tag.mark, custom_emoji_id=tag.attributes.get("emoji-id", ""))
            case "tg-time":
                self._emit_time(tag)
            case simple:
                self._out.entity(_SIMPLE[simple], tag.mark)

    def _emit_code(self, tag: _Tag) -> None:
        language = tag.attributes.get("class", "")
        inside_pre = bool(self._open) and self._open[-1].name == "pre"
        if inside_pre and language.startswith("language-"):
            self._open[-1].attributes["language"] = language.removeprefix("language-")
        elif not inside_pre:
            self._out.entity("code", tag.mark)

    def _emit_time(self, tag: _Tag) -> None:
        unix, shown = tag.attributes.get("unix", ""), tag.attributes.get("format", "")
        if unix.isascii() and unix.isdigit():
            self._out.entity("date_time", tag.mark, unix_time=int(unix), date_time_format=shown)

    def _emit_pre(self, tag: _Tag) -> None:
        language = tag.attributes.get("language", "")
        self._out.entity("pre", tag.mark, **({"language": language} if language else {}))

    def _peek(self) -> str:
        return self._source[self._at : self._at + 1]

    def _token(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._source, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return found[0]

    def _error(self, what: str, position: int) -> ParseError:
        return ParseError(f"{what} at byte offset {byte_offset(self._source, position)}")


def _decode(reference: re.Match[str]) -> str | None:
    """``None`` for a number that is not a character; the text then stays as it was written."""
    if reference["name"]:
        return _NAMED[reference["name"]]
    code = int(reference["hex"], 16) if reference["hex"] else int(reference["dec"])
    if code == 0 or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        return None
    return chr(code)
