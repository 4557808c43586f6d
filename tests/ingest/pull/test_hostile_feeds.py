"""Feeds that were made to take long: reading takes linear time, a process of its own, and no time of the loop."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from autopost_ingest.pull.endings import PullRejected
from autopost_ingest.pull.items import Item, bounded, oldest_first
from autopost_ingest.pull.parsing.encoding import decode
from autopost_ingest.pull.parsing.feed_parsers import parse
from autopost_ingest.pull.parsing.feeds import read_feed
from autopost_ingest.pull.parsing.html_tokens import tokens
from autopost_ingest.pull.parsing.reader import DocumentReader
from autopost_ingest.pull.parsing.reading import ReadFeed, ReadRecords, parse_document
from autopost_ingest.pull.parsing.records import read_records
from autopost_ingest.pull.parsing.wild_html import absolute, clean, plain
from autopost_ingest.pull.parsing.xml_references import InvalidDocument, plain_references
from autopost_ingest.pull.source_config import Fields
from harness.growth import assert_linear
from ingest.support.hostile_feeds import FEEDS, repeated
from ingest.support.loop_probe import probed
from ingest.support.pull_setup import numbered

KiB = 1024
LIMIT = 10 * KiB * KiB
"""Of a document."""
BUDGET = 0.05
"""Seconds that the loop may be kept from its turn."""


def read(feed: str) -> object:
    try:
        return read_feed(feed.encode(errors="replace"), "", "https://site.example/")
    except InvalidDocument as exc:
        return exc


@pytest.mark.parametrize("name", FEEDS)
def test_reading_a_feed_takes_linear_time(name: str) -> None:
    assert_linear(read, FEEDS[name], 128 * KiB)


def references(text: str) -> object:
    try:
        return plain_references(text)
    except InvalidDocument as exc:
        return exc


def test_a_few_comments_behind_a_feed_do_not_take_longer_with_each_of_them() -> None:
    assert_linear(read, FEEDS["end and more: '<!-- -->'"], 200)


HTML = ("<b><i>", "<x ", "<x a='", "<!--", "<a href=x ", "<![CDATA[", "&#9999999999;", "&#", "<script>", "<img src=%d>")
RECORDS = Fields(id="id", title="t", text="t.*.*", url="u", tags="tags.*")


def read_json(body: str) -> object:
    try:
        return read_records(
            body.encode(), url="https://a.example/", items="items", fields=RECORDS, text_format="html", next_path="n.*"
        )
    except InvalidDocument as exc:
        return exc


FUNCTIONS: dict[str, tuple[Callable[..., object], tuple[Callable[[int], object], ...], int]] = {
    "clean": (partial(clean, base="https://a.example/"), tuple(partial(repeated, unit) for unit in HTML), LIMIT // 16),
    "plain": (plain, tuple(partial(repeated, unit) for unit in HTML), LIMIT // 16),
    "tokens": (lambda text: sum(1 for _ in tokens(text)), tuple(partial(repeated, unit) for unit in HTML), LIMIT // 16),
    "plain_references": (
        references,
        tuple(partial(repeated, unit) for unit in ("<![CDATA[", "&", "&#38;", "&x", "&x;", "<!ENTITY", "]]>")),
        LIMIT // 8,
    ),
    "parse": (
        parse,
        (partial(repeated, "<!---->\n"), partial(repeated, "<!DOCTYPE["), partial(repeated, "<?")),
        LIMIT // 8,
    ),
    "decode": (
        partial(decode, content_type="text/xml; charset=" + "x" * 1000),
        (
            *(
                lambda size: b"\xff\xe0" * (size // 2),
                lambda size: b"\xc0 " * (size // 2),
                lambda size: b"<\x00" * (size // 2),
            ),
            *(
                lambda size: "\u0301\u0323".encode() * (size // 4),
                lambda size: b" " * size,
                lambda size: b"<?xml " * (size // 6),
            ),
        ),
        LIMIT // 4,
    ),
    "absolute": (
        partial(absolute, base="https://a.example/"),
        tuple(partial(repeated, unit) for unit in ("../", "//\u0301\u0323", "\u0301\u0323", " ", "?", "a:")),
        LIMIT,
    ),
    "bounded": (
        bounded,
        (
            lambda size: Item(url="http://a.example/" + "a=b&" * (size // 4)),
            lambda size: Item(url="http://" + "\u0301\u0323" * (size // 4)),
            lambda size: Item(date="1" * size),
        ),
        LIMIT,
    ),
    "oldest_first": (
        lambda items: oldest_first(items),
        (lambda size: [Item(date="2026-11-09T00:00:00+00:00")] * (size // 1000), lambda size: [Item(date="9" * size)]),
        LIMIT,
    ),
    "read_records": (
        read_json,
        (
            lambda size: '{"items":[' + '{"id":1},' * (size // 9) + '{"id":1}]}',
            lambda size: '{"items":[{"t":[' + '["<b><i>"],' * (size // 12) + '["x"]]}]}',
            lambda size: '{"items":[{"u":"http://' + "\u0301\u0323" * (size // 4) + '"}]}',
            lambda size: '{"items":[],"n":["' + "x" * size + '"]}',
            lambda size: "[" * size,
            lambda size: "9" * size,
        ),
        LIMIT // 4,
    ),
}
CASES = [(name, number) for name, (_, makers, _) in FUNCTIONS.items() for number in range(len(makers))]


@pytest.mark.parametrize(("name", "number"), CASES)
def test_what_reads_foreign_text_takes_linear_time(name: str, number: int) -> None:
    function, makers, size = FUNCTIONS[name]

    assert_linear(function, makers[number], size)


AT_THE_LIMIT = (
    *("nothing: '<![CDATA['", "item: '<b><i>'", "html: '<x a='", "html: '<!--'", "channel: '<item/>'", "author: '1-'"),
    *("end: '<!-- -->'", "tag: \"a%d='b' \"", "items of JSON: '{\"id\":1},'"),
)


@pytest.mark.parametrize("name", AT_THE_LIMIT)
async def test_the_loop_has_its_turns_while_a_feed_as_large_as_allowed_is_read(name: str) -> None:
    body = FEEDS[name](LIMIT).encode()[:LIMIT]

    async with DocumentReader(1, timedelta(seconds=0.5)) as reader, probed() as probe:
        try:
            await reader.read(ReadFeed(body=body, content_type="", url="https://a.example/"))
        except PullRejected as exc:
            assert exc.code == "unreadable"

    assert probe.longest < BUDGET


async def test_the_loop_has_its_turns_while_many_large_items_are_handed_over() -> None:
    words = "я" * 120_000
    items = ",".join(f'{{"id":"{number}","t":"{words}"}}' for number in range(40))

    async with DocumentReader(1, timedelta(seconds=10)) as reader, probed() as probe:
        read = await reader.read(
            ReadRecords(body=f"[{items}]".encode(), url="https://a.example/", fields=Fields(id="id", text="t"))
        )

    assert len(read.items) == 40
    assert probe.longest < BUDGET


async def test_hostile_feeds_of_one_workspace_leave_a_reader_for_another() -> None:
    slow = ReadFeed(body=numbered(60_000).encode(), content_type="", url="https://a.example/")
    quick = ReadFeed(body=numbered(1).encode(), content_type="", url="https://a.example/")
    ended: list[str] = []

    async def end(reader: DocumentReader, whose: str, question: ReadFeed) -> None:
        try:
            await reader.on_behalf_of(whose).read(question)
        except PullRejected:
            ended.append(f"{whose}: refused")
        else:
            ended.append(f"{whose}: read")

    async with DocumentReader(2, timedelta(seconds=1)) as reader:
        theirs = [asyncio.create_task(end(reader, "theirs", slow)) for _ in range(4)]
        await asyncio.sleep(0)
        await asyncio.gather(end(reader, "ours", quick), *theirs)

    assert ended == ["ours: read", *["theirs: refused"] * 4]


def test_an_item_that_cannot_be_read_does_not_keep_the_others_from_being_read() -> None:
    body = (
        '{"version":"https://jsonfeed.org/version/1","items":'
        '[{"id":"1","title":"a"},{"id":"2","title":[]},7,{"id":"3","title":"b"}]}'
    )

    feed = read_feed(body.encode(), "", "https://site.example/")

    assert [(item.id, bool(item.problem)) for item in feed.items] == [
        ("1", False),
        ("", True),
        ("", True),
        ("3", False),
    ]
    assert len({bounded(item).ref for item in feed.items}) == 4


def test_a_number_that_is_no_character_does_not_make_a_feed_unreadable() -> None:
    feed = (
        "<rss><channel><item><guid>1</guid><description>a &amp;#99999999999999999999; b</description></item>"
        f"<item><guid>2</guid><title>&amp;#{'9' * 5000};</title></item></channel></rss>"
    )

    answered = read_feed(feed.encode(), "", "https://site.example/")

    assert [(item.id, item.content, item.title) for item in answered.items] == [("1", "a � b", ""), ("2", "", "�")]


def test_a_document_of_more_items_than_anybody_reads_is_refused() -> None:
    feed = f"<rss><channel>{'<item><guid>1</guid></item>' * 10_002}</channel></rss>"

    told = parse_document(ReadFeed(body=feed.encode(), content_type="", url="https://a.example/"))

    assert getattr(told, "reason", "") == "the document has more than 10000 items"
