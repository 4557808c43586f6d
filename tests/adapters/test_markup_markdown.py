"""Markdown as people write it to a chat."""

import pytest
from autopost_adapters.markup.markdown import code_spans, read_markdown
from autopost_adapters.markup.marked import Entity, Marked
from autopost_adapters.markup.max_markdown import write_markdown


def marks(marked: Marked) -> list[tuple[str, str, str]]:
    return [(entity.kind, marked.text[entity.start : entity.end], entity.value) for entity in marked.entities]


@pytest.mark.parametrize(
    ("source", "kind", "value"),
    [
        ("**x**", "bold", ""),
        ("__x__", "bold", ""),
        ("*x*", "italic", ""),
        ("_x_", "italic", ""),
        ("~~x~~", "strike", ""),
        ("++x++", "underline", ""),
        ("^^x^^", "highlight", ""),
        ("||x||", "spoiler", ""),
        ("`x`", "code", ""),
        ("`` x ``", "code", ""),
        ("```x```", "pre", ""),
        ("```\nx\n```", "pre", ""),
        ("```py\nx\n```", "pre", "py"),
        ("> x", "quote", ""),
        (">x", "quote", ""),
        ("# x", "bold", ""),
        ("### x", "bold", ""),
        ("[x](https://a.example/b_c_(d))", "link", "https://a.example/b_c_(d)"),
        ("[x](<https://a.example/>)", "link", "https://a.example/"),
        (r"[x](https://a.example/\_b)", "link", "https://a.example/_b"),
        ("[x](max://user/7)", "link", "max://user/7"),
    ],
)
def test_a_mark_is_read_as_the_markup_it_stands_for(source: str, kind: str, value: str) -> None:
    marked, wrong = read_markdown(source)

    assert wrong is None
    assert marks(marked) == [(kind, "x", value)]


@pytest.mark.parametrize(
    "text",
    [
        "a ** b", "2 * 3 * 4", "**open", "snake_case_name", "a_b_ c", "_a_b",
        "C++ and D++", "a || b", "`open", "[a] (b)", "[a](", "#tag",
        "a > b", "~~", "****", "```\n```", "a\n\nb", "1. x\n- y", "<b>x</b>", "https://a.example/_b_/c*", "^_^",
        "**a\n\nb**",
    ],
)  # fmt: skip
def test_a_mark_without_its_pair_is_text(text: str) -> None:
    assert read_markdown(text) == (Marked(text), None)


@pytest.mark.parametrize("character", "\\`*_[]~+^|#>")
def test_a_mark_behind_a_backslash_is_text(character: str) -> None:
    escaped = f"\\{character}"

    assert read_markdown(f"{escaped}{escaped}x{escaped}{escaped}")[0] == Marked(f"{character * 2}x{character * 2}")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("***x***", [("bold", "x", ""), ("italic", "x", "")]),
        ("**a _b_ c**", [("bold", "a b c", ""), ("italic", "b", "")]),
        ("*a **b***", [("italic", "a b", ""), ("bold", "b", "")]),
        ("**a*b**", [("bold", "a*b", "")]),
        ("**a***b*", [("bold", "a", ""), ("italic", "b", "")]),
        ("**a\nb**", [("bold", "a\nb", "")]),
        ("`**a**`", [("code", "**a**", "")]),
        ("> a\n> **b**\nc", [("quote", "a\nb", ""), ("bold", "b", "")]),
        ("# a `b`\nc", [("bold", "a b", ""), ("code", "b", "")]),
        ("a\n```\n> b\n# c\n```\nd", [("pre", "> b\n# c", "")]),
        ("[**a**](https://a.example/)", [("link", "a", "https://a.example/"), ("bold", "a", "")]),
    ],
)
def test_marks_work_inside_each_other(source: str, expected: list[tuple[str, str, str]]) -> None:
    marked, wrong = read_markdown(source)

    assert wrong is None
    assert sorted(marks(marked)) == sorted(expected)


EMPHASIS: dict[str, list[tuple[str, str]]] = {
    "a*b*c": [("italic", "b")],
    "a_b_c": [],
    'a*"b"*c': [],
    'a **"b"** c': [("bold", '"b"')],
    '**"a"**b': [],
    "*(**a**)*": [("italic", "(a)"), ("bold", "a")],
    "_(a)_.": [("italic", "(a)")],
    "*a**b*": [("italic", "a**b")],
    "**a**b**c**": [("bold", "a"), ("bold", "c")],
    "***a** b*": [("italic", "a b"), ("bold", "a")],
    "a***b***": [("italic", "b"), ("bold", "b")],
    "*a _b* c_": [("italic", "a _b")],
    "* a*": [],
    "*a\u00a0*": [],
}
"""Examples of CommonMark: what stands on either side of a mark decides whether it opens or closes."""


@pytest.mark.parametrize("source", EMPHASIS)
def test_marks_open_and_close_as_commonmark_says(source: str) -> None:
    marked, _ = read_markdown(source)

    assert sorted((kind, seen) for kind, seen, _ in marks(marked)) == sorted(EMPHASIS[source])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a `b  c` d", ["`b  c`"]),
        (r"\` a `b` c", ["`b`"]),
        ("a `\n\nb `c`", ["`c`"]),
        ("```\na\n\n`\n```\nb `c`", ["```\na\n\n`\n```", "`c`"]),
        ("> `a\n> b`\nc", ["`a\n> b`"]),
        ("# `a\nb` `c`", ["` `"]),
        ("``a`", []),
    ],
)
def test_where_code_is_can_be_told_before_a_text_is_read(text: str, code: list[str]) -> None:
    spans = [text[start:end] for start, end in code_spans(text)]

    assert [span for span in spans if span.strip("` ")] == [span for span in code if span.strip("` ")]


@pytest.mark.parametrize("address", ["javascript:alert", "data:x", "page.html"])
def test_a_link_that_leads_nowhere_is_told(address: str) -> None:
    _, wrong = read_markdown(f"a [b]({address})")

    assert wrong is not None
    assert address in wrong


@pytest.mark.parametrize(
    "source",
    ["*a " * 20_000 + "a_ " * 20_000, "[" * 60_000, "[a](b" * 12_000, ">" * 60_000, "`a``b" * 12_000, "```\n" * 15_000],
)
def test_reading_takes_time_in_step_with_the_length(source: str) -> None:
    marked, wrong = read_markdown(source)

    assert marked.text
    assert wrong is None


@pytest.mark.parametrize(
    ("text", "entity", "written"),
    [
        ("a b", Entity("bold", 2, 3), "a **b**"),
        ("a_b *c*", Entity("italic", 4, 7), None),
        ("a_b c", Entity("italic", 4, 5), None),
        ("abc", Entity("italic", 1, 2), None),
        ("a\nb", Entity("bold", 0, 3), None),
        ("a\nb", Entity("quote", 0, 3), None),
        ("a b", Entity("quote", 2, 3), None),
        ("a b", Entity("link", 0, 1, "https://a.example/b_c"), "[a](https://a.example/b_c) b"),
        ("a b", Entity("link", 0, 1, "https://a.example/(c)"), None),
        ("x = `1`", Entity("pre", 0, 7), None),
        ("` x", Entity("code", 2, 3), None),
        ("x\ny", Entity("pre", 0, 3, "py"), None),
        ("!a", Entity("link", 1, 2, "https://a.example/"), None),
        (r"a\b c", Entity("code", 0, 3), None),
        ("#1 x", Entity("bold", 3, 4), None),
        ("a b", Entity("spoiler", 0, 1), None),
    ],
)
def test_markdown_is_written_only_where_nobody_can_misread_it(text: str, entity: Entity, written: str | None) -> None:
    assert write_markdown(Marked(text, (entity,))) == written


@pytest.mark.parametrize(
    ("source", "text", "kinds"),
    [
        ("[*~~** (y) c~~*a](http://a.b/)", "*** (y) c*a", ["link", "strike"]),
        ("[_— x__#one](http://a.b/)", "_— x__#one", ["link"]),
        ("[____init__ x !__](http://a.b/)", "__init x !__", ["link", "bold"]),
    ],
)
def test_the_brackets_of_a_link_stand_beside_the_marks_in_it(source: str, text: str, kinds: list[str]) -> None:
    marked, _ = read_markdown(source)

    assert (marked.text, [entity.kind for entity in marked.entities]) == (text, kinds)
