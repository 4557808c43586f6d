"""The glossary defines each word once, in alphabetical order."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENTRY = re.compile(r"^\| (?P<word>[a-z][\w -]*) \| (?P<meaning>.+) \|$", re.MULTILINE)


def test_the_glossary_defines_each_word_once_in_order() -> None:
    words = [entry["word"] for entry in ENTRY.finditer((ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"))]

    assert len(words) >= 60
    assert words == sorted(set(words))
