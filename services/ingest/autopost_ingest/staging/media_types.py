"""Detect the content type from the first bytes; the Content-Type of the server is ignored.

Content that a browser would execute is refused: senders do not post a page or an SVG as media, but many servers respond
with a page when the file is missing.
"""

import codecs
import re
from collections.abc import Mapping

from autopost_contracts.payload import MediaType

HEAD = 4096
"""Bytes needed for detection."""

ANYTHING = "application/octet-stream"

_SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (8, b"AVI ", "video/x-msvideo"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"PK\x03\x04", "application/zip"),
    (0, b"PK\x05\x06", "application/zip"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"Rar!\x1a\x07", "application/vnd.rar"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
)
_RIFF = frozenset({"image/webp", "audio/wav", "video/x-msvideo"})
_BRANDS = {
    b"qt  ": "video/quicktime",
    b"M4A ": "audio/mp4",
    b"M4B ": "audio/mp4",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"mif1": "image/heic",
    b"avif": "image/avif",
}
_RUNS = re.compile(rb"<(?:!doctype\s+html|html|head|body|script|iframe|svg)[\s>/]", re.IGNORECASE)
_utf8 = codecs.getincrementaldecoder("utf-8")
_LAYER_3 = frozenset({0xFB, 0xFA, 0xF3, 0xF2, 0xE3, 0xE2})
_ADTS = frozenset({0xF1, 0xF0, 0xF9, 0xF8})

_PICTURES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp", "image/bmp"})
_VIDEOS = frozenset({"video/mp4", "video/quicktime", "video/webm", "video/x-matroska", "video/x-msvideo"})
_SOUNDS = frozenset({"audio/mpeg", "audio/mp4", "audio/ogg", "audio/flac", "audio/wav", "audio/aac"})
_SHOWN_AS: Mapping[MediaType, frozenset[str] | None] = {
    "image": _PICTURES,
    "video": _VIDEOS,
    "animation": frozenset({"image/gif", "video/mp4"}),
    "audio": _SOUNDS,
    "file": None,  # any type
}


def content_type_of(head: bytes) -> str | None:
    """``None`` for content that a browser would execute; unknown bytes are ``ANYTHING``."""
    for offset, signature, known in _SIGNATURES:
        if head.startswith(signature, offset) and (known not in _RIFF or head.startswith(b"RIFF")):
            return known
    return _container(head) or _bare(head) or _text(head)


def fits(kind: MediaType, content_type: str) -> bool:
    wanted = _SHOWN_AS[kind]
    return wanted is None or content_type in wanted


def _container(head: bytes) -> str | None:
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "video/mp4")
    if head.startswith(b"\x1a\x45\xdf\xa3"):
        return "video/webm" if b"webm" in head[:64] else "video/x-matroska"
    return None


def _bare(head: bytes) -> str | None:
    """Formats with a short signature, which need further checks."""
    if head.startswith(b"BM") and head[6:10] == bytes(4) and head[14:15] in (b"\x28", b"\x6c", b"\x7c"):
        return "image/bmp"
    if len(head) > 2 and head[0] == 0xFF and head[1] in _LAYER_3 and head[2] >> 4 not in (0, 15):
        return "audio/mpeg"
    if len(head) > 2 and head[0] == 0xFF and head[1] in _ADTS:
        return "audio/aac"
    return None


def _text(head: bytes) -> str | None:
    if _RUNS.search(head.replace(b"\0", b"")):  # also in UTF-16
        return None
    try:
        _utf8().decode(head)  # incremental, because the head may end inside a character
    except UnicodeDecodeError:
        return ANYTHING
    return ANYTHING if b"\0" in head else "text/plain"
