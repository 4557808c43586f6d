"""The page of publications names every metric of theirs, and no other."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MADE = re.compile(r'metrics\.(?:counter|gauge|histogram)\(\s*"(\w+)"')
THEIRS = ("post_scheduler", "publication", "commands", "owner_notices")


def test_the_metrics_of_publications_are_those_of_the_page() -> None:
    sources = [*(ROOT / "services").glob("*/*/**/*.py"), *(ROOT / "libs").glob("*/*/**/*.py")]
    made = {name for source in sources for name in MADE.findall(source.read_text(encoding="utf-8"))}
    section = (ROOT / "docs/publications.md").read_text(encoding="utf-8").split("## Metrics")[1].split("\n## ")[0]

    assert {name for name in made if any(word in name for word in THEIRS)} == set(
        re.findall(r"^\| `(\w+)", section, re.M)
    )
