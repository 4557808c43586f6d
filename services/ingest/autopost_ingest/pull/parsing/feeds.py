"""Parse a feed: all versions of RSS, Atom, JSON Feed. Runs in a worker process, because feeds are untrusted input."""

import re
from calendar import timegm
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec

from autopost_ingest.pull.items import MOST_ENTRIES, Item, made
from autopost_ingest.pull.media_kind import distinct, seen
from autopost_ingest.pull.parsing.encoding import decode
from autopost_ingest.pull.parsing.feed_parsers import parse
from autopost_ingest.pull.parsing.html_tokens import unescape
from autopost_ingest.pull.parsing.wild_html import absolute, clean, escaped, plain
from autopost_ingest.pull.parsing.xml_references import InvalidDocument, plain_references

_END = re.compile(r"</(?:\w{1,64}:)?(?:rss|feed|rdf)\s*>", re.IGNORECASE)
MOST_COMMENTS = 100
"""At the end of a feed; with more of them the feed counts as truncated."""


class Feed(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[Item, ...]
    complete: bool = True
    """``False``: the feed is truncated, and its last item was dropped."""


def read_feed(body: bytes, content_type: str, url: str) -> Feed:
    """Items in the order of the feed. ``url`` is the URL of the feed. Raises ``InvalidDocument``."""
    text = decode(body, content_type).strip()
    if not text:
        raise InvalidDocument("the response is empty")
    return _json_feed(text, url) if text.startswith("{") else _xml_feed(text, url)


def _xml_feed(text: str, url: str) -> Feed:
    parsed = parse(plain_references(text))
    if not parsed.version and not parsed.entries:
        raise InvalidDocument("not an RSS, Atom or JSON feed")
    complete = _is_complete(text)
    items = tuple(made(partial(_entry, entry, parsed.version, url), entry) for entry in parsed.entries)
    return Feed(items=items if complete else items[:-1], complete=complete)


def _is_complete(text: str) -> bool:
    """The root element is closed, and only comments follow."""
    end = len(text)
    for _ in range(MOST_COMMENTS):
        end = _end_of_text(text, end)
        if not text.endswith("-->", 0, end):
            return bool(_END.fullmatch(text, max(text.rfind("</", 0, end), 0), end))
        end = max(text.rfind("<!--", 0, end), 0)
    return False


def _end_of_text(text: str, end: int) -> int:
    """The start of the whitespace before ``end``."""
    size = 16
    while end > 0:
        piece = text[max(end - size, 0) : end]
        if kept := len(piece.rstrip()):
            return end - len(piece) + kept
        end -= len(piece)
        size *= 2
    return 0


def _entry(entry: dict[str, Any], version: str, url: str) -> Item:
    link = absolute(_link(entry), url)
    summary, content = entry.get("summary_detail"), next(iter(entry.get("content", ())), None)
    if summary is not None and content is not None and summary.get("value") == content.get("value"):
        summary = None
    (short, *in_short), (long, *in_long) = _words(summary, link or url), _words(content, link or url)
    return Item(
        id=str(entry.get("id", "")).strip(),
        url=link,
        title=_title(entry.get("title_detail"), version),
        summary=short or long,
        content=long or short,
        date=_date(entry),
        tags=tuple(str(tag.get("term") or "").strip() for tag in entry.get("tags", ())),
        media=distinct((*_attached(entry, link or url), *(seen(each, "image/*") for each in (*in_short, *in_long)))),
    )


def _link(entry: Mapping[str, Any]) -> str:
    """A guid is used as the link only if it looks like a URL: many are numbers."""
    link = str(entry.get("link") or "")
    return "" if link == entry.get("id") and not link.startswith(("http://", "https://")) else link


def _words(detail: Mapping[str, Any] | None, base: str) -> tuple[str, ...]:
    """Cleaned HTML, followed by the URLs of its pictures."""
    value = str((detail or {}).get("value") or "")
    if not value.strip():
        return ("",)
    if (detail or {}).get("type") == "text/plain" and "<" not in value and "&" not in value:
        return (escaped(value),)
    cleaned = clean(value, absolute(str((detail or {}).get("base") or ""), base) or base)
    return (cleaned.html, *cleaned.pictures)


def _title(detail: Mapping[str, Any] | None, version: str) -> str:
    value = str((detail or {}).get("value") or "")
    if (detail or {}).get("type") == "text/plain" and version.startswith("atom"):
        return " ".join(value.split())
    return plain(value) if "<" in value else " ".join(unescape(value).split())


def _date(entry: dict[str, Any]) -> str:
    for name in ("published_parsed", "updated_parsed", "created_parsed"):
        if moment := dict.get(entry, name):  # ``entry.get`` would return another date, with a warning
            try:
                return datetime.fromtimestamp(timegm(moment), UTC).isoformat()
            except (ValueError, OverflowError, OSError):
                continue
    return ""


def _attached(entry: Mapping[str, Any], base: str) -> Iterable[Any]:
    for each in entry.get("enclosures", ()):
        yield seen(absolute(str(each.get("href") or ""), base), str(each.get("type") or ""))
    for each in entry.get("media_content", ()):
        kind = str(each.get("type") or "") or f"{each.get('medium') or ''}/*"
        yield seen(absolute(str(each.get("url") or ""), base), kind)
    if not entry.get("media_content") and not entry.get("enclosures"):
        for each in entry.get("media_thumbnail", ())[:1]:
            yield seen(absolute(str(each.get("url") or ""), base), "image/*")


class _Attachment(msgspec.Struct, frozen=True):
    url: str = ""
    mime_type: str = ""


class _JsonItem(msgspec.Struct, frozen=True, kw_only=True):
    id: str | int | float | None = None
    url: str | None = None
    external_url: str | None = None
    title: str | None = None
    content_html: str | None = None
    content_text: str | None = None
    summary: str | None = None
    image: str | None = None
    banner_image: str | None = None
    date_published: str | None = None
    date_modified: str | None = None
    tags: tuple[str, ...] | None = None
    attachments: tuple[_Attachment, ...] | None = None


class _JsonFeed(msgspec.Struct, frozen=True):
    version: str
    items: tuple[msgspec.Raw, ...]
    """Each item is decoded separately, so that an invalid one does not affect the others."""


def _json_feed(text: str, url: str) -> Feed:
    try:
        feed = msgspec.json.decode(text, type=_JsonFeed)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as exc:
        raise InvalidDocument(f"not a valid JSON Feed: {exc}") from None
    if "jsonfeed.org/version/" not in feed.version:
        raise InvalidDocument("JSON, but not a JSON Feed")
    if len(feed.items) > MOST_ENTRIES:
        raise InvalidDocument(f"the document has more than {MOST_ENTRIES} items")
    return Feed(items=tuple(made(partial(_json_item, item, url), bytes(item)) for item in feed.items))


def _json_item(encoded: msgspec.Raw, url: str) -> Item:
    item = msgspec.json.decode(encoded, type=_JsonItem)
    link = absolute(item.url or item.external_url or "", url)
    cleaned = clean(item.content_html or "", link or url)
    content = cleaned.html or escaped(item.content_text or "")
    attached = (seen(absolute(each.url, url), each.mime_type) for each in item.attachments or ())
    shown = (absolute(each or "", url) for each in (item.image or item.banner_image, *cleaned.pictures))
    return Item(
        id="" if item.id is None else str(item.id).strip(),
        url=link,
        title=" ".join((item.title or "").split()),
        summary=escaped(item.summary) if item.summary else content,
        content=content,
        date=item.date_published or item.date_modified or "",
        tags=item.tags or (),
        media=distinct((*attached, *(seen(each, "image/*") for each in shown))),
    )
