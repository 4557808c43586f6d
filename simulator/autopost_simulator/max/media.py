"""The four media kinds of MAX, with their formats and size limits."""

from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal, get_args

from autopost_simulator.image_size import picture
from autopost_simulator.max.refusal import named

Kind = Literal["image", "video", "audio", "file"]
KINDS: tuple[Kind, ...] = get_args(Kind)

LARGEST_SIDE = 7680
_MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class MediaLimits:
    """Empty ``extensions`` allow any."""

    largest: int
    extensions: frozenset[str]


ACCEPTED: dict[Kind, MediaLimits] = {
    "image": MediaLimits(50 * _MEGABYTE, frozenset((".jpg", ".jpeg", ".png", ".gif", ".tiff", ".bmp", ".heic"))),
    "video": MediaLimits(250 * _MEGABYTE, frozenset((".mp4", ".mov", ".mkv", ".webm"))),
    "audio": MediaLimits(
        256 * _MEGABYTE, frozenset((".mp3", ".wav", ".m4a", ".ogg", ".oga", ".opus", ".flac", ".aac", ".wma"))
    ),
    "file": MediaLimits(4096 * _MEGABYTE, frozenset()),
}


def check_name(kind: Kind, name: str) -> None:
    """A name without extension is accepted: the official client sends such names."""
    extension = PurePath(name).suffix.lower()
    allowed = ACCEPTED[kind].extensions
    if extension and allowed and extension not in allowed:
        raise named("extension_forbidden")


def check_size(kind: Kind, size: int) -> None:
    if size > ACCEPTED[kind].largest:
        raise named("upload_too_large", kind=kind)


def check_sides(kind: Kind, content: bytes | None) -> None:
    """Only for formats that can be read here; TIFF and HEIC are accepted."""
    seen = picture(content) if kind == "image" and content else None
    if seen is not None and max(seen.width, seen.height) > LARGEST_SIDE:
        raise named("upload_too_large", kind=kind)
