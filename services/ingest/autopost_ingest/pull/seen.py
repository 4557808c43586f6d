"""What kind of media an address leads to, as far as its source says; the bytes will tell."""

from collections.abc import Iterable
from mimetypes import guess_type
from urllib.parse import urlsplit

from autopost_contracts.payload import MediaType

from autopost_ingest.pull.items import Seen

MOST = 10
_TYPES: dict[str, MediaType] = {"image": "image", "video": "video", "audio": "audio"}


def seen(url: str, declared: str) -> Seen | None:
    """``None`` when there is no address."""
    if not url:
        return None
    kind = declared.partition(";")[0].strip().lower()
    if kind.partition("/")[0] not in _TYPES:
        kind = guess_type(urlsplit(url).path)[0] or kind
    if kind in ("image/svg+xml", "text/html"):
        return None  # no platform shows it
    if kind == "image/gif":
        return Seen("animation", url)
    return Seen(_TYPES.get(kind.partition("/")[0], "file"), url)


def distinct(found: Iterable[Seen | None]) -> tuple[Seen, ...]:
    """The first of each address; as many as a post may reasonably show."""
    return tuple({each.url: each for each in reversed([one for one in found if one])}.values())[::-1][:MOST]
