"""One item of a source of any kind, cleaned, before it becomes a post."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from hashlib import sha256

import msgspec
from autopost_contracts.payload import MediaType
from msgspec import Struct
from msgspec.structs import replace
from w3lib.url import canonicalize_url

from autopost_ingest.pull.parsing.wild_html import is_reasonable

LONGEST_REF = 256
MOST_ENTRIES = 10_000
"""Per document."""
MOST_WORDS = 256 * 1024
"""Bytes of text per item, the same as for a pushed post."""


class MediaLink(Struct, frozen=True, omit_defaults=True):
    """URL and kind of a medium."""

    type: MediaType
    url: str


class Item(Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str = ""
    url: str = ""
    title: str = ""
    """Plain text."""
    summary: str = ""
    """HTML that every platform supports, like ``content``."""
    content: str = ""
    date: str = ""
    tags: tuple[str, ...] = ()
    media: tuple[MediaLink, ...] = ()
    ref: str = ""
    """Unique id within the source."""
    is_too_large: bool = False
    """Its text was dropped."""
    problem: str = ""
    """Name of the error when parsing failed; only ``ref`` is set then."""


def made(make: Callable[[], Item], given: object) -> Item:
    """An item that cannot be parsed does not affect the others."""
    try:
        return make()
    except MemoryError:
        raise  # the state of the process is no longer reliable
    except Exception as exc:
        return Item(ref=_digest(repr(given)), problem=type(exc).__name__)


def bounded(item: Item) -> Item:
    """Set its ``ref`` and drop its text if it is too large, before it reaches the event loop of the service."""
    if item.problem:
        return item
    ref = source_ref(item)
    words = (item.id, item.url, item.title, max(item.summary, item.content, key=len), item.date, *item.tags)
    if sum(len(each.encode(errors="replace")) for each in words) <= MOST_WORDS:
        return replace(item, ref=ref)
    return Item(ref=ref, is_too_large=True)


def source_ref(item: Item) -> str:
    """The id of the item; without one its URL and date; without a URL the hash of its content."""
    if item.id:
        return item.id if len(item.id) <= LONGEST_REF else _digest(item.id)
    if item.url:
        return _digest(_canonical(item.url) + item.date)
    return _digest(msgspec.json.encode(item, order="sorted").decode())


def is_before(item: Item, since: datetime) -> bool:
    """``False`` without a date."""
    moment = moment_of(item.date)
    return moment is not None and moment < since


def oldest_first(items: Sequence[Item], *, newest_come_first: bool = True) -> tuple[Item, ...]:
    """By date if all items have one, otherwise in the order known for the source."""
    in_turn = tuple(reversed(items)) if newest_come_first else tuple(items)
    moments = [moment_of(item.date) for item in in_turn]
    if None in moments:
        return in_turn
    places = sorted(range(len(in_turn)), key=lambda place: moments[place] or datetime.min.replace(tzinfo=UTC))
    return tuple(in_turn[place] for place in places)


def moment_of(date: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(date)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _canonical(url: str) -> str:
    if not is_reasonable(url):
        return url
    try:
        return canonicalize_url(url)
    except ValueError:
        return url


def _digest(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()
