"""The display name of a fetched file, from Content-Disposition or the URL, sanitised.

It is displayed, never opened: it has no path and no hidden characters, and its extension matches the content.
"""

import re
import unicodedata
from collections.abc import Mapping
from urllib.parse import unquote

from yarl import URL

LONGEST = 100
LONGEST_TOLD = 1000
"""Only so many last characters are used: the extension is at the end."""

_EXTENDED = re.compile(r"filename\*\s*=\s*(utf-8|iso-8859-1)'[^']*'([^;\s]+)", re.IGNORECASE)
_QUOTED = re.compile(r'filename\s*=\s*"((?:[^"\\]|\\.)*)"', re.IGNORECASE)
_PLAIN = re.compile(r"filename\s*=\s*([^;\s\"]+)", re.IGNORECASE)
_ENDINGS: Mapping[str, tuple[str, ...]] = {
    "image/png": ("png",),
    "image/jpeg": ("jpg", "jpeg"),
    "image/gif": ("gif",),
    "image/webp": ("webp",),
    "image/bmp": ("bmp",),
    "image/heic": ("heic", "heif"),
    "image/avif": ("avif",),
    "video/mp4": ("mp4", "m4v"),
    "video/quicktime": ("mov", "qt"),
    "video/webm": ("webm",),
    "video/x-matroska": ("mkv",),
    "video/x-msvideo": ("avi",),
    "audio/mpeg": ("mp3",),
    "audio/mp4": ("m4a", "m4b"),
    "audio/ogg": ("ogg", "oga", "opus", "ogv"),
    "audio/flac": ("flac",),
    "audio/wav": ("wav",),
    "audio/aac": ("aac",),
    "application/pdf": ("pdf",),
}
"""Types with fixed extensions; an archive may be a document, and a text may be anything."""


def file_name(url: URL, disposition: str | None, content_type: str) -> str | None:
    """``None`` when neither has a name."""
    name = harmless(_header_name(disposition) or url.name)
    endings = _ENDINGS.get(content_type)
    if name and endings and name.rpartition(".")[2].lower() not in endings:
        name = f"{name[: LONGEST - 6]}.{endings[0]}"
    return name or None


def harmless(name: str) -> str:
    last = unicodedata.normalize("NFC", re.split(r"[/\\]", name[-LONGEST_TOLD:])[-1])
    shown = "".join(char for char in last if unicodedata.category(char)[0] not in "CZ" or char == " ")
    shown = shown.strip(" .")
    if len(shown) <= LONGEST:
        return shown
    stem, dot, ending = shown.rpartition(".")
    if not dot or len(ending) > 10:
        return shown[:LONGEST]
    return f"{stem[: LONGEST - len(ending) - 1]}.{ending}"


def _header_name(disposition: str | None) -> str:
    if not disposition:
        return ""
    if extended := _EXTENDED.search(disposition):
        return unquote(extended[2], encoding=extended[1], errors="replace")
    if quoted := _QUOTED.search(disposition):
        return re.sub(r"\\(.)", r"\1", quoted[1])
    plain = _PLAIN.search(disposition)
    return plain[1] if plain else ""
