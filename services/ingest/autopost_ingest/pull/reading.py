"""What the reader's process is asked and what it answers."""

import msgspec

from autopost_ingest.pull.feeds import read_feed
from autopost_ingest.pull.items import Item, bounded
from autopost_ingest.pull.records import TextFormat, read_records
from autopost_ingest.pull.references import Unreadable
from autopost_ingest.pull.sources import Fields


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


class Read(msgspec.Struct, frozen=True, kw_only=True, tag="read"):
    items: tuple[Item, ...]
    complete: bool = True
    next: str | None = None


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    reason: str


Question = ReadFeed | ReadRecords
Answer = Read | Refused


def answer(question: Question) -> Answer:
    try:
        match question:
            case ReadFeed(body=body, content_type=content_type, url=url):
                feed = read_feed(body, content_type, url)
                return Read(items=tuple(map(bounded, feed.items)), complete=feed.complete)
            case ReadRecords():
                records = read_records(
                    question.body,
                    url=question.url,
                    items=question.items,
                    fields=question.fields,
                    text_format=question.text_format,
                    next_path=question.next_path,
                )
                return Read(items=tuple(map(bounded, records.items)), next=records.next)
    except Unreadable as exc:
        return Refused(reason=str(exc)[:500])
    except Exception as exc:  # a stranger's bytes must not end the process; what they did to us is told by its name
        return Refused(reason=f"reading it failed: {type(exc).__name__}")
