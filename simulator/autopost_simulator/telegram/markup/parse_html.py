"""The HTML parser of the Bot API: few tags, four named references, strict errors."""

import re
from dataclasses import dataclass

from autopost_simulator.telegram.markup.formatting import Entity, EntityBuilder, Formatted, ParseError, byte_offset
from autopost_simulator.telegram.markup.time_links import custom_emoji, date_time, lenient_integer

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
_REFERENCE = re.compile(r"&(?:#(?:x(?P<hex>[0-9a-fA-F]*)|(?P<dec>[0-9]*))|(?P<name>[A-Za-z]*));?")
_LONGEST_NUMBER = 9  # characters, with & and #
_SPACE = r" \t\r\n\0\v"
_TAG_NAME = re.compile(rf"[^{_SPACE}>]*")
_ATTRIBUTE_NAME = re.compile(rf"[^{_SPACE}=>/\"']*")
_BARE_VALUE = re.compile(r"[0-9A-Za-z.-]*")
_PLAIN = re.compile(r"[^<&]*")
_SPACES = re.compile(rf"[{_SPACE}]*")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class _Tag:
    """``argument`` is the value that matters for this tag: an address, a language, an identifier."""

    name: str
    mark: tuple[int, int]
    argument: str = ""
    unix_time: int = 0


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
        return self._checked(self._out.formatted())

    def _checked(self, formatted: Formatted) -> Formatted:
        if _SURROGATE.search(formatted.text):
            raise ParseError(
                "Text contains invalid Unicode characters after decoding HTML entities, "
                "check for unmatched surrogate code units"
            )
        for entity in formatted.entities:
            if entity["type"] == "code":
                entity.pop("language", None)
        return formatted

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
        if not self._peek():
            raise self._error("Unclosed start tag", begin)
        if name not in TAGS:
            raise self._error(f'Unsupported start tag "{name}"', begin)
        tag = _Tag(name, self._out.mark())
        self._attributes(tag, begin)
        if name == "span" and tag.argument != "spoiler":
            raise self._error('Tag "span" must have class "tg-spoiler"', begin)
        self._open.append(tag)

    def _attributes(self, tag: _Tag, begin: int) -> None:
        while True:
            self._token(_SPACES)
            if self._peek() == ">":
                self._at += 1
                return
            name = self._token(_ATTRIBUTE_NAME)
            if not name:
                raise self._error(f'Empty attribute name in the tag "{tag.name}"', begin)
            self._token(_SPACES)
            if self._peek() == "=":
                _set(tag, name, self._attribute_value(tag, begin))
            elif not self._peek():
                raise self._error(f'Unclosed start tag "{tag.name}"', begin)
            elif (tag.name, name) == ("blockquote", "expandable"):
                tag.argument = "1"

    def _attribute_value(self, tag: _Tag, begin: int) -> str:
        self._at += 1
        self._token(_SPACES)
        quote = self._peek()
        if not quote:
            raise self._error(f'Unclosed start tag "{tag.name}"', begin)
        value = self._quoted(quote) if quote in "\"'" else self._name_token()
        if not self._peek():
            raise self._error("Unclosed start tag", begin)
        return value

    def _name_token(self) -> str:
        begin = self._at
        value = self._token(_BARE_VALUE).lower()
        if self._peek() and self._peek() not in " \t\r\n\0\v>":
            raise self._error("Unexpected end of name token", begin)
        return value

    def _quoted(self, quote: str) -> str:
        self._at += 1
        value = []
        while self._peek() and self._peek() != quote:
            value.append(self._character())
        self._at += bool(self._peek())
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
        tag = self._open[-1]
        if name not in ("", tag.name):
            where = byte_offset(self._source, begin)
            raise ParseError(f'Unmatched end tag at byte offset {where}, expected "</{tag.name}>", found "</{name}>"')
        if self._out.length > tag.mark[0]:
            self._emit(tag)
        self._open.pop()

    def _emit(self, tag: _Tag) -> None:
        match tag.name:
            case "a":
                self._out.link(tag.mark, tag.argument or None)
            case "code":
                self._emit_code(tag)
            case "pre":
                self._emit_pre(tag)
            case "blockquote":
                self._out.entity("expandable_blockquote" if tag.argument else "blockquote", tag.mark)
            case "tg-emoji":
                self._out.entity("custom_emoji", tag.mark, **custom_emoji(tag.argument))
            case "tg-time":
                shown = date_time(tag.unix_time, tag.argument)
                if tag.unix_time > 0:
                    self._out.entity("date_time", tag.mark, **shown)
            case simple:
                self._out.entity(_SIMPLE[simple], tag.mark)

    def _emit_code(self, tag: _Tag) -> None:
        """``<code class="language-…">`` gives the ``<pre>`` of the same range its language."""
        inner = self._same_range(tag, "pre")
        if inner is not None and tag.argument:
            inner["language"] = tag.argument
        else:
            self._out.entity("code", tag.mark, language=tag.argument)

    def _emit_pre(self, tag: _Tag) -> None:
        inner = self._same_range(tag, "code")
        if inner is not None and inner["language"]:
            inner["type"] = "pre"
        else:
            self._out.entity("pre", tag.mark)

    def _same_range(self, tag: _Tag, kind: str) -> Entity | None:
        last = self._out.entities[-1] if self._out.entities else None
        if last is None or last["type"] != kind or (kind == "pre" and "language" in last):
            return None
        same = (last["offset"], last["length"]) == (tag.mark[0], self._out.length - tag.mark[0])
        return last if same else None

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


def _set(tag: _Tag, name: str, value: str) -> None:
    """Names of attributes are case-sensitive, and unknown ones are ignored."""
    match tag.name, name:
        case ("a", "href") | ("tg-emoji", "emoji-id") | ("tg-time", "format"):
            tag.argument = value
        case ("code", "class") if value.startswith("language-"):
            tag.argument = value.removeprefix("language-")
        case ("span", "class") if value.startswith("tg-"):
            tag.argument = value.removeprefix("tg-")
        case ("blockquote", "expandable"):
            tag.argument = "1"
        case ("tg-time", "unix"):
            tag.unix_time = lenient_integer(value)
        case _:
            pass


def _decode(reference: re.Match[str]) -> str | None:
    """``None`` for what is no character; the text then stays as it was written."""
    if reference["name"] is not None:
        return _NAMED.get(reference["name"])
    digits, base = (reference["dec"], 10) if reference["hex"] is None else (reference["hex"], 16)
    code = int(digits, base) if digits else 0
    if code == 0 or code >= 0x10FFFF or len(reference[0].removesuffix(";")) > _LONGEST_NUMBER:
        return None
    return chr(code)
