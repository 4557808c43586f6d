"""Type and size of an image from its header, as needed for Telegram's checks."""

import struct
from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class Picture:
    width: int
    height: int
    content_type: str


def picture(content: bytes) -> Picture | None:
    """``None`` unless it is JPEG, PNG, GIF, WebP or BMP."""
    try:
        return _png(content) or _gif(content) or _jpeg(content) or _webp(content) or _bmp(content)
    except (struct.error, IndexError):
        return None


def _png(content: bytes) -> Picture | None:
    if not content.startswith(b"\x89PNG\r\n\x1a\n") or content[12:16] != b"IHDR":
        return None
    width, height = struct.unpack_from(">II", content, 16)
    return Picture(width, height, "image/png")


def _gif(content: bytes) -> Picture | None:
    if not content.startswith((b"GIF87a", b"GIF89a")):
        return None
    width, height = struct.unpack_from("<HH", content, 6)
    return Picture(width, height, "image/gif")


def _jpeg(content: bytes) -> Picture | None:
    """The size is in the frame header, after any number of other segments."""
    if not content.startswith(b"\xff\xd8\xff"):
        return None
    at = 2
    while content[at] == 0xFF:
        marker = content[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", content, at + 5)
            return Picture(width, height, "image/jpeg")
        at += 1 if marker == 0xFF else 2 + struct.unpack_from(">H", content, at + 2)[0]
    return None


def _webp(content: bytes) -> Picture | None:
    if content[:4] != b"RIFF" or content[8:12] != b"WEBP":
        return None
    match content[12:16]:
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", content, 26)
            return Picture(width & 0x3FFF, height & 0x3FFF, "image/webp")
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", content, 21)
            return Picture((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1, "image/webp")
        case b"VP8X":
            width, height = (int.from_bytes(content[at : at + 3], "little") + 1 for at in (24, 27))
            return Picture(width, height, "image/webp")
        case _:
            return None


def _bmp(content: bytes) -> Picture | None:
    if not content.startswith(b"BM"):
        return None
    width, height = struct.unpack_from("<ii", content, 18)
    return Picture(width, abs(height), "image/bmp")
