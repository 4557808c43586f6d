"""Reduce arbitrary HTML to the markup that a post supports.

Bold, italic, underline, strike, code, quotes and valid links are kept; paragraphs, lists, headings and tables become
lines; pictures are collected; all other tags are removed, scripts and styles with their content. The result is always
well-formed.
"""

import html
import re
from collections import Counter
from collections.abc import Mapping
from typing import Literal
from urllib.parse import urljoin, urlsplit

from msgspec import Struct

from autopost_ingest.pull.parsing.html_tokens import End, StartTag, tokens, unescape

MOST_PICTURES = 10
"""Per post."""
LONGEST_ADDRESS = 8192
LONGEST_HOST = 300
"""No valid host is longer, and the cost of a check grows with the length."""

_SPACES = re.compile(r"\s+")
_LONG_HOST = re.compile(rf"(?:[a-zA-Z][\w+.-]{{0,30}}:)?//[^/?#]{{{LONGEST_HOST + 1}}}")
_KEPT: Mapping[str, str] = {
    **{"b": "b", "strong": "b", "i": "i", "em": "i", "cite": "i", "u": "u", "ins": "u"},
    **{"s": "s", "strike": "s", "del": "s", "code": "code", "tt": "code", "kbd": "code", "samp": "code"},
    **{"pre": "pre", "blockquote": "blockquote", "a": "a"},
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), "b"),
}
_LINES = frozenset({"div", "li", "tr", "dt", "dd", "figcaption", "caption", "address", "option"})
_PARAGRAPHS = frozenset(
    {"p", "ul", "ol", "dl", "table", "section", "article", "header", "footer", "aside", "figure", "hr", "blockquote"}
    | {"pre", "h1", "h2", "h3", "h4", "h5", "h6", "form", "main", "nav", "details", "summary"}
)
_UNSEEN = frozenset(
    {"script", "style", "iframe", "object", "template", "svg", "math", "head", "title", "audio", "video", "select"}
    | {"textarea", "button", "noembed", "noframes"}
)
Break = Literal[0, 1, 2]


class Cleaned(Struct, frozen=True):
    html: str
    pictures: tuple[str, ...] = ()


def clean(text: str, base: str) -> Cleaned:
    """``base`` is the base URL for relative URLs."""
    cleaner = _Cleaner(base)
    for token in tokens(text):
        match token:
            case StartTag():
                cleaner.start(token)
            case End():
                cleaner.end(token.name)
            case str():
                cleaner.text(token)
    return cleaner.finish()


def plain(text: str) -> str:
    """The text without markup, on one line."""
    return _SPACES.sub(" ", unescape(re.sub(r"<[^<>]*>", "", clean(text, "").html))).strip()


def escaped(text: str) -> str:
    """Plain text as HTML."""
    return html.escape(text, quote=False)


def absolute(url: str, base: str) -> str:
    """The absolute http or https URL; empty if there is none."""
    url = url.strip()
    if not url or url.startswith("#") or not (is_reasonable(url) and is_reasonable(base)):
        return ""
    try:
        joined = urljoin(base, url)
        parts = urlsplit(joined)
    except ValueError:
        return ""
    leads = parts.scheme in ("http", "https") and "." in (parts.hostname or "")
    return joined.replace(" ", "%20") if leads and joined.replace(" ", "").isprintable() else ""


def is_reasonable(url: str) -> bool:
    """A longer URL is invalid and slow to parse."""
    return len(url) <= LONGEST_ADDRESS and not _LONG_HOST.match(url)


class _Cleaner:
    def __init__(self, base: str) -> None:
        self._base = base
        self._out: list[str] = []
        self._open: list[tuple[str, str | None]] = []
        """The open tags, each with its output tag, if it has one."""
        self._opened: Counter[str] = Counter()
        self._open_output: Counter[str | None] = Counter()
        """The number of open output tags, by tag; ``_opened`` counts the input tags."""
        self._break: Break = 0
        self._unseen: list[str] = []
        self._numbers: list[int | None] = []
        """The last number of each open list; ``None`` for an unordered list."""
        self._pictures: dict[str, None] = {}

    def start(self, start: StartTag) -> None:
        tag = start.name
        if self._unseen or tag in _UNSEEN:
            if tag in _UNSEEN and not start.is_empty:
                self._unseen.append(tag)
            return
        self._begin_lines(tag)
        match tag:
            case "img":
                self._picture(start.attributes)
            case "td" | "th":
                self._space()
            case "ul" | "ol":
                self._numbers.append(0 if tag == "ol" else None)
            case "li":
                self._bullet()
            case _ if tag in _KEPT:
                self._keep(tag, start.attributes)
            case _:
                pass

    def end(self, tag: str) -> None:
        if self._unseen:
            if tag == self._unseen[-1]:
                self._unseen.pop()
            return
        if tag in ("ul", "ol") and self._numbers:
            self._numbers.pop()
        if self._opened[tag]:
            while self._close() != tag:
                pass
        self._begin_lines(tag, ending=True)

    def text(self, data: str) -> None:
        if self._unseen:
            return
        if self._open_output["pre"]:
            self._write(escaped(data))
            return
        text = _SPACES.sub(" ", data)
        if self._break or not self._out or self._ends_with_space():
            text = text.lstrip(" ")
        if text:
            self._write(escaped(text))

    def finish(self) -> Cleaned:
        while self._open:
            self._close()
        return Cleaned("".join(self._out).strip(), tuple(self._pictures))

    def _begin_lines(self, tag: str, *, ending: bool = False) -> None:
        if tag == "br" and not ending:
            self._out.append("\n") if not self._break and self._out else None
        elif tag in _PARAGRAPHS:
            self._break = 2
        elif tag in _LINES and self._break == 0:
            self._break = 1

    def _write(self, text: str) -> None:
        if self._break and self._out and not self._has_just_opened():
            self._out.append("\n" * self._break)
        self._break = 0
        self._out.append(text)

    def _has_just_opened(self) -> bool:
        """The last output is an opening tag; escaped text never begins with ``<``."""
        return self._out[-1].startswith("<") and not self._out[-1].startswith("</")

    def _ends_with_space(self) -> bool:
        return self._out[-1][-1:] in (" ", "\n")

    def _space(self) -> None:
        if self._out and not self._break and not self._ends_with_space():
            self._out.append(" ")

    def _bullet(self) -> None:
        number = self._numbers[-1] if self._numbers else None
        if number is None:
            self._write("• ")
            return
        self._numbers[-1] = number + 1
        self._write(f"{number + 1}. ")

    def _keep(self, tag: str, attributes: Mapping[str, str]) -> None:
        kept: str | None = _KEPT[tag]
        open_output = self._open_output
        address = absolute(attributes.get("href", ""), self._base) if kept == "a" else ""
        inside_code = open_output["code"] or open_output["pre"]
        inside_link = open_output["a"] and kept in ("code", "pre", "blockquote")
        if open_output[kept] or inside_code or inside_link or (kept == "a" and not address):
            kept = None
        self._open.append((tag, kept))
        self._opened[tag] += 1
        if kept:
            open_output[kept] += 1
        if kept:
            self._write(f'<a href="{html.escape(address)}">' if kept == "a" else f"<{kept}>")

    def _close(self) -> str:
        tag, kept = self._open.pop()
        self._opened[tag] -= 1
        if kept:
            self._open_output[kept] -= 1
            self._out.append(f"</{kept}>")
        return tag

    def _picture(self, attributes: Mapping[str, str]) -> None:
        if attributes.get("width") in ("0", "1") or attributes.get("height") in ("0", "1"):
            return  # a tracking pixel
        if len(self._pictures) < MOST_PICTURES and (address := absolute(attributes.get("src", ""), self._base)):
            self._pictures[address] = None
