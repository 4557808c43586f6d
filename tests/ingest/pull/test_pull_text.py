"""HTML of the wild becomes what a post can show, whatever it was."""

from uuid import UUID

import pytest
from autopost_adapters.markup.html import read_html
from autopost_adapters.markup.nesting import nest
from autopost_contracts.ids import WorkspaceId
from autopost_ingest.posts.offload import Offload
from autopost_ingest.pull.items import Item, MediaLink
from autopost_ingest.pull.parsing.wild_html import clean, plain
from autopost_ingest.pull.posts import normalized_words, request_of
from autopost_ingest.pull.source_config import RssSource, SourceOptions
from hypothesis import given
from hypothesis import strategies as st

WORKSPACE = WorkspaceId(UUID(int=1))
BASE = "https://site.example/blog/"


@pytest.mark.parametrize(
    ("given_html", "cleaned"),
    [
        ("<p>One</p><p>Two</p>", "One\n\nTwo"),
        ("One<br>Two<br/>Three", "One\nTwo\nThree"),
        ("<h2>Head</h2>Body", "<b>Head</b>\n\nBody"),
        ("<ul><li>a</li><li>b</li></ul>", "• a\n• b"),
        ("<ol><li>a<ul><li>x</li></ul></li><li>b</li></ol>", "1. a\n\n• x\n\n2. b"),
        ("<table><tr><th>a</th><td>b</td></tr><tr><td>c</td></tr></table>", "a b\nc"),
        ("<b>a<i>b</b>c</i>", "<b>a<i>b</i></b>c"),
        ("<b>never closed", "<b>never closed</b>"),
        ("closed</b> only", "closed only"),
        ("<strong><b>twice</b></strong>", "<b>twice</b>"),
        ("a &amp; b &lt;c&gt; &nbsp;d &copy;", "a &amp; b &lt;c&gt; d ©"),
        ('<a href="../x?a=1&amp;b=2">x</a>', '<a href="https://site.example/x?a=1&amp;b=2">x</a>'),
        ('<a href="javascript:x()">x</a> <a href="#y">y</a> <a>z</a> <a href="http://[">w</a>', "x y z w"),
        ('<a href="//other.example/a b">x</a>', '<a href="https://other.example/a%20b">x</a>'),
        ('<a href="https://a.example"><a href="https://b.example">x</a></a>', '<a href="https://a.example">x</a>'),
        ("<script>alert(1)</script>a<style>b</style>c<iframe>d</iframe>", "ac"),
        ("<pre>a\n  b <b>c</b></pre>", "<pre>a\n  b c</pre>"),
        ("<blockquote><p>a</p><blockquote>b</blockquote></blockquote>", "<blockquote>a\n\nb</blockquote>"),
        ("<o:p>a</o:p><font>b</font><custom-tag x=1>c", "abc"),
        ("  many \n\t spaces  ", "many spaces"),
        ("", ""),
    ],
)
def test_what_is_left_of_html(given_html: str, cleaned: str) -> None:
    assert clean(given_html, BASE).html == cleaned


def test_pictures_are_put_aside_but_not_those_that_count_readers() -> None:
    text = '<img src="a.png"><img src="/b.jpg"><img src="a.png"><img src="t.gif" width="1"><img><img src="data:x">'

    assert clean(text, BASE).pictures == ("https://site.example/blog/a.png", "https://site.example/b.jpg")


def test_a_title_is_one_line_without_markup() -> None:
    assert plain("<b>Fish</b> &amp; <i>chips</i><br>today") == "Fish & chips today"


TAGS = ["p", "b", "i", "u", "s", "a", "pre", "code", "blockquote", "ul", "li", "h1", "table", "td", "script"]
PIECES = st.one_of(
    st.sampled_from(TAGS).map("<{}>".format),
    st.sampled_from(TAGS).map("</{}>".format),
    st.sampled_from(
        ["<a href='https://a.example/'>", "<br>", "text", " ", "\n", "&amp;", "&", "<", ">", "<!--", '"', "я"]
    ),
)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_what_comes_out_can_be_shown_on_every_platform(text: str) -> None:
    cleaned = clean(text, BASE).html

    marked, wrong = read_html(cleaned)

    assert wrong is None
    assert nest(marked)[1] is None


ITEM = Item(
    id="1",
    url="https://site.example/1",
    title="Fish & <chips>",
    summary="<i>Short</i>",
    content="Long",
    tags=(" News ", "", "x" * 80),
    media=(MediaLink("image", "https://site.example/1.jpg"), MediaLink("audio", "https://site.example/1.mp3")),
)


def test_by_default_a_post_is_title_summary_link_and_media() -> None:
    request = request_of(ITEM, RssSource(url="https://site.example/feed"))

    assert request.text == "<b>Fish &amp; &lt;chips&gt;</b>\n\n<i>Short</i>"
    assert (request.parse_mode, request.links, request.buttons) == ("HTML", ("https://site.example/1",), ())
    assert [(each.type, each.url) for each in request.media] == [(each.type, each.url) for each in ITEM.media]
    assert (request.tags, request.silent) == ((), False)
    assert request.meta == {"title": "Fish & <chips>", "url": "https://site.example/1"}


def test_a_source_says_what_its_posts_are_made_of() -> None:
    options = SourceOptions(include=("content", "title"), media="first", button="Read", tags=("shop",), item_tags=True)

    request = request_of(ITEM, options)

    assert request.text == "Long\n\n<b>Fish &amp; &lt;chips&gt;</b>"
    assert [(button.text, button.url) for button in request.buttons] == [("Read", "https://site.example/1")]  # type: ignore[union-attr]
    assert (request.links, len(request.media)) == ((), 1)
    assert request.tags == ("shop", "News", "x" * 64)


async def test_an_item_of_words_is_normalised_now_and_one_of_pictures_when_they_are_there() -> None:
    words = await normalized_words(request_of(ITEM, SourceOptions()), WORKSPACE, Offload())
    picture = request_of(Item(id="1", media=ITEM.media), SourceOptions())

    assert words is not None
    assert words.content.media == ()
    assert await normalized_words(picture, WORKSPACE, Offload()) is None
