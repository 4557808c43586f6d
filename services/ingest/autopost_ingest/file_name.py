"""The name under which a fetched file is shown: what its server or its URL calls it, made harmless.

It is shown and never opened: it names no path, hides no character, and does not end as something that it is not.
"""

import re
import unicodedata
from collections.abc import Mapping
from urllib.parse import unquote

from yarl import URL

LONGEST = 100

_EXTENDED = re.compile(r"filename\*\s*=\s*(?:utf-8|iso-8859-1)'[^']*'([^;\s]+)", re.IGNORECASE)
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
"""Of the types that go by one ending; an archive may be a document and a text anything."""


def file_name(url: URL, disposition: str | None, content_type: str) -> str | None:
    """``None`` when neither says one."""
    name = harmless(_told(disposition) or url.name)
    endings = _ENDINGS.get(content_type)
    if name and endings and name.rpartition(".")[2].lower() not in endings:
        name = f"{name[: LONGEST - 6]}.{endings[0]}"
    return name or None


def harmless(name: str) -> str:
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", name))[-1]
    shown = "".join(char for char in last if unicodedata.category(char)[0] not in "CZ" or char == " ")
    shown = shown.strip(" .")
    if len(shown) <= LONGEST:
        return shown
    stem, dot, ending = shown.rpartition(".")
    if not dot or len(ending) > 10:
        return shown[:LONGEST]
    return f"{stem[: LONGEST - len(ending) - 1]}.{ending}"


def _told(disposition: str | None) -> str:
    if not disposition:
        return ""
    if extended := _EXTENDED.search(disposition):
        return unquote(extended[1], errors="replace")
    if quoted := _QUOTED.search(disposition):
        return re.sub(r"\\(.)", r"\1", quoted[1])
    plain = _PLAIN.search(disposition)
    return plain[1] if plain else ""
