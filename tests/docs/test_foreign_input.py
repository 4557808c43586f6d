"""The table of foreign inputs names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(?P<file>tests/[\w/]+\.py)::(?P<test>test_\w+)`")


def test_every_test_in_the_table_of_foreign_inputs_exists() -> None:
    rows = list(NAMED.finditer((ROOT / "docs" / "foreign-input.md").read_text(encoding="utf-8")))

    assert len(rows) >= 25
    for row in rows:
        assert f"def {row['test']}(" in (ROOT / row["file"]).read_text(encoding="utf-8"), row[0]
