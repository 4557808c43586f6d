"""Text as the real server treats it: every row was observed with its parser or read in its source."""

import pytest
from autopost_simulator.telegram.markup.finish import finish
from autopost_simulator.telegram.markup.formatting import Formatted, ParseError
from autopost_simulator.telegram.markup.parse_html import parse_html
from autopost_simulator.telegram.markup.parse_markdown import parse_markdown
from autopost_simulator.telegram.markup.parse_markdown_v2 import parse_markdown_v2

LINK = "http://e.com/"


def seen(formatted: Formatted) -> tuple[str, list[tuple[object, ...]]]:
    done = finish(formatted)
    return done.text, [tuple(entity.values()) for entity in done.entities]


@pytest.mark.parametrize(
    ("html", "text", "entities"),
    [
        ("<b> x </b>", " x", [("bold", 0, 2)]),
        ("<pre>  a</pre>", "  a", [("pre", 0, 3)]),
        (" \n <b>x</b>", "x", [("bold", 0, 1)]),
        ("a <b> \n</b>", "a", []),
        ("\xa0x\xa0", "\xa0x\xa0", []),
        ("a\tb\x07c\rd\u2028e\u202ef\u0333g", "a b cdefg", []),
        ("&ltx &quota &amplitude &lt &amp;lt;", "&ltx &quota &amplitude < &lt;", []),
        ("&#1114111; &#x10FFFE; &#0;", "&#1114111; \U0010fffe &#0;", []),
        (f"<a HREF='{LINK}'>x</a>", "x", []),
        ("<a href='http://e.com/a b'>x</a>", "x", [("text_link", 0, 1, "http://e.com/a%20b")]),
        ("<a href='ftp://e.com/'>x</a>", "x", []),
        ("<a href='tg:resolve?domain=x'>x</a>", "x", [("text_link", 0, 1, "tg://resolve?domain=x")]),
        ("<a href='http://localhost/'>x</a>", "x", []),
        ("<a href='http://e.com:99999/'>x</a>", "x", []),
        ("<a href='http://[2001:db8::1]:8080/a'>x</a>", "x", [("text_link", 0, 1, "http://[2001:db8::1]:8080/a")]),
        ("<a href='E.com'>x</a>", "x", [("text_link", 0, 1, LINK)]),
        ("<a>e.com</a>", "e.com", [("text_link", 0, 5, LINK)]),
        ("<code class='language-py'><pre>x</pre></code>", "x", [("pre", 0, 1, "py")]),
        ("<pre><code class='language-py'>x</code></pre>", "x", [("pre", 0, 1, "py")]),
        ("<code class='language-py'>x</code>", "x", [("code", 0, 1)]),
        ("<tg-time unix='1' format='wDT'>x</tg-time>", "x", [("date_time", 0, 1, 1, "wDT")]),
    ],
)
def test_html_is_read_as_the_server_reads_it(html, text, entities):
    assert seen(parse_html(html)) == (text, entities)


@pytest.mark.parametrize(
    ("html", "reason"),
    [
        ("<b />x</b>", 'Empty attribute name in the tag "b" at byte offset 0'),
        ("<b/>x</b>", 'Unsupported start tag "b/" at byte offset 0'),
        ("<a href", 'Unclosed start tag "a" at byte offset 0'),
        ("<a href=http://e.com>x</a>", "Unexpected end of name token at byte offset 8"),
        ("<tg-emoji emoji-id='x'>👍</tg-emoji>", "Invalid custom emoji identifier specified"),
        ("<tg-time unix='1' format='zz'>x</tg-time>", "Invalid date format used"),
        (
            "&#55357;&#56833;",
            "Text contains invalid Unicode characters after decoding HTML entities, "
            "check for unmatched surrogate code units",
        ),
    ],
)
def test_what_the_server_cannot_read_in_html_is_refused_in_its_words(html, reason):
    with pytest.raises(ParseError) as refused:
        parse_html(html)

    assert str(refused.value) == reason


@pytest.mark.parametrize(
    ("markdown", "text", "entities"),
    [
        (">q\nr", "q\nr", [("blockquote", 0, 2)]),
        (">q||\nr", "q\nr", [("expandable_blockquote", 0, 2)]),
        ("![x](tg://time?unix=5&format=r)", "x", [("date_time", 0, 1, 5, "r")]),
        ("![👍](tg://emoji?id=5)", "👍", [("custom_emoji", 0, 2, "5")]),
        ("[x]()", "x", []),
        ("[e\\.com]", "e.com", [("text_link", 0, 5, LINK)]),
        ("```py\n  a\n```", "  a", [("pre", 0, 3, "py")]),
        (">a`b`", "ab", [("blockquote", 0, 2), ("code", 1, 1)]),
    ],
)
def test_markdown_v2_is_read_as_the_server_reads_it(markdown, text, entities):
    assert seen(parse_markdown_v2(markdown)) == (text, entities)


@pytest.mark.parametrize(
    ("markdown", "text", "entities"),
    [
        ("[](http://e.com/)x", "(http://e.com/)x", [("url", 1, 13)]),
        ("[x](http://e.com/", "x", [("text_link", 0, 1, LINK)]),
        ("```py\r\na```", "a", [("pre", 0, 1, "py")]),
        ("a\\*b \\d", "a*b \\d", []),
    ],
)
def test_the_old_markdown_is_read_as_the_server_reads_it(markdown, text, entities):
    assert seen(parse_markdown(markdown)) == (text, entities)


@pytest.mark.parametrize(
    ("html", "entities"),
    [
        ("<b>ж <code>к</code></b>", [("bold", 0, 2), ("code", 2, 1)]),
        ("<b>a<code>b</code>c</b>", [("bold", 0, 1), ("code", 1, 1), ("bold", 2, 1)]),
        ("<b>a<i>b</i>c</b>", [("bold", 0, 1), ("bold", 1, 2), ("italic", 1, 1)]),
        (f"<b>a<a href='{LINK}'>b</a></b>", [("bold", 0, 1), ("text_link", 1, 1, LINK), ("bold", 1, 1)]),
        (f"<a href='{LINK}'>a<a href='http://f.com/'>b</a></a>", [("text_link", 0, 2, LINK)]),
        (f"<a href='{LINK}'><code>a</code></a>", [("code", 0, 1)]),
        ("<code>a<b>b</b></code>", [("code", 0, 2)]),
        ("<blockquote>a<blockquote>b</blockquote></blockquote>", [("blockquote", 0, 2)]),
        (f"<a href='{LINK}'>a<blockquote>b</blockquote></a>", [("blockquote", 1, 1)]),
        ("<b>a</b><b>b</b>", [("bold", 0, 2)]),
        ("<b>see e.com now</b>", [("bold", 0, 4), ("url", 4, 5), ("bold", 4, 5), ("bold", 9, 4)]),
        ("<code>e.com</code> e.com", [("code", 0, 5), ("url", 6, 5)]),
    ],
)
def test_nested_entities_are_resolved(html, entities):
    assert seen(parse_html(html))[1] == entities


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "see example.org, or https://x.invented/a?b#c.",
            [("url", "example.org"), ("url", "https://x.invented/a?b#c")],
        ),
        ("no.such-word end.Then file.txt 1.5 localhost", []),
        ("(http://e.com/a_(b)) пример.рф", [("url", "http://e.com/a_(b)"), ("url", "пример.рф")]),
        ("tg://resolve?domain=x ton://x", [("url", "tg://resolve?domain=x"), ("url", "ton://x")]),
        ("write to a_b@example.com or mailto:x@y.org", [("email", "a_b@example.com"), ("email", "x@y.org")]),
        ("@durov a@b @ab @gif @" + "x" * 33, [("mention", "@durov"), ("mention", "@gif")]),
        ("#тег #1 #a_b@news x#y ##z", [("hashtag", "#тег"), ("hashtag", "#a_b@news"), ("hashtag", "#z")]),
        ("$USD $usd $TOOLONGTICKER $A", [("cashtag", "$USD"), ("cashtag", "$A")]),
        ("/start@my_bot /a/b 1/2 /help", [("bot_command", "/start@my_bot"), ("bot_command", "/help")]),
        ("card 4111 1111 1111 1111", []),
    ],
)
def test_entities_are_found_in_plain_text(text, found):
    done = finish(Formatted(text, []))

    assert [(one["type"], text[one["offset"] : one["offset"] + one["length"]]) for one in done.entities] == found


@pytest.mark.parametrize(
    ("entities", "description"),
    [
        ([{"type": "bold", "offset": 1, "length": 2}], "entity begins in a middle of a UTF-16 symbol at byte offset 4"),
        (
            [{"type": "bold", "offset": 0, "length": 9}],
            "entity beginning at UTF-16 offset 0 ends after the end of the text at UTF-16 offset 9",
        ),
        (
            [{"type": "text_link", "offset": 0, "length": 2, "url": "http://localhost"}],
            "entity URL 'http://localhost' is invalid: Wrong HTTP URL",
        ),
        ([{"type": "bold", "offset": 0}], "can't parse MessageEntity: Can't find field \"length\""),
    ],
)
async def test_impossible_entities_are_refused(client, entities, description):
    answer = await client.send("👍 x", entities=entities)

    assert (answer.status, answer.body["description"]) == (400, f"Bad Request: {description}")


async def test_entities_that_the_server_finds_itself_cannot_be_given(client):
    answer = await client.send("plain #tag", entities=[{"type": "mention", "offset": 0, "length": 5}])

    assert answer.body["result"]["entities"] == [{"type": "hashtag", "offset": 6, "length": 4}]


async def test_no_text_is_told_from_an_invisible_one_and_the_chat_is_looked_for_in_between(client):
    answers = [await client.send(text, chat_id=-1009999) for text in ("", " ")]

    assert [answer.body["description"] for answer in answers] == [
        "Bad Request: message text is empty",
        "Bad Request: chat not found",
    ]
