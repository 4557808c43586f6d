"""Read width and height of an image from its header, without decoding it."""

import struct
from typing import BinaryIO

SEGMENTS = 200
"""Maximum of JPEG segments before the frame; thumbnails and colour profiles are stored there."""

FILLING = 4096
"""Maximum of fill bytes before a segment; cameras write a few."""

_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_ALONE = frozenset({0x01, *range(0xD0, 0xD8)})


def image_size(file: BinaryIO, content_type: str) -> tuple[int, int] | None:
    """``None`` when the header has no valid size."""
    file.seek(0)
    try:
        found = _READERS[content_type](file)
    except (KeyError, struct.error):
        return None
    return found if found is not None and min(found) > 0 else None


def _png(file: BinaryIO) -> tuple[int, int]:
    width, height = struct.unpack(">II", file.read(24)[16:])
    return width, height


def _gif(file: BinaryIO) -> tuple[int, int]:
    width, height = struct.unpack("<HH", file.read(10)[6:])
    return width, height


def _bmp(file: BinaryIO) -> tuple[int, int]:
    width, height = struct.unpack("<ii", file.read(26)[18:])
    return width, abs(height)  # negative for a top-down image


def _webp(file: BinaryIO) -> tuple[int, int] | None:
    head = file.read(30)
    match head[12:16]:
        case b"VP8X":
            width, high_width, height, high_height = struct.unpack("<HBHB", head[24:30])
            return 1 + (high_width << 16 | width), 1 + (high_height << 16 | height)
        case b"VP8L":
            [bits] = struct.unpack("<I", head[21:25])
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            width, height = struct.unpack("<HH", head[26:30])
            return width & 0x3FFF, height & 0x3FFF
        case _:
            return None


def _jpeg(file: BinaryIO) -> tuple[int, int] | None:
    file.seek(2)
    for _ in range(SEGMENTS):
        marker = _marker(file)
        if marker is None:
            return None
        if marker in _ALONE:
            continue
        [length] = struct.unpack(">H", file.read(2))
        if marker in _FRAMES:
            height, width = struct.unpack(">xHH", file.read(5))
            return width, height
        file.seek(max(length - 2, 0), 1)
    return None


def _marker(file: BinaryIO) -> int | None:
    """The byte after ``0xFF`` and its fill bytes (``0xFF``); ``None`` when there is none in range."""
    start = file.tell()
    head = file.read(2)
    if head == b"\xff\xff":
        head += file.read(FILLING)
    rest = head.lstrip(b"\xff")
    if not rest or len(rest) == len(head):
        return None
    file.seek(start + len(head) - len(rest) + 1)
    return rest[0]


_READERS = {"image/png": _png, "image/gif": _gif, "image/bmp": _bmp, "image/webp": _webp, "image/jpeg": _jpeg}
