"""Read a feed: RSS of every version, Atom, JSON Feed. Runs in the reader's process: feeds come from strangers."""

import html
import io
import re
from calendar import timegm
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urljoin

import feedparser
import msgspec

from autopost_ingest.pull.encoding import decode
from autopost_ingest.pull.items import Item
from autopost_ingest.pull.references import Unreadable, plain_references
from autopost_ingest.pull.seen import distinct, seen
from autopost_ingest.pull.wild_html import absolute, clean, escaped, plain

_PROLOG = re.compile(r"^\s*<\?xml[^>]*\?>")
_END = re.compile(r"</(?:\w+:)?(?:rss|feed|rdf)\s*>(?:\s|<!--.*?-->|\x00)*\Z", re.IGNORECASE | re.DOTALL)


class Feed(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[Item, ...]
    complete: bool = True
    """``False``: it broke off, and the item that it broke off in was left out."""


def read_feed(body: bytes, content_type: str, url: str) -> Feed:
    """In the order of the feed. ``url`` is where it came from. Raises ``Unreadable``."""
    text = decode(body, content_type).strip()
    if not text:
        raise Unreadable("the answer is empty")
    return _json_feed(text, url) if text.startswith("{") else _xml_feed(text, url)


def _xml_feed(text: str, url: str) -> Feed:
    document = '<?xml version="1.0" encoding="utf-8"?>' + _PROLOG.sub("", plain_references(text))
    parsed = feedparser.parse(
        io.BytesIO(document.encode()),  # a text would be taken for an address or a file
        # Where it came from is not said: an id would become relative to it, and another one when the feed moves.
        response_headers={"content-type": "application/xml; charset=utf-8"},
        sanitize_html=False,
        resolve_relative_uris=False,
    )
    if not parsed.version and not parsed.entries:
        raise Unreadable("it is no feed")
    complete = bool(_END.search(text))
    items = tuple(_entry(entry, parsed.version, url) for entry in parsed.entries)
    return Feed(items=items if complete else items[:-1], complete=complete)


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
    """A guid may stand for it, but only one that looks like an address: many are numbers."""
    link = str(entry.get("link") or "")
    return "" if link == entry.get("id") and not link.startswith(("http://", "https://")) else link


def _words(detail: Mapping[str, Any] | None, base: str) -> tuple[str, ...]:
    """Clean HTML, then the pictures in it; empty strings count as nothing."""
    value = str((detail or {}).get("value") or "")
    if not value.strip():
        return ("",)
    if (detail or {}).get("type") == "text/plain" and "<" not in value and "&" not in value:
        return (escaped(value),)
    cleaned = clean(value, urljoin(base, str((detail or {}).get("base") or "")))
    return (cleaned.html, *cleaned.pictures)


def _title(detail: Mapping[str, Any] | None, version: str) -> str:
    value = str((detail or {}).get("value") or "")
    if (detail or {}).get("type") == "text/plain" and version.startswith("atom"):
        return " ".join(value.split())
    return plain(value) if "<" in value else " ".join(html.unescape(value).split())


def _date(entry: dict[str, Any]) -> str:
    for name in ("published_parsed", "updated_parsed", "created_parsed"):
        if moment := dict.get(entry, name):  # its own way of looking up answers with another date, and a warning
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
    items: tuple[_JsonItem, ...]


def _json_feed(text: str, url: str) -> Feed:
    try:
        feed = msgspec.json.decode(text, type=_JsonFeed)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as exc:
        raise Unreadable(f"it is no JSON Feed: {exc}") from None
    if "jsonfeed.org/version/" not in feed.version:
        raise Unreadable("it is JSON, but no JSON Feed")
    return Feed(items=tuple(_json_item(item, url) for item in feed.items))


def _json_item(item: _JsonItem, url: str) -> Item:
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
