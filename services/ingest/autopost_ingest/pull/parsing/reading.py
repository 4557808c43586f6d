"""Requests to the parser processes and their results."""

import msgspec

from autopost_ingest.pull.items import Item, bounded, made
from autopost_ingest.pull.parsing.feeds import read_feed
from autopost_ingest.pull.parsing.records import TextFormat, read_records, read_rows
from autopost_ingest.pull.parsing.xml_references import InvalidDocument
from autopost_ingest.pull.source_config import Fields


class ReadFeed(msgspec.Struct, frozen=True, kw_only=True, tag="feed"):
    body: bytes
    content_type: str
    url: str


class ReadRecords(msgspec.Struct, frozen=True, kw_only=True, tag="records"):
    body: bytes
    url: str
    items: str | None = None
    fields: Fields
    text_format: TextFormat = "plain"
    next_path: str | None = None


class ReadRows(msgspec.Struct, frozen=True, kw_only=True, tag="rows"):
    rows: tuple[bytes, ...]
    fields: Fields
    text_format: TextFormat = "plain"


class Encoded(msgspec.Struct, frozen=True, kw_only=True, tag="read"):
    items: tuple[msgspec.Raw, ...]
    """Encoded separately, so that the service can decode them in portions."""
    complete: bool = True
    next: str | None = None


class ParseFailed(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    reason: str


ParseRequest = ReadFeed | ReadRecords | ReadRows
ParseResult = Encoded | ParseFailed


def parse_document(question: ParseRequest) -> ParseResult:
    try:
        match question:
            case ReadFeed(body=body, content_type=content_type, url=url):
                feed = read_feed(body, content_type, url)
                return Encoded(items=tuple(map(_encoded, feed.items)), complete=feed.complete)
            case ReadRecords():
                records = read_records(
                    question.body,
                    url=question.url,
                    items=question.items,
                    fields=question.fields,
                    text_format=question.text_format,
                    next_path=question.next_path,
                )
                return Encoded(items=tuple(map(_encoded, records.items)), next=records.next)
            case ReadRows(rows=rows, fields=fields, text_format=text_format):
                found = read_rows(rows, fields=fields, text_format=text_format)
                return Encoded(items=tuple(map(_encoded, found)))
    except InvalidDocument as exc:
        return ParseFailed(reason=str(exc)[:500])


def _encoded(item: Item) -> msgspec.Raw:
    return msgspec.Raw(msgspec.msgpack.encode(made(lambda: bounded(item), item)))
