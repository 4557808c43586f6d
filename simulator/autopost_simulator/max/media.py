"""The four kinds of media MAX takes: what it accepts of each, and how much."""

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
class Accepted:
    """No extensions: any will do."""

    largest: int
    extensions: frozenset[str]


ACCEPTED: dict[Kind, Accepted] = {
    "image": Accepted(50 * _MEGABYTE, frozenset((".jpg", ".jpeg", ".png", ".gif", ".tiff", ".bmp", ".heic"))),
    "video": Accepted(250 * _MEGABYTE, frozenset((".mp4", ".mov", ".mkv", ".webm"))),
    "audio": Accepted(
        256 * _MEGABYTE, frozenset((".mp3", ".wav", ".m4a", ".ogg", ".oga", ".opus", ".flac", ".aac", ".wma"))
    ),
    "file": Accepted(4096 * _MEGABYTE, frozenset()),
}


def check_name(kind: Kind, name: str) -> None:
    """A name without extension passes: the official client sends pictures from memory under such names."""
    extension = PurePath(name).suffix.lower()
    allowed = ACCEPTED[kind].extensions
    if extension and allowed and extension not in allowed:
        raise named("extension_forbidden")


def check_size(kind: Kind, size: int) -> None:
    if size > ACCEPTED[kind].largest:
        raise named("upload_too_large", kind=kind)


def check_sides(kind: Kind, content: bytes | None) -> None:
    """Of the formats whose header is understood here; TIFF and HEIC pass."""
    seen = picture(content) if kind == "image" and content else None
    if seen is not None and max(seen.width, seen.height) > LARGEST_SIDE:
        raise named("upload_too_large", kind=kind)
