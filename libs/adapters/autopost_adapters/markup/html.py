"""Parse the HTML of senders and write the HTML of platforms.

The parser accepts the tags of Telegram and MAX, ``<br>`` and every named character reference. It reports unknown tags,
wrong nesting and invalid links by name. The writer uses only ``&lt; &gt; &amp; &quot;``: Telegram does not decode any
other reference.
"""

import html
import re
from collections.abc import Mapping
from html.entities import html5
from typing import Literal

from autopost_runtime.secrets import redaction
from msgspec import Struct

from autopost_adapters.markup.builder import Builder
from autopost_adapters.markup.links import wrong_address
from autopost_adapters.markup.marked import NAMES, Kind, Marked
from autopost_adapters.markup.writing import Tags, write

# No "<" inside a tag: the search for the end of a tag stops at the next one, so parsing takes linear time.
_TAG = r"<(?P<end>/?)(?P<tag>[A-Za-z][A-Za-z0-9-]*)(?P<rest>(?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*)>"
_TOKEN = re.compile(rf"<!--[^<]*?-->|{_TAG}|<(?=[A-Za-z/!?])")
_ATTRIBUTE = re.compile(r"""([^\s"'>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>`]+)))?""")
_CLOSES_ITSELF = re.compile(r"(?:^|[\s\"'])/$")
# A name needs its semicolon, because "?a=1&region=2" is a URL; four common names are also accepted without it.
_LENIENT_REFERENCE = re.compile(
    r"&(?:#\d{1,7};?|#[xX][0-9a-fA-F]{1,6};?|(?P<name>\w{2,31});|(?:lt|gt|amp|quot)(?![\w=]))"
)

REFERENCE = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|(?P<name>\w{2,31}));")
"""A character reference, always with its semicolon."""

_SIMPLE: Mapping[str, Kind] = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strike",
    "strike": "strike",
    "del": "strike",
    "tg-spoiler": "spoiler",
    "mark": "highlight",
}
_NUMBER = re.compile(r"[0-9]{1,20}")
_TIME_FORMAT = re.compile(r"r|[wWdDtT]{0,6}")
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
"""Shown as separate lines in bold."""
_BLOCKS = _HEADINGS | {"p", "div", "ul", "ol", "li", "table", "tr", "section"}


def read_html(text: str) -> tuple[Marked, str | None]:
    """The parsed text, and the first error in its markup."""
    reader = _HtmlReader()
    at = 0
    for token in _TOKEN.finditer(text):
        reader.text(text[at : token.start()])
        reader.token(token)
        at = token.end()
    reader.text(text[at:])
    return reader.finish()


class _OpenTag(Struct, frozen=True):
    """A tag that is not closed yet. ``kind`` is ``None`` where the tag is not supported or its attribute is invalid."""

    tag: str
    since: int
    kind: Kind | None = None
    value: str = ""
    format: str = ""


class _HtmlReader:
    def __init__(self) -> None:
        self._out = Builder()
        self._open: list[_OpenTag] = []
        self._wrong: str | None = None
        self._languages: dict[int, str] = {}
        self._is_after_heading = False

    def text(self, text: str) -> None:
        if not text:
            return
        if self._is_after_heading and not text.startswith("\n"):
            self._out.add("\n")
        self._is_after_heading = False
        self._out.add(_unescape(text))

    def token(self, token: re.Match[str]) -> None:
        name = (token["tag"] or "").lower()
        if token[0].startswith("<!--"):
            return
        if not name:
            self._note(
                f"{redaction.quoted(token.string[token.start() : token.start() + 12])!r} is not a tag; escape < as &lt;"
            )
            self._out.add(token[0])
        elif name == "br":
            self._is_after_heading = False
            self._out.add("\n")
        elif token["end"]:
            self._end(name)
        elif _CLOSES_ITSELF.search(token["rest"]):
            self._note(f"<{redaction.quoted(name)}/> is not a supported tag")
        else:
            self._start(name, _attributes(token["rest"]))

    def finish(self) -> tuple[Marked, str | None]:
        if self._open:
            self._note(f"<{redaction.quoted(self._open[-1].tag)}> is not closed")
        return self._out.marked(), self._wrong

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        here = self._out.here
        match name:
            case "a":
                self._open.append(_OpenTag(name, here, self._link(attributes), _address(attributes)))
            case "blockquote":
                kind: Kind = "expandable_quote" if "expandable" in attributes else "quote"
                self._open.append(_OpenTag(name, here, kind))
            case "pre":
                self._take_language(self._open[-1] if self._open else None, here)
                self._open.append(_OpenTag(name, here, "pre"))
            case "code":
                self._open.append(_OpenTag(name, here, "code", attributes.get("class", "")))
            case "span" if attributes.get("class") == "tg-spoiler":
                self._open.append(_OpenTag(name, here, "spoiler"))
            case "tg-emoji":
                self._open.append(_OpenTag(name, here, *self._numbered("custom_emoji", attributes, "emoji-id", 2**63)))
            case "tg-time":
                time = self._numbered("time", attributes, "unix", 2**31)
                self._open.append(_OpenTag(name, here, *time, self._time_format(attributes)))
            case _:
                self._open.append(_OpenTag(name, here, self._simple(name)))

    def _simple(self, name: str) -> Kind | None:
        if name in _HEADINGS:
            self._break_line(name)
            return "bold"
        kind = _SIMPLE.get(name)
        if kind is None:
            self._note(f"<{redaction.quoted(name)}> is not a supported tag")
            self._break_line(name)
        return kind

    def _link(self, attributes: Mapping[str, str]) -> Literal["link"] | None:
        url = _address(attributes)
        wrong = wrong_address(url) if url else "href is missing"
        if wrong:
            self._note(f"<a>: {wrong}")
        return None if wrong else "link"

    def _numbered(self, kind: Kind, attributes: Mapping[str, str], name: str, bound: int) -> tuple[Kind | None, str]:
        number = attributes.get(name, "")
        if _NUMBER.fullmatch(number) and 0 < int(number) < bound:
            return kind, str(int(number))
        self._note(f"{NAMES[kind]} needs a number in {name}, from 1 to {bound - 1}")
        return None, ""

    def _time_format(self, attributes: Mapping[str, str]) -> str:
        shown = attributes.get("format", "")
        if not _TIME_FORMAT.fullmatch(shown):
            self._note(f"<tg-time>: format {redaction.quoted(shown)!r} must be r, or letters of wWdDtT")
        return shown

    def _end(self, name: str) -> None:
        if not self._open or self._open[-1].tag != name:
            self._note(f"</{redaction.quoted(name)}> has no matching opening tag")
            return
        opened = self._open.pop()
        self._is_after_heading |= name in _HEADINGS
        if opened.kind == "code":
            self._end_code(opened)
        elif opened.kind == "pre":
            self._out.cover("pre", opened.since, self._languages.pop(opened.since, ""))
        elif opened.kind:
            self._out.cover(opened.kind, opened.since, opened.value, opened.format)
        else:
            self._break_line(name)

    def _end_code(self, opened: _OpenTag) -> None:
        """Inside ``pre``, ``code`` only names the language."""
        outer = self._open[-1] if self._open else None
        if outer is None or outer.kind != "pre":
            self._out.cover("code", opened.since)
        else:
            self._take_language(opened, outer.since)

    def _take_language(self, code: _OpenTag | None, pre: int) -> None:
        """A block of code has its language from the ``code`` inside it, or from the one that it begins."""
        if code and code.kind == "code" and code.value.startswith("language-") and code.since >= pre:
            self._languages[pre] = code.value.removeprefix("language-")

    def _break_line(self, name: str) -> None:
        """Blocks stay on separate lines where the markup cannot be shown."""
        if name in _BLOCKS and not self._out.at_line_start():
            self._out.add("\n")

    def _note(self, problem: str) -> None:
        self._wrong = self._wrong or problem


def _attributes(text: str) -> dict[str, str]:
    """The first attribute of a name wins; one without a value is empty."""
    found: dict[str, str] = {}
    for name, *values in _ATTRIBUTE.findall(text):
        found.setdefault(name.lower(), _unescape("".join(values)))
    return found


def _address(attributes: Mapping[str, str]) -> str:
    """A space in a URL is encoded, as browsers and Telegram do."""
    return attributes.get("href", "").strip(" \t\n").replace(" ", "%20")


def _unescape(text: str) -> str:
    return _LENIENT_REFERENCE.sub(character_of, text)


def character_of(reference: re.Match[str]) -> str:
    """An unknown name stays as it stands."""
    if reference["name"]:
        return html5.get(f"{reference['name']};", reference[0])
    return html.unescape(reference[0])


def write_html(marked: Marked, tags: Tags) -> str:
    return write(marked, tags, lambda text, _inside: escape(text))


def escape(text: str) -> str:
    return html.escape(text, quote=False)


def quoted(text: str) -> str:
    return '"' + html.escape(text, quote=False).replace('"', "&quot;") + '"'
