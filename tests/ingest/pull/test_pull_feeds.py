"""Feeds as they are found: a corpus made by hand, one oddity in each, and what is to be made of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from autopost_ingest.pull.items import Item, MediaLink, oldest_first, source_ref
from autopost_ingest.pull.parsing.encoding import decode
from autopost_ingest.pull.parsing.feeds import read_feed
from autopost_ingest.pull.parsing.xml_references import InvalidDocument

FEEDS = Path(__file__).with_name("feeds")
URL = "https://feed.example/dir/feed.xml"


def item(**fields: Any) -> Item:
    """The whole text is the short one, where a feed has no other."""
    return Item(**{"content": fields.get("summary", ""), **fields})


READ = {
    "atom03.xml": [
        item(
            id="tag:atom03.example,2003:1",
            url="https://atom03.example/1",
            title="Draft",
            summary="Escaped",
            date="2003-12-13T12:29:29+00:00",
        )
    ],
    "atom10.xml": [
        item(
            id="urn:uuid:1",
            url="https://atom.example/1",
            title="Less < more",
            summary="A <b>summary</b>",
            date="2026-11-09T12:00:00+00:00",
            tags=("atom",),
            media=(MediaLink("image", "https://atom.example/1.png"),),
        )
    ],
    "atom10_prefixed.xml": [item(id="prefix-1", url="https://prefix.example/1", title="With a prefix")],
    "atom10_xhtml.xml": [
        item(
            id="https://xhtml.example/xhtml-1",
            url="https://xhtml.example/one",
            title="An x",
            summary='Para <a href="https://xhtml.example/two">two</a>',
        )
    ],
    "jsonfeed1.json": [
        item(
            id="7",
            url="https://json.example/7",
            title="Number as id",
            summary="Plain &amp; &lt;simple&gt;",
            date="2026-11-09T12:00:00+03:00",
            tags=("json",),
            media=(MediaLink("image", "https://json.example/7.jpg"),),
        )
    ],
    "jsonfeed11.json": [
        item(
            id="b",
            url="https://other.example/b",
            summary="Ещё <b>текст</b>",
            media=(
                MediaLink("audio", "https://json.example/b.mp3"),
                MediaLink("image", "https://other.example/b.png"),
            ),
        ),
        item(id="a", url="https://json.example/a", title="A", summary="Short", content="Long"),
    ],
    "rss090.xml": [item(url="https://oldest.example/1", title="RDF")],
    "rss091.xml": [item(url="https://old.example/1", title="Grüße", summary="No guid then")],
    "rss092.xml": [
        item(
            summary='Only a description, with <a href="https://older.example/x">a link</a>',
            media=(MediaLink("audio", "https://older.example/song.mp3"),),
        )
    ],
    "rss10.xml": [
        item(
            id="https://rdf.example/1",
            url="https://rdf.example/1",
            title="About",
            summary="Text",
            date="2026-11-09T00:00:00+00:00",
            tags=("science",),
        )
    ],
    "rss20_bom_and_blank_lines.xml": [
        item(id="late-1", url="https://late.example/1", title="Blank lines before the prolog")
    ],
    "rss20_cdata.xml": [
        item(
            id="cdata-1",
            url="https://cdata.example/1",
            title="Fish & chips today",
            summary='Short, with a <a href="https://cdata.example/menu?a=1&amp;b=2">menu</a>.',
            content="<b>Today</b>\n\nLong one.\n\n• fish\n• chips",
        )
    ],
    "rss20_control_characters.xml": [item(id="control-1", url="https://control.example/1", title="Bell and tab")],
    "rss20_duplicate_guids.xml": [
        item(id="twin", url="https://twins.example/2", title="The same guid"),
        item(id="other", url="https://twins.example/3", title="Another"),
        item(id="twin", url="https://twins.example/1", title="The same guid, older"),
    ],
    "rss20_empty.xml": [],
    "rss20_enclosures.xml": [
        item(
            id="episode-1",
            url="https://podcast.example/1",
            title="Episode 1",
            summary="About this",
            media=(
                MediaLink("audio", "https://podcast.example/1.mp3"),
                MediaLink("image", "https://podcast.example/cover.jpg"),
            ),
        )
    ],
    "rss20_escaped_html.xml": [
        item(
            id="escaped-1",
            url="https://escaped.example/1",
            title="AT&T — <again>",
            summary="One\n\nTwo <i>three</i> 2 &lt; 3",
        )
    ],
    "rss20_guids_without_links.xml": [
        item(id="4711", title="A number is no address"),
        item(id="https://guids.example/1", url="https://guids.example/1", title="An address is one"),
    ],
    "rss20_html_entities.xml": [
        item(
            id="entities-1",
            url="https://entities.example/1?a=1&b=2",
            title="Café — 5 €",
            summary="R&amp;D &amp; more «here»",
        )
    ],
    "rss20_html_in_titles.xml": [
        item(id="titles-1", url="https://titles.example/1", title="Bold & brave title"),
        item(id="titles-2", url="https://titles.example/2", title="Many lines"),
    ],
    "rss20_koi8_r.xml": [
        item(id="koi-1", url="https://koi.example/1", title="Привет из девяностых", summary="Кодировка цела")
    ],
    "rss20_latin_1_undeclared.xml": [
        item(id="cafe-1", url="https://cafe.example/1", title="Crème brûlée", summary="Déjà vu, naïve, façade")
    ],
    "rss20_media_content.xml": [
        item(
            id="media-1",
            url="https://media.example/1",
            title="Group",
            media=(
                MediaLink("image", "https://media.example/1.jpg"),
                MediaLink("video", "https://media.example/1.mp4"),
            ),
        ),
        item(
            id="media-2",
            url="https://media.example/2",
            title="Thumbnail alone",
            media=(MediaLink("image", "https://media.example/2.webp"),),
        ),
    ],
    "rss20_namespaced_root.xml": [item(id="self-1", url="https://self.example/1", title="Self")],
    "rss20_no_ids.xml": [
        item(url="https://noid.example/a?b=2&a=1", title="One", date="2026-11-09T09:00:00+00:00"),
        item(url="https://noid.example/b", title="Two"),
        item(title="Three", summary="Neither id nor address nor date"),
    ],
    "rss20_odd_dates.xml": [
        item(id="dates-1", url="https://dates.example/1", title="ISO", date="2026-11-10T09:00:00+00:00"),
        item(id="dates-2", url="https://dates.example/2", title="Dublin Core", date="2026-11-09T00:00:00+00:00"),
        item(id="dates-3", url="https://dates.example/3", title="No date at all"),
    ],
    "rss20_own_entities.xml": [item(id="own-1", url="https://own.example/1", title="Shop news")],
    "rss20_plain.xml": [
        item(
            id="plain-2",
            url="https://plain.example/2",
            title="Second",
            summary="The newer one",
            date="2026-11-10T06:00:00+00:00",
            tags=("news", "Sale"),
        ),
        item(
            id="https://plain.example/1",
            url="https://plain.example/1",
            title="First",
            summary="The older one",
            date="2026-11-09T09:00:00+00:00",
        ),
    ],
    "rss20_relative_links.xml": [
        item(
            id="relative-1",
            url="https://relative.example/blog/posts/1",
            title="Somewhere here",
            summary='<a href="https://relative.example/about">about</a> no',
            media=(MediaLink("image", "https://relative.example/pictures/1.png"),),
        )
    ],
    "rss20_says_utf8_is_windows_1251.xml": [
        item(
            id="liar-1",
            url="https://liar.example/1",
            title="Объявление о скидках",
            summary="Только сегодня все товары дешевле",
        )
    ],
    "rss20_says_windows_1251_is_utf8.xml": [
        item(id="liar-2", url="https://liar.example/2", title="Погода", summary="Завтра дождь")
    ],
    "rss20_truncated.xml": [item(id="cut-1", url="https://cut.example/1", title="Whole", summary="All of it")],
    "rss20_utf16.xml": [
        item(id="wide-1", url="https://wide.example/1", title="Широкие буквы", summary="Two bytes each")
    ],
    "rss20_wild_markup.xml": [
        item(
            id="wild-1",
            url="https://wild.example/1",
            title="Markup",
            summary="Red <b>bold <i>both</i></b> italic \n\na b\nc d\n\n1. one\n2. two\n\n"
            "<blockquote>Quoted</blockquote>\n\n<pre>x = 1</pre>\n\n"
            '<a href="https://wild.example/2?a=1&amp;b=2">link</a>top \n\nEnd',
            media=(MediaLink("image", "https://wild.example/p.jpg"),),
        )
    ],
    "rss20_windows_1251.xml": [
        item(id="ru-1", url="https://ru.example/1", title="Съешь ещё этих булок", summary="Да выпей же чаю — «тут»")
    ],
}

REFUSED = {
    "refused_billion_laughs.xml": "entity declarations",
    "refused_quadratic_blowup.xml": "entity declarations",
    "refused_external_entity.xml": "entity declarations",
    "refused_bomb_in_utf16.xml": "entity declarations",
    "refused_html_page.html": "not an RSS",
    "refused_other_json.json": "not a JSON Feed",
    "refused_half_json.json": "not a valid JSON Feed",
    "refused_nothing.xml": "empty",
}


def body(name: str) -> bytes:
    return (FEEDS / name).read_bytes()


def test_every_feed_of_the_corpus_is_spoken_of() -> None:
    assert {path.name for path in FEEDS.iterdir()} == READ.keys() | REFUSED.keys()
    assert len(READ) >= 30


@pytest.mark.parametrize("name", READ)
def test_a_feed_is_read_as_it_was_meant(name: str) -> None:
    feed = read_feed(body(name), "", URL)

    assert list(feed.items) == READ[name]
    assert feed.complete == ("truncated" not in name)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_feed_or_would_grow_is_refused_in_words(name: str) -> None:
    with pytest.raises(InvalidDocument, match=REFUSED[name]):
        read_feed(body(name), "", URL)


@pytest.mark.parametrize("name", READ)
def test_every_item_has_a_reference_of_its_own_that_the_place_of_the_feed_does_not_change(name: str) -> None:
    here = [source_ref(each) for each in read_feed(body(name), "", URL).items]
    there = [source_ref(each) for each in read_feed(body(name), "", "https://moved.example/other.xml").items]

    assert here == there
    assert all(0 < len(ref) <= 256 for ref in here)
    assert len(set(here)) == len(here) or "duplicate" in name


def test_the_header_says_the_encoding_where_the_bytes_leave_it_open() -> None:
    text = '<rss version="2.0"><channel><item><title>Привет, мир</title><guid>1</guid></item></channel></rss>'

    feed = read_feed(text.encode("koi8-r"), "application/rss+xml; charset=KOI8-R", URL)

    assert feed.items[0].title == "Привет, мир"


@pytest.mark.parametrize(
    ("charset", "written", "title"),
    [
        ("win-1251", "cp1251", "Привет, мир"),  # a label that browsers know and Python does not
        ("iso-8859-1", "cp1252", "“Quoted”"),
        ("us-ascii", "cp1251", "Длинный русский заголовок"),
    ],
)
def test_a_label_means_what_browsers_take_it_for_and_ascii_means_nothing(
    charset: str, written: str, title: str
) -> None:
    text = f'<rss version="2.0"><channel><item><title>{title}</title><guid>1</guid></item></channel></rss>'

    feed = read_feed(text.encode(written), f"text/xml; charset={charset}", URL)

    assert feed.items[0].title == title


@pytest.mark.parametrize("charset", ["utf-7", "punycode", "rot13", "no-such-thing", "idna"])
def test_an_encoding_that_is_none_is_passed_over(charset: str) -> None:
    text = '<rss version="2.0"><channel><item><title>Привет</title><guid>1</guid></item></channel></rss>'

    feed = read_feed(text.encode(), f"text/xml; charset={charset}", URL)

    assert feed.items[0].title == "Привет"


def test_a_single_broken_byte_does_not_change_the_alphabet() -> None:
    text = (
        '<rss version="2.0"><channel><item><title>Очень длинный заголовок</title><guid>1</guid></item></channel></rss>'
    )

    feed = read_feed(text.encode().replace("длинный".encode(), "длинн".encode() + b"\xd1"), "", URL)

    assert feed.items[0].title.startswith("Очень длинн")


def test_a_reference_is_the_id_else_address_and_date_else_all_of_it() -> None:
    by_address = Item(url="https://a.example/x?b=2&a=1", date="2026-11-09T09:00:00+00:00", title="One")

    assert source_ref(Item(id="7", url="https://a.example/")) == "7"
    assert len(source_ref(Item(id="x" * 257))) == 64
    assert source_ref(by_address) == source_ref(
        Item(url="https://a.example/x?a=1&b=2", date=by_address.date, title="2")
    )
    assert source_ref(by_address) != source_ref(Item(url=by_address.url, date="2026-11-10T09:00:00+00:00"))
    assert source_ref(Item(title="One")) != source_ref(Item(title="Two"))


def test_the_oldest_come_first_by_date_or_else_as_feeds_are_written() -> None:
    dated = [Item(id=str(day), date=f"2026-11-{day:02}T00:00:00Z") for day in (3, 1, 2)]
    undated = [Item(id="new"), *dated, Item(id="old")]

    assert [each.id for each in oldest_first(dated)] == ["1", "2", "3"]
    assert [each.id for each in oldest_first(undated)] == ["old", "2", "1", "3", "new"]
    assert [each.id for each in oldest_first(undated, newest_come_first=False)] == ["new", "3", "1", "2", "old"]


NOT_FOR_TEXT = ["unicode_escape", "raw_unicode_escape", "utf_7", "punycode", "idna", "undefined", "base64", "rot13"]


@pytest.mark.parametrize("codec", NOT_FOR_TEXT)
@pytest.mark.parametrize("named", [str, str.upper, lambda codec: codec.replace("_", "-")], ids=["_", "UPPER", "-"])
def test_a_codec_that_is_no_alphabet_is_passed_over_however_it_is_written(
    codec: str, named: Callable[[str], str]
) -> None:
    """What looks like an escape is text: read as one it could become markup."""
    body = rb"<?xml version='1.0' encoding='%s'?><t>\u003cb\x3e +ADw- caf" % named(codec).encode() + b"\xe9</t>"

    assert r"\u003cb\x3e +ADw- café" in decode(body, "")
    assert r"\u003cb\x3e +ADw- café" in decode(body, f"text/xml; charset={named(codec)}")
