"""The walks of docs/architecture.md name files and functions that exist."""

import re

from docs.support.documents import ROOT, read

HOP = re.compile(
    r"^\| (?P<number>\d+) \| \[[^\]]+\]\((?P<path>[^)]+)\) \| (?:`(?P<function>\w+)`)? ?\| (?P<what>.+) \|$",
    re.MULTILINE,
)
MOST_HOPS = 5


def walks() -> dict[str, list[re.Match[str]]]:
    _, *sections = re.split(r"^### ", read("docs/architecture.md"), flags=re.MULTILINE)
    return {section.splitlines()[0]: list(HOP.finditer(section)) for section in sections}


def test_there_are_six_walks_with_numbered_hops() -> None:
    assert len(walks()) == 6
    for hops in walks().values():
        numbers = [int(hop["number"]) for hop in hops]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_every_hop_is_a_function_that_exists() -> None:
    missing = []
    for title, hops in walks().items():
        for hop in hops:
            file = (ROOT / "docs" / hop["path"]).resolve()
            defined = rf"def {hop['function']}\(" if file.suffix == ".py" else rf"FUNCTION {hop['function']}\("
            if not file.exists() or (hop["function"] and not re.search(defined, file.read_text(encoding="utf-8"))):
                missing.append(f"{title}: {hop[0]}")

    assert missing == []


def test_a_text_post_needs_at_most_five_hops_from_normalised_to_the_database() -> None:
    hops = {
        word: hop
        for hop in walks()["One text post"]
        for word in ("normalised", "database")
        if f"**{word}**" in hop["what"]
    }

    assert 0 < int(hops["database"]["number"]) - int(hops["normalised"]["number"]) <= MOST_HOPS
