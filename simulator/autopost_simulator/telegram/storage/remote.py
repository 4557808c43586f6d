"""The URLs that the simulated Telegram can fetch: only those registered by a test.

No request ever goes to a network. A URL is served if it was registered through
``POST /_sim/web``. Any other is unreachable, and one that cannot exist on the internet
(a host without a dot, a loopback or private address) is refused as an invalid URL.
"""

import ipaddress
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from autopost_simulator.telegram.refusal import RefusedInside, named
from autopost_simulator.telegram.standing import MediaKind

PAGES_KEPT = 100
LARGEST_PHOTO = 5 * 1024 * 1024
LARGEST_OTHER = 20 * 1024 * 1024

_TYPES: dict[MediaKind, tuple[str, ...]] = {
    "photo": ("image/",),
    "video": ("video/mp4",),
    "document": ("application/pdf", "application/zip", "image/gif"),
    "audio": ("audio/mpeg", "audio/mp4"),
    "animation": ("image/gif", "video/mp4"),
    "voice": ("audio/ogg", "audio/mpeg"),
    "sticker": ("image/webp",),
}


class RemotePage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``body`` is base64."""

    url: str
    content_type: str
    body: bytes = b""
    status: Annotated[int, msgspec.Meta(ge=100, le=599)] = 200


class Web:
    def __init__(self) -> None:
        self._pages: dict[str, RemotePage] = {}

    def register(self, page: RemotePage) -> None:
        self._pages.pop(page.url, None)
        self._pages[page.url] = page
        if len(self._pages) > PAGES_KEPT:
            del self._pages[next(iter(self._pages))]

    def fetch(self, url: str, kind: MediaKind) -> RemotePage:
        page = self._pages.get(url)
        if page is None:
            raise RefusedInside("WEBPAGE_CURL_FAILED" if _may_exist(url) else "EXTERNAL_URL_INVALID")
        largest = LARGEST_PHOTO if kind == "photo" else LARGEST_OTHER
        if not 200 <= page.status < 300 or len(page.body) > largest:
            raise RefusedInside("WEBPAGE_CURL_FAILED")
        if not page.body or not page.content_type.startswith(_TYPES[kind]):
            raise RefusedInside("WEBPAGE_MEDIA_EMPTY")
        return page

    def clear(self) -> None:
        self._pages.clear()


def is_address(text: str) -> bool:
    """A file id has no dot in it."""
    return "." in text


def full_address(text: str) -> str:
    url = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(url)
    except ValueError:
        raise named("invalid_file_url", reason="Wrong IPv6 address specified in the URL") from None
    if parts.scheme.lower() not in ("http", "https"):
        raise named("invalid_file_url", reason="Unsupported URL protocol")
    return url


def _may_exist(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        return "." in host
