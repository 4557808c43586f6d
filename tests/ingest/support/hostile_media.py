"""Media files that take long to inspect, by name and size."""

import struct
from collections.abc import Callable

_SEGMENT = b"\xff\xe1" + struct.pack(">H", 2)
_LONG_SEGMENT = b"\xff\xe1" + struct.pack(">H", 65535) + bytes(65533)

MEDIA: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "JPEG of filling": ("image/jpeg", lambda size: b"\xff\xd8".ljust(size, b"\xff")),
    "JPEG of filled segments": ("image/jpeg", lambda size: b"\xff\xd8" + (b"\xff" * 4000 + _SEGMENT) * (size // 4004)),
    "JPEG of empty segments": ("image/jpeg", lambda size: b"\xff\xd8" + _SEGMENT * (size // 4)),
    "JPEG of long segments": ("image/jpeg", lambda size: b"\xff\xd8" + _LONG_SEGMENT * (size // len(_LONG_SEGMENT))),
    "JPEG of restarts": ("image/jpeg", lambda size: b"\xff\xd8" + b"\xff\xd0" * (size // 2)),
    "PNG of nothing": ("image/png", lambda size: b"\x89PNG\r\n\x1a\n".ljust(size, b"\0")),
    "GIF of nothing": ("image/gif", lambda size: b"GIF89a".ljust(size, b"\xff")),
    "WebP of nothing": ("image/webp", lambda size: b"RIFF\0\0\0\0WEBPVP8X".ljust(size, b"\xff")),
    "BMP of nothing": ("image/bmp", lambda size: (b"BM" + bytes(12) + b"\x28").ljust(size, b"\xff")),
    "MP4 of boxes": ("video/mp4", lambda size: b"\0\0\0\x18ftypmp42" + b"\0\0\0\x08free" * (size // 8)),
    "text of tags": ("text/plain", lambda size: b"<!doctype " * (size // 10)),
    "text of spaces": ("text/plain", lambda size: b"<!doctype".ljust(size, b" ")),
}

DISPOSITIONS: dict[str, Callable[[int], str]] = {
    "names without an end": lambda size: 'filename="' * (size // 10),
    "spaces": lambda size: "filename" + " " * size,
    "spaces after": lambda size: "filename =" + " " * size,
    "extended names": lambda size: "filename*=utf-8'" * (size // 16),
    "backslashes": lambda size: 'filename="' + "\\a" * (size // 2),
    "marks": lambda size: 'filename="' + "\u0301\u0323" * (size // 2) + '"',
    "encoded marks": lambda size: "filename*=utf-8''" + "%CC%81%CC%A3" * (size // 12),
    "slashes": lambda size: 'filename="' + "/" * size + '"',
    "dots": lambda size: 'filename="' + "." * size + '"',
}
