"""The first web link of a text, as Telegram finds it: a preview with a size must name it letter by letter."""

import re
from collections.abc import Iterator
from itertools import islice

from autopost_adapters.markup.links import has_public_host, wrong_address
from autopost_adapters.markup.marked import CODE, Marked

_WEB = ("http://", "https://")
_URL = re.compile(
    r"https?://(?P<host>[\w.@:%~-]*\w)(?P<path>[/?#][^\s<>\"«»\u2000-\u200b\u200e\u200f\u2016-\u206f]*)?", re.IGNORECASE
)
"""A path may contain any punctuation."""
_ENDS_NO_URL = ".:;,('?!`"
_OPENING = {")": "(", "]": "[", "}": "{"}


def first_web_link(marked: Marked) -> str | None:
    """As markup or as it stands; in code there are no links."""
    return next((url for _, url in sorted(_candidates(marked))), None)


def _candidates(marked: Marked) -> Iterator[tuple[int, str]]:
    """The first one in markup, and the first one that stands in the text."""
    links = ((entity.start, entity.value) for entity in marked.entities if entity.kind == "link")
    yield from islice((link for link in links if link[1].lower().startswith(_WEB)), 1)
    code = [entity for entity in marked.entities if entity.kind in CODE]
    at = 0
    for found in _URL.finditer(marked.text):
        while at < len(code) and code[at].end <= found.start():
            at += 1
        is_in_code = at < len(code) and code[at].start <= found.start()
        url = found[0].removesuffix(found["path"] or "") + _path(found["path"] or "")
        if not is_in_code and wrong_address(url) is None and has_public_host(url):
            yield found.start(), url
            return


def _path(path: str) -> str:
    """Without the punctuation after it, and up to a bracket that was opened before the URL."""
    open_ = dict.fromkeys(_OPENING.values(), 0)
    end = len(path)
    for at, character in enumerate(path):
        if character in open_:
            open_[character] += 1
        elif character in _OPENING:
            open_[_OPENING[character]] -= 1
            if open_[_OPENING[character]] < 0:
                end = at
                break
    return path[:end].rstrip(_ENDS_NO_URL)
