"""A template shows a post, and whatever it says it ends soon, alike each time, and hurts only its own channels."""

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from autopost_adapters.compilers import compile_content
from autopost_contracts.payload import Content, Flags, ParseMode
from autopost_contracts.plan import Compiled, Profile

LONG = "a" * 60_000
PLAIN = Flags()
HOSTILE = {
    "one replacement makes gigabytes": "{{ text | replace: 'a', text }}",
    "two replacements make terabytes": "{{ text | replace: 'a', text | replace: 'a', text }}",
    "nothing is replaced everywhere": "{{ text | replace: '', text }}",
    "a join makes gigabytes": "{{ text | split: '' | join: text }}",
    "a short range is joined by a long text": "{{ (1..1000) | join: text }}",
    "a range is joined": "{{ (1..1000000000) | join: '' }}",
    "a range is turned round": "{{ (1..1000000000) | reverse | first }}",
    "a range is summed up": "{{ (1..1000000000) | sum }}",
    "a long loop": "{% for i in (1..100000000) %}{{ i }}{% endfor %}",
    "a long table": "{% tablerow i in (1..100000000) %}{{ i }}{% endtablerow %}",
    "loops in loops": "{% for i in (1..90) %}" * 3 + "." + "{% endfor %}" * 3,
    "many loops one after the other": "{% for i in (1..999) %}{% assign b = i %}{% endfor %}" * 280,
    "a loop over much": "{% for i in (1..999) %}" + "{% if text contains 'b' %}{% endif %}" * 400 + "{% endfor %}",
    "a loop over nothing": "{% for i in (1..999) %}" + "{% if true %}{% endif %}" * 600 + "{% endfor %}",
    "a value that doubles": "{% assign a = text %}" + "{% assign a = a | append: a %}" * 40 + "{{ a }}",
    "a number that squares": "{% assign n = 9 %}" + "{% assign n = n | times: n %}" * 40 + "{{ n }}",
    "a number in a loop": "{% assign n = 9 %}{% for i in (1..900) %}{% assign n = n | times: n %}{% endfor %}{{ n }}",
    "many names": "".join(f"{{% assign a{n} = {n} %}}" for n in range(700)),
    "captures in captures": "{% capture a %}{{ text }}{{ text }}{% endcapture %}" * 3 + "{{ a }}",
    "much output": "{{ text }}" * 40,
    "sorting": "{{ text | split: '' | sort | uniq | join }}",
    "deep blocks": "{% if true %}" * 700 + "x" + "{% endif %}" * 700,
    "many opening braces": "{{" * 8000,
    "many opening tags": "{%" * 8000,
    "a thousand opening braces": "{{" * 1000,
    "a thousand opening braces behind closing ones": "}}" * 1000 + "{{" * 1000 + "x" * 12_000,
    "a thousand opening tags": "{%" * 1000 + "x" * 14_000,
    "spaces in braces": "{{" + " " * 16_000,
    "spaces between words in braces": "{{ a" + " " * 16_000 + "b }}",
    "gaps in braces": "{{ a" + (" " * 99 + "b") * 160 + " }}",
    "gaps in a tag": "{% if a" + (" " * 99 + "b") * 160 + " %}",
    "braces in braces": "{{ a" + "{{ " * 5_000 + " }}",
    "quotes in braces": "{{ " + "'" * 8_000 + '"' * 8_000,
    "brackets in braces": "{{ a" + "[" * 8_000 + "]" * 8_000 + " }}",
    "parentheses in braces": "{{ " + "(1.." * 4_000 + " }}",
    "dots in braces": "{{ a" + ".b" * 8_000 + " }}",
    "many pipes": "{{ text " + "| upcase " * 1500 + "}}",
    "a very long body": "x" * 20_000,
    "division by nothing": "{{ 1 | divided_by: 0 }}",
    "the clock": "{{ 'now' | date: '%s' }}",
    "tags are stripped": "{{ text | strip_html }}",
    "another file": "{% include 'secrets' %}",
    "a broken body": "{{ text",
    "an unknown tag": "{% exec 'ls' %}",
    "a python attribute": "{{ text.__class__.__mro__[1].__subclasses__ | join }}{{ 1 | divided_by: 0 }}",
}


def compiled(
    body: str, content: Content, flags: Flags = PLAIN, platform: str = "telegram", **defaults: Any
) -> Compiled:
    profile = Profile(
        profile_hash="p", platform=platform, template_ref="t", template_body=body, template_defaults=defaults
    )
    return compile_content(content, flags, profile)


def shown(body: str, content: Content, flags: Flags = PLAIN, **defaults: Any) -> str:
    result = compiled(body, content, flags, **defaults)
    assert result.plan is not None, result.problems
    return result.plan.parts[0].text


def peak_of(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("parse_mode", [None, "HTML"])
def test_a_hostile_template_ends_soon_in_little_memory_as_a_problem(body: str, parse_mode: ParseMode | None) -> None:
    content = Content(text=LONG, parse_mode=parse_mode)
    compiled("", content)  # the library is loaded
    started = time.process_time()

    result = compiled(body, content)

    took = time.process_time() - started
    assert [problem.code for problem in result.problems] in (
        ["template_failed"],
        ["message_too_long"],
        ["message_empty"],
    )
    assert took < 1
    assert peak_of(lambda: compiled(body, content)) < 20_000_000


def test_many_short_loops_are_as_much_as_one_long() -> None:
    loop = "{% for i in (1..900) %}{% if true %}.{% endif %}{% endfor %}"

    assert [problem.code for problem in compiled(loop * 40, Content(text="a")).problems] == ["template_failed"]
    assert shown(loop, Content(text="a")) == "." * 900


def test_however_a_template_breaks_it_is_a_problem_and_no_error() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]

    result = compiled("{{ deep }}", Content(text="a"), deep=deep)

    assert [(problem.code, problem.message) for problem in result.problems] == [
        ("template_failed", "t: RecursionError")
    ]


def test_the_limits_leave_room_for_what_templates_are_for() -> None:
    body = (
        "{{ title | upcase }}\n{{ text | replace: 'ё', 'е' | strip }}\n"
        "{% for link in links %}{{ forloop.index }}. {{ link }}\n{% endfor %}"
        "{% for tag in tags %}#{{ tag }} {% endfor %}{% if footer != '' %}\n{{ footer }}{% endif %}"
    )
    links = tuple(f"https://a.example/{n}" for n in range(20))
    flags = Flags(tags=tuple(f"tag{n}" for n in range(50)), fields={"title": "Ёлка"})

    text = shown(body, Content(text="ёж " * 600, links=links), flags, title="", footer="bye")

    assert text.startswith("ЁЛКА\nеж еж")
    assert text.endswith("#tag49 \nbye")
    assert "20. https://a.example/19" in text


def test_a_template_shows_the_fields_that_its_defaults_name_and_no_others() -> None:
    body = "{{ title }}|{{ author }}|{{ secret }}|{{ text }}"

    said = Flags(fields={"title": "T", "secret": "S", "text": "no"})

    assert shown(body, Content(text="a"), said, title="News", author="we") == "T|we||a"
    assert shown(body, Content(text="a"), title="News", author="we") == "News|we||a"


def test_links_follow_the_text_unless_the_template_places_them() -> None:
    content = Content(text="a", links=("https://a.example/?b=1&c=2",), parse_mode="HTML")

    assert shown("<b>{{ text }}</b>", content) == "<b>a\n\nhttps://a.example/?b=1&amp;c=2</b>"
    assert shown("<b>{{ text }}</b> {{ links | first }}", content) == "<b>a</b> https://a.example/?b=1&amp;c=2"


@pytest.mark.parametrize(
    ("parse_mode", "text", "expected"),
    [
        (None, "1 < 2", "1 < 2 · <i>&*x*"),
        ("HTML", "<b>1 &lt; 2</b>", "<b>1 &lt; 2</b> · &lt;i&gt;&amp;*x*"),
        ("Markdown", "**1**", "<b>1</b> · &lt;i&gt;&amp;*x*"),
    ],
)
def test_values_are_plain_and_the_text_is_not(parse_mode: ParseMode | None, text: str, expected: str) -> None:
    said = Flags(fields={"title": "<i>&*x*"})

    assert shown("{{ text }} · {{ title }}", Content(text=text, parse_mode=parse_mode), said, title="") == expected


def test_filters_leave_markup_markup_and_plain_text_plain() -> None:
    content = Content(text=" <b>a</b> ", parse_mode="HTML")
    said = Flags(fields={"title": "x & <y>"})

    assert shown("{{ text | strip | append: title }}", content, said, title="") == "<b>a</b>x &amp; &lt;y&gt;"
    assert shown("<b>{{ title | upcase }}</b>", content, said, title="") == "<b>X &amp; &lt;Y&gt;</b>"


def test_a_template_renders_alike_each_time() -> None:
    body = "{% for tag in tags %}{{ tag }}{% endfor %}{{ text | upcase }}{{ list | join: ', ' }}"
    content, flags = Content(text="a"), Flags(tags=("x", "y"))

    first = compiled(body, content, flags, list=[1, "b"])

    assert all(compiled(body, content, flags, list=[1, "b"]) == first for _ in range(5))
