"""What of a text is markup, and whether a platform can show it."""

import html
from collections.abc import Set
from html.parser import HTMLParser

from autopost_contracts.plan import Problem


class _Reader(HTMLParser):
    """Collects the visible text and the first thing that is wrong."""

    def __init__(self, allowed: Set[str]) -> None:
        super().__init__(convert_charrefs=True)
        self.visible: list[str] = []
        self.wrong: str | None = None
        self._allowed = allowed
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self._allowed:
            self._note(f"<{tag}> is not a tag this platform shows")
        elif tag == "a" and not dict(attrs).get("href"):
            self._note("<a> has no href")
        self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(f"<{tag}/> is not a tag this platform shows")

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self._note(f"</{tag}> closes nothing that is open")

    def handle_data(self, data: str) -> None:
        self.visible.append(data)

    def finish(self) -> str | None:
        self.close()
        if self._open:
            self._note(f"<{self._open[-1]}> is never closed")
        return self.wrong

    def _note(self, problem: str) -> None:
        self.wrong = self.wrong or problem


def check_html(text: str, allowed: Set[str]) -> tuple[str, Problem | None]:
    """The visible text, and why the platform would not show this markup, if it would not."""
    reader = _Reader(allowed)
    reader.feed(text)
    wrong = reader.finish()
    problem = Problem("markup_unsupported", "text", wrong) if wrong else None
    return "".join(reader.visible), problem


def escape(text: str) -> str:
    return html.escape(text, quote=False)
