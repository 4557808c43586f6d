"""Every relative link in a document leads to a file, and to a heading where it names one."""

import re

from docs.support.documents import ROOT, anchors, documents, relative_links

LABELLED = re.compile(r"\[(?P<label>[\w/]+\.(?:py|sql|md|svg|png))\]\((?P<path>[^)\s]+)\)")


def test_every_relative_link_leads_to_a_file_and_a_heading_that_exist() -> None:
    broken = []
    found = documents()
    for document in found:
        for target in relative_links(document.read_text(encoding="utf-8")):
            path, _, anchor = target.partition("#")
            led = (document.parent / path).resolve() if path else document
            led = led / "README.md" if anchor and led.is_dir() else led
            if not led.exists() or (anchor and anchor not in anchors(led.read_text(encoding="utf-8"))):
                broken.append(f"{document.relative_to(ROOT)}: {target}")

    assert len(found) > 10
    assert broken == []


def test_a_label_that_is_a_file_name_is_the_name_of_the_file() -> None:
    misnamed = [
        f"{document.relative_to(ROOT)}: {link[0]}"
        for document in documents()
        for link in LABELLED.finditer(document.read_text(encoding="utf-8"))
        if not link["path"].partition("#")[0].endswith(link["label"])
    ]

    assert misnamed == []


def test_a_link_to_nothing_is_seen() -> None:
    assert list(relative_links("[a](b.md) `[c](d.md)` [e](https://example.org) [f](#g)")) == ["b.md", "#g"]
    assert anchors("# One & two: `three`\n") == {"one--two-three"}
