"""What is written for a platform is read as what was meant: by our own readers and by the simulated platforms."""

from typing import Any

from autopost_adapters.markup.html import read_html
from autopost_adapters.markup.markdown import read_markdown
from autopost_adapters.markup.marked import Entity, Kind, Marked
from autopost_adapters.max.limits import LIMITS as MAX
from autopost_adapters.telegram.limits import LIMITS as TELEGRAM
from autopost_simulator.max.text import markdown as simulated_markdown
from autopost_simulator.max.text import markup as simulated_max
from autopost_simulator.telegram.markup import parse_html as simulated_telegram
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from adapters.random_markup import marked_texts

ON_TELEGRAM: dict[Kind, str] = {
    "strike": "strikethrough",
    "quote": "blockquote",
    "expandable_quote": "expandable_blockquote",
    "link": "text_link",
    "time": "date_time",
}
ON_MAX: dict[Kind, str] = {
    "bold": "strong",
    "italic": "emphasized",
    "strike": "strikethrough",
    "highlight": "highlighted",
    "code": "monospaced",
    "pre": "monospaced",
}

sometimes = settings(max_examples=100, deadline=None)
often = settings(max_examples=300, deadline=None)


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def places(marked: Marked, names: dict[Kind, str], *, by_line: bool = False) -> set[tuple[str, int, int, str]]:
    """Entities as a platform tells them: by UTF-16 units, a link with its address."""
    lines = [part for entity in marked.entities for part in _parts(marked.text, entity, by_line)]
    return {
        (
            names.get(entity.kind, entity.kind),
            units(marked.text[: entity.start]),
            units(marked.text[entity.start : entity.end]),
            entity.value if entity.kind == "link" else "",
        )
        for entity in lines
    }


def _parts(text: str, entity: Entity, by_line: bool) -> list[Entity]:
    """MAX tells a quote written in Markdown line by line."""
    if not by_line or entity.kind != "quote":
        return [entity]
    parts, at = [], entity.start
    for line in text[entity.start : entity.end].split("\n"):
        parts.append(replace(entity, start=at, end=at + len(line)))
        at += len(line) + 1
    return [part for part in parts if part.start < part.end]


def told_by_telegram(entities: list[dict[str, Any]]) -> set[tuple[str, int, int, str]]:
    return {(one["type"], one["offset"], one["length"], one.get("url", "")) for one in entities}


def told_by_max(markup: list[dict[str, Any]]) -> set[tuple[str, int, int, str]]:
    return {(one["type"], one["from"], one["length"], one.get("url", "")) for one in markup}


def without_languages(marked: Marked) -> Marked:
    entities = [replace(entity, value="") if entity.kind == "pre" else entity for entity in marked.entities]
    return Marked(marked.text, tuple(entities))


@sometimes
@given(marked_texts(TELEGRAM.text.kinds))
def test_html_for_telegram_is_read_back_as_it_was(marked: Marked) -> None:
    written = TELEGRAM.write(marked, "HTML")

    assert written.markup == ("html" if marked.entities else "plain")
    assert (read_html(written.text)[0] if marked.entities else Marked(written.text)) == marked


@sometimes
@given(marked_texts(TELEGRAM.text.kinds).filter(lambda marked: bool(marked.entities)))
def test_telegram_sees_the_text_and_the_entities_that_were_meant(marked: Marked) -> None:
    seen = simulated_telegram.parse_html(TELEGRAM.write(marked, "HTML").text)

    assert seen.text == marked.text
    assert told_by_telegram(seen.entities) == places(marked, ON_TELEGRAM)


@sometimes
@given(marked_texts(MAX.text.kinds).filter(lambda marked: bool(marked.entities)))
def test_max_sees_the_html_that_was_meant(marked: Marked) -> None:
    written = MAX.write(marked, "HTML")
    seen = simulated_max.parse_html(written.text)

    assert written.markup == "html"
    assert seen.text == marked.text
    assert told_by_max(seen.markup) == places(marked, ON_MAX)
    assert read_html(written.text)[0] == without_languages(marked)


@sometimes
@given(marked_texts(MAX.text.kinds, max_size=12).filter(lambda marked: bool(marked.entities)))
def test_max_sees_the_markdown_that_was_meant(marked: Marked) -> None:
    written = MAX.write(marked, "Markdown")

    if written.markup == "html":
        assert read_html(written.text)[0] == without_languages(marked)
        return
    seen = simulated_markdown.parse_markdown(written.text)
    assert seen.text == marked.text
    assert told_by_max(seen.markup) == places(marked, ON_MAX, by_line=True)
    assert read_markdown(written.text)[0] == without_languages(marked)


@often
@given(st.text(alphabet="ab \n*_~+^|`[](){}<>#&;=\"'/\\:.h🦊é\u200d", max_size=60))
def test_any_text_is_read_as_markdown_and_only_a_link_can_be_wrong(text: str) -> None:
    marked, wrong = read_markdown(text)

    assert wrong is None or "](" in text
    assert all(0 <= entity.start < entity.end <= len(marked.text) for entity in marked.entities)


@often
@given(st.text(alphabet="ab \n<>/!-&;#x=\"'bipreacod 1🦊", max_size=60))
def test_any_text_is_read_as_html_and_text_without_signs_is_itself(text: str) -> None:
    marked, _ = read_html(text)

    assert all(0 <= entity.start < entity.end <= len(marked.text) for entity in marked.entities)
    assert set("<&") & set(text) or marked.text == text.strip()
