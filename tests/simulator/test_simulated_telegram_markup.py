"""Parse modes: which entities come out, and which words a mistake is answered with."""

import pytest
from autopost_simulator.telegram.markup.finish import finish
from autopost_simulator.telegram.markup.formatting import Formatted, ParseError
from autopost_simulator.telegram.markup.parse_html import parse_html
from autopost_simulator.telegram.markup.parse_markdown import parse_markdown
from autopost_simulator.telegram.markup.parse_markdown_v2 import parse_markdown_v2


def seen(formatted: Formatted) -> tuple[str, list[tuple[object, ...]]]:
    done = finish(formatted)
    return done.text, [tuple(entity.values()) for entity in done.entities]


@pytest.mark.parametrize(
    ("html", "text", "entities"),
    [
        ("<b>a</b><STRONG>b</STRONG>", "ab", [("bold", 0, 2)]),
        ("<i>a</i><em>b</em>", "ab", [("italic", 0, 2)]),
        ("<u>a</u><ins>b</ins>", "ab", [("underline", 0, 2)]),
        ("<s>a</s><del>b</del>", "ab", [("strikethrough", 0, 2)]),
        ('<tg-spoiler>a</tg-spoiler><span class="tg-spoiler">b</span>', "ab", [("spoiler", 0, 2)]),
        ("<b>a<i>b</i></b>", "ab", [("bold", 0, 1), ("bold", 1, 1), ("italic", 1, 1)]),
        ("<b>a</>", "a", [("bold", 0, 1)]),
        ("😀<b>😀</b>", "😀😀", [("bold", 2, 2)]),
        (
            '<a href="https://example.org/?a=1&amp;b=2">x</a>',
            "x",
            [("text_link", 0, 1, "https://example.org/?a=1&b=2")],
        ),
        ("<a href='example.org'>x</a>", "x", [("text_link", 0, 1, "http://example.org/")]),
        ('<a href="not an address">x</a>', "x", []),
        ("<pre>x</pre>", "x", [("pre", 0, 1)]),
        ('<pre><code class="language-python">x</code></pre>', "x", [("pre", 0, 1, "python")]),
        ("<code>x <b>y</b></code>", "x y", [("code", 0, 3)]),
        ("<blockquote>x</blockquote>", "x", [("blockquote", 0, 1)]),
        ("<blockquote expandable>x</blockquote>", "x", [("expandable_blockquote", 0, 1)]),
        ('<tg-emoji emoji-id="42">x</tg-emoji>', "x", [("custom_emoji", 0, 1, "42")]),
        ("&lt;b&gt; &amp; &quot; &#128512; &#x1F600;", '<b> & " 😀 😀', []),
        ("a&nbsp;b & c", "a&nbsp;b & c", []),
        ("  <b> x </b>  ", " x", [("bold", 0, 2)]),
    ],
)
def test_html_becomes_text_and_entities(html, text, entities):
    assert seen(parse_html(html)) == (text, entities)


@pytest.mark.parametrize(
    ("html", "reason"),
    [
        ("<p>x</p>", 'Unsupported start tag "p" at byte offset 0'),
        ("я<br>", 'Unsupported start tag "br" at byte offset 2'),
        ("1 < 2", 'Unsupported start tag "" at byte offset 2'),
        ("a <b", "Unclosed start tag at byte offset 2"),
        ('<a href="x', "Unclosed start tag at byte offset 0"),
        ("<b>x", 'Can\'t find end tag corresponding to start tag "b"'),
        ("x</b>", "Unexpected end tag at byte offset 1"),
        ("<i>😀</b></i>", 'Unmatched end tag at byte offset 7, expected "</i>", found "</b>"'),
        ("<b>x</b", "Unclosed end tag at byte offset 4"),
        ("<span>x</span>", 'Tag "span" must have class "tg-spoiler" at byte offset 0'),
        ('<a ="x">y</a>', 'Empty attribute name in the tag "a" at byte offset 0'),
    ],
)
def test_wrong_html_is_named_with_its_place_in_bytes(html, reason):
    with pytest.raises(ParseError) as refused:
        parse_html(html)

    assert str(refused.value) == reason


@pytest.mark.parametrize(
    ("markdown", "text", "entities"),
    [
        ("*b* _i_ __u__ ~s~ ||p||", "b i u s p", ["bold", "italic", "underline", "strikethrough", "spoiler"]),
        ("*b _i_*", "b i", ["bold", "bold", "italic"]),
        (r"1\. a\-b \*", "1. a-b *", []),
        ("`a.b-c`", "a.b-c", ["code"]),
        ("```\na.b\n```", "a.b", ["pre"]),
        ("[x](https://example.org/a\\)b)", "x", ["text_link"]),
        ("![x](tg://emoji?id=5)", "x", ["custom_emoji"]),
        (">one\n>two\nthree", "one\ntwo\nthree", ["blockquote"]),
        (">one\n>two||\nthree", "one\ntwo\nthree", ["expandable_blockquote"]),
    ],
)
def test_markdown_v2_becomes_text_and_entities(markdown, text, entities):
    formatted = finish(parse_markdown_v2(markdown))

    assert (formatted.text, [entity["type"] for entity in formatted.entities]) == (text, entities)


def test_markdown_v2_keeps_the_language_of_a_block():
    assert seen(parse_markdown_v2("```python\nx=1```")) == ("x=1", [("pre", 0, 3, "python")])


@pytest.mark.parametrize(
    ("markdown", "reason"),
    [
        ("a-b", "Character '-' is reserved and must be escaped with the preceding '\\'"),
        ("a|b", "Character '|' is reserved and must be escaped with the preceding '\\'"),
        ("a>b", "Character '>' is reserved and must be escaped with the preceding '\\'"),
        ("end.", "Character '.' is reserved and must be escaped with the preceding '\\'"),
        ("я *b", "Can't find end of Bold entity at byte offset 3"),
        ("_i", "Can't find end of Italic entity at byte offset 0"),
        ("[x](http", "Can't find end of a URL at byte offset 4"),
        ("![x]", "The entity must contain a tg://emoji or tg://time URL"),
        ("![x](http://a)", "Invalid tg://emoji or tg://time URL specified"),
        ("```\na`b\n```", "Can't find end of Pre entity at byte offset 0"),
    ],
)
def test_wrong_markdown_v2_is_named(markdown, reason):
    with pytest.raises(ParseError) as refused:
        parse_markdown_v2(markdown)

    assert str(refused.value) == reason


@pytest.mark.parametrize(
    ("markdown", "text", "entities"),
    [
        ("*b* _i_ `c`", "b i c", [("bold", 0, 1), ("italic", 2, 1), ("code", 4, 1)]),
        ("a-b. c!", "a-b. c!", []),
        (r"\*x \_y", "*x _y", []),
        ("[x](http://example.org/a)", "x", [("text_link", 0, 1, "http://example.org/a")]),
        ("```python\nx_y```", "x_y", [("pre", 0, 3, "python")]),
    ],
)
def test_old_markdown_becomes_text_and_entities(markdown, text, entities):
    assert seen(parse_markdown(markdown)) == (text, entities)


def test_an_open_mark_in_old_markdown_is_named_with_its_place_in_bytes():
    with pytest.raises(ParseError) as refused:
        parse_markdown("snake я_case")

    assert str(refused.value) == "Can't find end of the entity starting at byte offset 8"


@pytest.mark.parametrize("mode", ["HTML", "html", "MarkdownV2", "Markdown"])
async def test_a_parse_mistake_reaches_the_client_as_a_bad_request(client, mode):
    answer = await client.send("*open <p", parse_mode=mode)

    assert answer.status == 400
    assert answer.body["description"].startswith("Bad Request: can't parse entities: ")
    assert await client.shown() == []
