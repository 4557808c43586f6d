"""What a source brings, whatever its kind: one item, cleaned, on its way to become a post."""

from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec
from autopost_contracts.payload import MediaType
from msgspec import Struct
from msgspec.structs import replace
from w3lib.url import canonicalize_url

LONGEST_REF = 256
MOST_WORDS = 256 * 1024
"""Bytes of all that an item says: as many as a post that is sent to us may have."""


class Seen(Struct, frozen=True, omit_defaults=True):
    """Something to look at or listen to, by its address."""

    type: MediaType
    url: str


class Item(Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str = ""
    url: str = ""
    title: str = ""
    """Plain."""
    summary: str = ""
    """HTML that every platform shows, like ``content``."""
    content: str = ""
    date: str = ""
    tags: tuple[str, ...] = ()
    media: tuple[Seen, ...] = ()
    mark: Any = None
    """The value of the source's cursor at this item, where it has one."""
    ref: str = ""
    """What it is known by."""
    is_too_large: bool = False
    """What it said was left out."""


def bounded(item: Item) -> Item:
    """With its ``ref``, and no larger than a post may be: whoever gets it may be serving others as well."""
    ref = source_ref(item)
    words = (item.id, item.url, item.title, max(item.summary, item.content, key=len), item.date, *item.tags)
    if sum(len(each.encode(errors="replace")) for each in words) <= MOST_WORDS:
        return replace(item, ref=ref)
    return Item(mark=item.mark, ref=ref, is_too_large=True)


def source_ref(item: Item) -> str:
    """The item's own id; without one its address and date; without an address all that it is."""
    if item.id:
        return item.id if len(item.id) <= LONGEST_REF else _digest(item.id)
    if item.url:
        return _digest(_canonical(item.url) + item.date)
    return _digest(msgspec.json.encode(replace(item, mark=None), order="sorted").decode())


def is_before(item: Item, since: datetime) -> bool:
    """One without a date is not."""
    moment = moment_of(item.date)
    return moment is not None and moment < since


def oldest_first(items: Sequence[Item], *, newest_come_first: bool = True) -> tuple[Item, ...]:
    """By their dates where all have one, else as their source is known to put them."""
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
    try:
        return canonicalize_url(url)
    except ValueError:
        return url


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
