"""Parse records, the JSON of an API or the rows of a query, by the paths in the config of the source."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Literal

import msgspec

from autopost_ingest.pull.items import MOST_ENTRIES, Item, MediaLink, made
from autopost_ingest.pull.media_kind import distinct, seen
from autopost_ingest.pull.parsing.wild_html import absolute, clean, escaped
from autopost_ingest.pull.parsing.xml_references import InvalidDocument
from autopost_ingest.pull.source_config import Fields

TextFormat = Literal["plain", "html"]
LONGEST_NEXT = 4096
"""Characters of the URL or cursor of the next page."""


class Records(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[Item, ...]
    next: str | None = None
    """The value at the paging path, if there is one."""


def read_records(
    body: bytes, *, url: str, items: str | None, fields: Fields, text_format: TextFormat, next_path: str | None
) -> Records:
    """Items in the order of the response. Raises ``InvalidDocument``."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as exc:
        raise InvalidDocument(f"not valid JSON: {exc}") from None
    records = document if items is None else next(look(document, items), None)
    if not isinstance(records, list):
        raise InvalidDocument(f"no list at {items or 'the top level'}")
    if len(records) > MOST_ENTRIES:
        raise InvalidDocument(f"the document has more than {MOST_ENTRIES} items")
    return Records(
        items=tuple(made(partial(_item, record, fields, text_format, url), record) for record in records),
        next=_next(document, next_path),
    )


_row_decoder = msgspec.json.Decoder(float_hook=str)
"""A number keeps its digits: 1.50 stays 1.50."""


def read_rows(rows: Sequence[bytes], *, fields: Fields, text_format: TextFormat) -> tuple[Item, ...]:
    """One item per row, each a JSON object; a row that cannot be parsed does not affect the others."""
    if len(rows) > MOST_ENTRIES:
        raise InvalidDocument(f"the query returned more than {MOST_ENTRIES} rows")
    return tuple(made(partial(_item_of_row, row, fields, text_format), row) for row in rows)


def _item_of_row(row: bytes, fields: Fields, text_format: TextFormat) -> Item:
    return _item(_row_decoder.decode(row), fields, text_format, "")


def _next(document: Any, path: str | None) -> str | None:
    found = _text(document, path)
    if len(found) > LONGEST_NEXT:
        raise InvalidDocument(f"the value at {path} is longer than {LONGEST_NEXT} characters")
    return found or None


def look(value: Any, path: str) -> Iterator[Any]:
    """All values at the path; none if it does not exist."""
    found = [value]
    for step in path.split("."):
        found = list(_step(found, step))
    return iter(found)


def _step(found: Iterable[Any], step: str) -> Iterator[Any]:
    for each in found:
        if isinstance(each, dict) and step in each:
            yield each[step]
        elif isinstance(each, list) and step == "*":
            yield from each
        elif isinstance(each, list) and step.isascii() and step.isdigit() and int(step) < len(each):
            yield each[int(step)]


def _item(record: Any, fields: Fields, text_format: TextFormat, url: str) -> Item:
    link = absolute(_text(record, fields.url), url)
    text = _text(record, fields.text)
    cleaned = clean(text, link or url) if text_format == "html" else None
    words = cleaned.html if cleaned else escaped(text)
    pictures = (seen(each, "image/*") for each in (cleaned.pictures if cleaned else ()))
    return Item(
        id=_text(record, fields.id).strip(),
        url=link,
        title=" ".join(_text(record, fields.title).split()),
        summary=words,
        content=words,
        date=_text(record, fields.date),
        tags=tuple(filter(None, _texts(record, fields.tags))),
        media=distinct((*_media(record, fields.media, url), *pictures)),
    )


def _media(record: Any, path: str | None, url: str) -> Iterator[MediaLink | None]:
    return (seen(absolute(each, url), "") for each in _texts(record, path))


def _text(record: Any, path: str | None) -> str:
    return next(_texts(record, path), "")


def _texts(record: Any, path: str | None) -> Iterator[str]:
    """A list at the end of the path yields all its elements."""
    if path is None:
        return
    for found in look(record, path):
        for each in found if isinstance(found, list) else [found]:
            if isinstance(each, str):
                yield each.replace("\x00", "")
            elif isinstance(each, int | float) and not isinstance(each, bool):
                yield str(each)
