"""The records of decisions stay few and short, and the index names each."""

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
