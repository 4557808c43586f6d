"""Formatting of MAX messages. There are no errors: unknown markup is dropped or left as text."""

import re
from html.parser import HTMLParser
from typing import Any

Markup = dict[str, Any]

_TAGS = {
    "i": "emphasized",
    "em": "emphasized",
    "b": "strong",
    "strong": "strong",
    "del": "strikethrough",
    "s": "strikethrough",
    "ins": "underline",
    "u": "underline",
    "pre": "monospaced",
    "code": "monospaced",
    "mark": "highlighted",
    "blockquote": "quote",
    "h1": "heading",
    "a": "link",
}
_USER = re.compile(r"max://user/(\d+)")


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", errors="surrogatepass")) // 2


class MarkupBuilder:
    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.length = 0
        self.markup: list[Markup] = []

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def add(self, text: str) -> None:
        self._pieces.append(text)
        self.length += utf16_length(text)

    def mark(self, kind: str, start: int, url: str = "") -> None:
        self.cover(kind, start, self.length, url)

    def cover(self, kind: str, start: int, end: int, url: str = "") -> None:
        if end <= start:
            return
        element: Markup = {"type": kind, "from": start, "length": end - start}
        if kind == "link" and (user := _USER.fullmatch(url)):
            element |= {"type": "user_mention", "user_id": int(user[1])}
        elif kind == "link":
            element["url"] = url
        self.markup.append(element)


def parse_html(text: str) -> MarkupBuilder:
    reader = _MarkupHtmlParser()
    reader.feed(text)
    reader.close()
    return reader.out


class _MarkupHtmlParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.out = MarkupBuilder()
        self._open: list[tuple[str, int, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _TAGS:
            self._open.append((tag, self.out.length, dict(attrs).get("href") or ""))

    def handle_endtag(self, tag: str) -> None:
        for position in range(len(self._open) - 1, -1, -1):
            if self._open[position][0] == tag:
                _, start, url = self._open.pop(position)
                self.out.mark(_TAGS[tag], start, url)
                return

    def handle_data(self, data: str) -> None:
        self.out.add(data)
