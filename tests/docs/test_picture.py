"""The picture of the architecture names tables, functions and variables of today."""

import itertools
import re

from docs.support.documents import ROOT, read

NAME = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")


def named_in_the_picture() -> set[str]:
    texts = re.findall(r'class="mono[^"]*">([^<]+)<', read("docs/architecture.svg"))
    halves = itertools.pairwise(texts)
    whole = [first + second.split(",")[0] if first.endswith("_") else "" for first, second in halves]
    return {name for text in (*texts, *whole) for name in NAME.findall(text)}


def test_every_table_and_function_in_the_picture_exists() -> None:
    tables = {
        name
        for file in (ROOT / "db" / "tables").glob("*.sql")
        for name in re.findall(r"^CREATE TABLE (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    functions = {file.stem for file in (ROOT / "db" / "functions").glob("*/*.sql")}

    named = named_in_the_picture()

    assert {"admit_posts", "claim_deliveries", "commit_sent", "channel_due"} <= named
    assert named <= tables | functions
