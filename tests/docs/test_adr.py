"""The records of decisions stay few and short, and the index names each."""

import re

from autopost_bench.report.bars import BARS
from autopost_cli.schema import schema_files
from docs.support.documents import ROOT, read

MOST_RECORDS, MOST_LINES = 15, 60


def test_there_are_at_most_fifteen_records_of_a_page_and_the_index_names_each() -> None:
    records = sorted((ROOT / "docs" / "adr").glob("*.md"))

    assert [record.name[:4] for record in records] == [f"{number:04}" for number in range(1, len(records) + 1)]
    assert len(records) <= MOST_RECORDS
    for record in records:
        text = record.read_text(encoding="utf-8")
        assert text.startswith(f"# {int(record.name[:4])}. ")
        assert len(text.splitlines()) <= MOST_LINES
        assert "**Context.**" in text
        assert "**Decision" in text
        assert "**Consequences.**" in text
        assert f"(adr/{record.name})" in read("docs/README.md")


def test_each_planner_setting_of_a_function_has_a_line_with_a_bar_of_the_bench() -> None:
    rows = re.findall(r"^\| (`.+?|[a-z].+?) \| (.+?) \| .+ \|$", read("docs/adr/0003-pinned-plans.md"), re.MULTILINE)
    explained = set(re.findall(r"`(\w+)`", "".join(trick for trick, _ in rows)))
    used = {name for file in schema_files.objects() for name in re.findall(r"SET (enable_\w+|plan_\w+)", file.text)}

    assert used - explained == set()
    assert {bar for _, bar in rows} <= {bar.name for bar in BARS}
    assert len(rows) >= 9
