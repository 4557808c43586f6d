"""The documents of the repository, and what they point to."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
NOT_OURS = {"build", "dist", "node_modules"}
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)|(?:src|href)=\"(?P<attribute>[^\"]+)\"")
_ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:|^//")


def documents() -> list[Path]:
    """Every Markdown file of the project; what is hidden, built or installed is not of it."""
    found: list[Path] = []
    for folder, inner, names in os.walk(ROOT):
        inner[:] = [name for name in inner if not name.startswith(".") and name not in NOT_OURS]
        found += [Path(folder) / name for name in names if name.endswith(".md")]
    return sorted(found)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def relative_links(text: str) -> Iterator[str]:
    """Targets inside the repository. Code is no prose: brackets in it are no links."""
    for link in _LINK.finditer(_CODE.sub("", _FENCE.sub("", text))):
        target = link["target"] or link["attribute"]
        if not _ELSEWHERE.match(target):
            yield target


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to the headings."""
    titles = re.findall(r"^#+ (.+)$", _FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
