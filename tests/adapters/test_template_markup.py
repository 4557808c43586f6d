"""A template's own markup: its parse mode decides, and no mark of a template or a post is ever shown as text."""

from typing import Any

import pytest
from autopost_adapters.compilers import compile_content
from autopost_contracts.payload import Content, Flags, Medium, ParseMode
from autopost_contracts.plan import Compiled, MediaPart, Profile

PLATFORMS = ("telegram", "max")
BODIES: dict[ParseMode | None, str] = {
    None: "News: {{ text }} ({{ title }})",
    "HTML": "<b>News</b>: {{ text }} ({{ title }})",
    "Markdown": "**News**: {{ text }} ({{ title }})",
}
TEXTS: dict[ParseMode | None, str] = {None: "1 < 2 *a* <i>b</i>", "HTML": "1 &lt; 2 <i>a</i>", "Markdown": "1 < 2 _a_"}
TITLE = "<u>x</u> **y** & z"


def compiled(
    platform: str, template: ParseMode | None, content: Content, body: str | None = None, **profile: Any
) -> Compiled:
    known = Profile(
        profile_hash="p",
        platform=platform,
        template_ref="t",
        template_body=body or BODIES[template],
        template_defaults={"title": ""},
        template_parse_mode=template,
        **profile,
    )
    return compile_content(content, Flags(fields={"title": TITLE}), known)


def sent(result: Compiled) -> tuple[str, str]:
    assert result.plan is not None, result.problems
    [part] = result.plan.parts
    assert not isinstance(part, MediaPart)
    return part.text, part.markup


def html(shown: str) -> str:
    return f"{shown} (&lt;u&gt;x&lt;/u&gt; **y** &amp; z)"


SHOWN: dict[tuple[ParseMode | None, ParseMode | None, str], tuple[str, str] | None] = {
    (None, None, "telegram"): (f"News: 1 < 2 *a* <i>b</i> ({TITLE})", "plain"),
    (None, None, "max"): (f"News: 1 < 2 *a* <i>b</i> ({TITLE})", "plain"),
    (None, "HTML", "telegram"): (html("News: 1 &lt; 2 <i>a</i>"), "html"),
    (None, "HTML", "max"): (html("News: 1 &lt; 2 <i>a</i>"), "html"),
    (None, "Markdown", "telegram"): (html("News: 1 &lt; 2 <i>a</i>"), "html"),
    (None, "Markdown", "max"): (html("News: 1 &lt; 2 <i>a</i>"), "html"),
    ("HTML", None, "telegram"): (html("<b>News</b>: 1 &lt; 2 *a* &lt;i&gt;b&lt;/i&gt;"), "html"),
    ("HTML", None, "max"): (html("<b>News</b>: 1 &lt; 2 *a* &lt;i&gt;b&lt;/i&gt;"), "html"),
    ("HTML", "HTML", "telegram"): (html("<b>News</b>: 1 &lt; 2 <i>a</i>"), "html"),
    ("HTML", "HTML", "max"): (html("<b>News</b>: 1 &lt; 2 <i>a</i>"), "html"),
    ("HTML", "Markdown", "telegram"): None,
    ("HTML", "Markdown", "max"): None,
    ("Markdown", None, "telegram"): (html("<b>News</b>: 1 &lt; 2 *a* &lt;i&gt;b&lt;/i&gt;"), "html"),
    ("Markdown", "Markdown", "telegram"): (html("<b>News</b>: 1 &lt; 2 <i>a</i>"), "html"),
    ("Markdown", "HTML", "telegram"): None,
    ("Markdown", "HTML", "max"): None,
}
"""By the template's parse mode, the post's, and the platform; ``None`` is a problem."""


@pytest.mark.parametrize(("template", "posted", "platform"), SHOWN)
def test_the_parse_mode_of_the_template_decides(
    template: ParseMode | None, posted: ParseMode | None, platform: str
) -> None:
    result = compiled(platform, template, Content(text=TEXTS[posted], parse_mode=posted))

    expected = SHOWN[template, posted, platform]
    if expected is None:
        assert [problem.code for problem in result.problems] == ["parse_mode_mismatch"]
    else:
        assert sent(result) == expected


@pytest.mark.parametrize("posted", [None, "Markdown"])
def test_a_markdown_template_keeps_its_marks_and_escapes_the_rest_on_max(posted: ParseMode | None) -> None:
    """As HTML, for the rest needs backslashes."""
    text, markup = sent(compiled("max", "Markdown", Content(text=TEXTS[posted], parse_mode=posted)))

    assert markup == "html"
    assert text.startswith("<b>News</b>: 1 &lt; 2 ")
    assert text.endswith("(&lt;u&gt;x&lt;/u&gt; **y** &amp; z)")
    assert ("<i>a</i>" in text) == (posted == "Markdown")


def test_a_markdown_template_is_sent_as_markdown_where_it_needs_no_backslash() -> None:
    content = Content(text="1 < 2 _a_", parse_mode="Markdown")

    assert sent(compiled("max", "Markdown", content, "**News**: {{ text }}")) == ("**News**: 1 < 2 _a_", "markdown")


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(
    ("body", "posted"),
    [
        ("<b>News</b> {{ text }}", None),
        ("<b>News</b> {{ text }}", "Markdown"),
        ('{{ text }} <a href="{{ title }}">more</a>', None),
        ("{{ text }}<br/>", None),
        ("**News** {{ text }}", None),
        ("**News** {{ text }}", "HTML"),
        ("{{ text }} [more](https://a.example/)", None),
    ],
)
def test_marks_of_a_template_without_a_parse_mode_are_never_shown_as_text(
    platform: str, body: str, posted: ParseMode | None
) -> None:
    result = compiled(platform, None, Content(text="a", parse_mode=posted), body)

    [problem] = result.problems
    assert (problem.code, problem.field) == ("parse_mode_mismatch", "template_ref")
    assert "parse_mode of the template" in problem.message


@pytest.mark.parametrize("body", ["{{ text }} 1 < 2 > 0", "*** {{ text }} ***", "{{ text }} [1] 2 ** 3", "a <- b -> c"])
@pytest.mark.parametrize("posted", [None, "HTML", "Markdown"])
def test_what_is_no_markup_is_shown_as_it_stands(body: str, posted: ParseMode | None) -> None:
    result = compiled("telegram", None, Content(text="x", parse_mode=posted), body)

    assert [problem.code for problem in result.problems if problem.code == "parse_mode_mismatch"] == []


@pytest.mark.parametrize("platform", PLATFORMS)
def test_captions_stay_in_the_parse_mode_of_the_post(platform: str) -> None:
    medium = Medium(type="image", blob_ref=f"sha256:{'0' * 64}", caption="<i>x</i>")

    result = compiled(platform, "HTML", Content(type="media", text="a", media=(medium,)))

    assert result.plan is not None, result.problems
    [caption] = [item.caption for part in result.plan.parts if isinstance(part, MediaPart) for item in part.media]
    assert caption in ("<i>x</i>", "&lt;i&gt;x&lt;/i&gt;")


@pytest.mark.parametrize("platform", PLATFORMS)
def test_links_of_a_plain_post_are_escaped_for_the_template(platform: str) -> None:
    text, markup = sent(compiled(platform, "HTML", Content(text="a", links=("https://a.example/?b=1&c=2",))))

    assert markup == "html"
    assert "https://a.example/?b=1&amp;c=2" in text


def test_every_pair_of_modes_is_in_the_table() -> None:
    modes: tuple[ParseMode | None, ...] = (None, "HTML", "Markdown")
    on_max = {("Markdown", None, "max"), ("Markdown", "Markdown", "max")}  # its dialect is looked at above

    assert {*SHOWN, *on_max} == {
        (template, post, platform) for template in modes for post in modes for platform in PLATFORMS
    }
