"""MAX's HTML, read by Python's own parser. An unknown tag is dropped without a word, as MAX does; its text stays."""

from html.parser import HTMLParser

from adapters.readers.entities import Entity, Read

KINDS = {
    **dict.fromkeys(("b", "strong", "h1"), "bold"),
    **dict.fromkeys(("i", "em"), "italic"),
    **dict.fromkeys(("u", "ins"), "underline"),
    **dict.fromkeys(("s", "del"), "strikethrough"),
    "mark": "highlight",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
    "a": "text_link",
}


def read(source: str) -> Read:
    reader = Reader()
    reader.feed(source)
    reader.close()
    assert not reader.open, f"never closed: {reader.open}"
    return Read("".join(reader.text), tuple(reader.entities))


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text: list[str] = []
        """One code point each."""
        self.entities: list[Entity] = []
        self.open: list[tuple[str, int, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in KINDS, f"MAX drops <{tag}>"
        self.open.append((tag, len(self.text), dict(attrs).get("href") or ""))

    def handle_endtag(self, tag: str) -> None:
        opened, start, address = self.open.pop()
        assert opened == tag, f"</{tag}> closes <{opened}>"
        if len(self.text) > start:
            self.entities.append(Entity(KINDS[tag], start, len(self.text), address))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(f"a declaration: {decl}")
