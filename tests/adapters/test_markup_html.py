"""HTML as senders write it."""

import pytest
from autopost_adapters.markup.html import read_html
from autopost_adapters.markup.marked import Marked
from autopost_adapters.markup.nesting import nest


def marks(marked: Marked) -> list[tuple[str, str, str]]:
    return [(entity.kind, marked.text[entity.start : entity.end], entity.value) for entity in marked.entities]


@pytest.mark.parametrize(
    ("source", "kind", "value"),
    [
        ("<b>x</b>", "bold", ""),
        ("<STRONG>x</STRONG>", "bold", ""),
        ("<i>x</i>", "italic", ""),
        ("<em>x</em>", "italic", ""),
        ("<u>x</u>", "underline", ""),
        ("<ins>x</ins>", "underline", ""),
        ("<s>x</s>", "strike", ""),
        ("<strike>x</strike>", "strike", ""),
        ("<del>x</del>", "strike", ""),
        ("<tg-spoiler>x</tg-spoiler>", "spoiler", ""),
        ('<span class="tg-spoiler">x</span>', "spoiler", ""),
        ("<mark>x</mark>", "highlight", ""),
        ("<h1>x</h1>", "bold", ""),
        ("<H6>x</H6>", "bold", ""),
        ("<code>x</code>", "code", ""),
        ("<pre>x</pre>", "pre", ""),
        ('<pre><code class="language-py">x</code></pre>', "pre", "py"),
        ("<blockquote>x</blockquote>", "quote", ""),
        ("<blockquote expandable>x</blockquote>", "expandable_quote", ""),
        ('<tg-emoji emoji-id="5368324">x</tg-emoji>', "custom_emoji", "5368324"),
        ('<tg-time unix="1647531900" format="wDT">x</tg-time>', "time", "1647531900"),
        ("<a href='https://a.example/'>x</a>", "link", "https://a.example/"),
        ("<a href=https://a.example/>x</a>", "link", "https://a.example/"),
        ("<a href='https://a.example/b c'>x</a>", "link", "https://a.example/b%20c"),
        ('<a title="&lt;" href=" tg://resolve?domain=a&amp;b ">x</a>', "link", "tg://resolve?domain=a&b"),
        ('<a href="https://a.example/?a=1&region=2&copy=3">x</a>', "link", "https://a.example/?a=1&region=2&copy=3"),
        ('<a href="mailto:a@b.example">x</a>', "link", "mailto:a@b.example"),
    ],
)
def test_a_tag_is_read_as_the_markup_it_stands_for(source: str, kind: str, value: str) -> None:
    marked, wrong = read_html(source)

    assert wrong is None
    assert marks(marked) == [(kind, "x", value)]


@pytest.mark.parametrize(
    ("source", "language"),
    [
        ('<code class="language-py"><pre>x</pre></code>', "py"),
        ('<code class="py"><pre>x</pre></code>', ""),
        ('<code class="language-py"></code><pre>x</pre>', ""),
    ],
)
def test_a_language_may_stand_around_its_block(source: str, language: str) -> None:
    """As Telegram's server reads it."""
    marked, wrong = read_html(source)
    nested, crossed = nest(marked)

    assert (wrong, crossed) == (None, None)
    assert marks(nested) == [("pre", "x", language)]


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("a<br>b<br/>c<BR />d", "a\nb\nc\nd"),
        ("&copy;&euro;&laquo;x&raquo;&#8212;&#x1F98A;", "©€«x»—🦊"),
        ("a&nbsp;b", "a\xa0b"),
        ("&lt;b&gt; &amp;amp; &quot;", '<b> &amp; "'),
        ("Q&A, R&D; &nosuch; ?a=1&region=2", "Q&A, R&D; &nosuch; ?a=1&region=2"),
        ("?a&amp=1&lt=2&ltd", "?a&amp=1&lt=2&ltd"),
        ("1 < 2 > 1", "1 < 2 > 1"),
        ("a<!-- not seen -->b", "ab"),
        ("  <b> </b> a \n", "a"),
    ],
)
def test_characters_are_read_as_a_browser_shows_them(source: str, seen: str) -> None:
    marked, wrong = read_html(source)

    assert (marked, wrong) == (Marked(seen), None)


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("<p>a</p>", "<p>"),
        ("<script>a</script>", "<script>"),
        ('<span class="x">a</span>', "<span>"),
        ("<b/>a", "<b/>"),
        ("<b>a", "<b>"),
        ("a</b>", "</b>"),
        ("<b><i>a</b></i>", "</b>"),
        ("<a>x</a>", "<a>"),
        ('<a href="javascript:alert(1)">x</a>', "javascript:alert(1)"),
        ('<a href="JaVaScRiPt:alert(1)">x</a>', "JaVaScRiPt:alert(1)"),
        ('<a href="data:text/html,x">x</a>', "data:text/html,x"),
        ('<a href="/relative">x</a>', "/relative"),
        ('<a href="https://">x</a>', "https://"),
        ('<a href="https://a b.example/">x</a>', "https://a%20b.example/"),
        ('<tg-emoji emoji-id="x">a</tg-emoji>', "<tg-emoji>"),
        ('<tg-emoji emoji-id="0">a</tg-emoji>', "<tg-emoji>"),
        ('<tg-emoji emoji-id="9223372036854775808">a</tg-emoji>', "<tg-emoji>"),
        ('<tg-time unix="0">a</tg-time>', "<tg-time>"),
        ('<tg-time unix="2147483648">a</tg-time>', "<tg-time>"),
        ('<tg-time unix="1" format="zz">a</tg-time>', "'zz'"),
        ('<tg-time unix="1" format="rt">a</tg-time>', "'rt'"),
        ("<tg-time>a</tg-time>", "<tg-time>"),
        ("a <b", "<b"),
        ("</>", "</>"),
    ],
)
def test_markup_that_means_nothing_is_told_by_name(source: str, named: str) -> None:
    _, wrong = read_html(source)

    assert wrong is not None
    assert named in wrong


@pytest.mark.parametrize(
    "source", ["a<h1>b</h1>c", "a\n<h3>b</h3>\nc", "a<br><h6>b</h6><br>c", "a<h2>b</h2><i></i>c", "a<h1> b </h1> c"]
)
def test_a_heading_is_a_line_of_its_own_in_bold(source: str) -> None:
    marked, wrong = read_html(source)

    assert wrong is None
    assert [line.strip() for line in marked.text.split("\n")] == ["a", "b", "c"]
    assert [(one.kind, marked.text[one.start : one.end]) for one in marked.entities] == [("bold", "b")]


def test_entities_reach_from_the_first_to_the_last_thing_that_is_seen() -> None:
    marked, _ = read_html("a<b> bold </b>c<i>\n</i>d")

    assert marked.text == "a bold c\nd"
    assert marks(marked) == [("bold", "bold", "")]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<b><code>  x</code> b</b>", [("code", "  x", ""), ("bold", "b", "")]),
        ("<b>a <code>x  </code></b>c", [("bold", "a", ""), ("code", "x  ", "")]),
        ("<blockquote><code>  x</code></blockquote>", [("quote", "  x", ""), ("code", "  x", "")]),
        ("<i> <b> <code> x </code> </b> </i>a", [("code", " x ", "")]),
    ],
)
def test_what_contains_code_contains_the_spaces_at_its_edges(source: str, expected: list[tuple[str, str, str]]) -> None:
    marked, wrong = nest(read_html(source)[0])

    assert wrong is None
    assert marks(marked) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<b>a <b>b</b></b>", [("bold", "a b", "")]),
        ("<b>a <code>x</code> b</b>", [("bold", "a", ""), ("code", "x", ""), ("bold", "b", "")]),
        ("<code>a <b>b</b></code>", [("code", "a b", "")]),
        (
            "<b>a<blockquote>b<code>x</code></blockquote></b>",
            [("bold", "a", ""), ("quote", "bx", ""), ("bold", "b", ""), ("code", "x", "")],
        ),
        (
            "<s><code>x</code>a<b>b<blockquote>c</blockquote></b></s>",
            [("code", "x", ""), ("strike", "abc", ""), ("bold", "bc", ""), ("quote", "c", "")],
        ),
        ('<a href="https://a.example/"><code>x</code></a>', [("link", "x", "https://a.example/")]),
        ("<i><b>x</b></i>", [("bold", "x", ""), ("italic", "x", "")]),
    ],
)
def test_a_look_that_cannot_stand_there_gives_way(source: str, expected: list[tuple[str, str, str]]) -> None:
    marked, wrong = nest(read_html(source)[0])

    assert wrong is None
    assert marks(marked) == expected


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("<blockquote>a<blockquote>b</blockquote></blockquote>", "<blockquote> must not be inside <blockquote>"),
        ('<code>a<a href="https://a.example/">b</a></code>', "<a> must not be inside <code>"),
        ('<a href="https://a.example/">a<a href="https://b.example/">b</a></a>', "<a> must not be inside <a>"),
        ("<tg-spoiler>a<code>b</code></tg-spoiler>", "<code> must not be inside <tg-spoiler>"),
        ("<tg-spoiler>a<pre>b</pre></tg-spoiler>", "<pre> must not be inside <tg-spoiler>"),
        ("<pre>a<tg-spoiler>b</tg-spoiler></pre>", "<tg-spoiler> must not be inside <pre>"),
    ],
)
def test_what_would_be_lost_or_laid_open_by_its_place_is_told(source: str, named: str) -> None:
    _, wrong = nest(read_html(source)[0])

    assert wrong == named


@pytest.mark.parametrize("source", ["<b" * 30_000, "<!--" * 20_000, '<a "' * 20_000, "<b>" * 20_000, "&" * 60_000])
def test_reading_takes_time_in_step_with_the_length(source: str) -> None:
    marked, _ = nest(read_html(source)[0])

    assert not marked.entities
