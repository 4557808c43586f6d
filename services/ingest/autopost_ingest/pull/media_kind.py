"""Guess the kind of media of a URL from what the source declares; the download checks the bytes."""

from collections.abc import Iterable
from mimetypes import guess_type
from urllib.parse import urlsplit

from autopost_contracts.payload import MediaType

from autopost_ingest.pull.items import MediaLink
from autopost_ingest.pull.parsing.wild_html import MOST_PICTURES

_TYPES: dict[str, MediaType] = {"image": "image", "video": "video", "audio": "audio"}


def seen(url: str, declared: str) -> MediaLink | None:
    """``None`` when there is no URL or no platform shows the type."""
    if not url:
        return None
    kind = declared.partition(";")[0].strip().lower()
    if kind.partition("/")[0] not in _TYPES:
        kind = guess_type(urlsplit(url).path)[0] or kind
    if kind in ("image/svg+xml", "text/html"):
        return None  # no platform shows it
    if kind == "image/gif":
        return MediaLink("animation", url)
    return MediaLink(_TYPES.get(kind.partition("/")[0], "file"), url)


def distinct(found: Iterable[MediaLink | None]) -> tuple[MediaLink, ...]:
    """The first of each URL, up to a maximum."""
    return tuple({each.url: each for each in reversed([one for one in found if one])}.values())[::-1][:MOST_PICTURES]
