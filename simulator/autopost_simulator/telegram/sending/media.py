"""One media item of a call: its kind, source and caption."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from autopost_simulator.telegram.markup.formatting import Formatted
from autopost_simulator.telegram.refusal import named
from autopost_simulator.telegram.request.params import MultipartFile, Params
from autopost_simulator.telegram.standing import MediaKind
from autopost_simulator.telegram.text import caption

ATTACHED = "attach://"
LONGEST = 24 * 60 * 60
LARGEST_SIDE = 10_000

_SIZED = ("video", "animation")
_TIMED = ("video", "animation", "audio", "voice")
_VISIBLE = ("photo", "video", "animation")

Source = MultipartFile | str


@dataclass(slots=True, frozen=True, kw_only=True)
class RequestedMedia:
    """``source`` is the upload itself, a file id or a URL."""

    kind: MediaKind
    source: Source
    caption: Formatted
    attributes: dict[str, Any]
    options: dict[str, Any]
    detects_type: bool = False
    """Whether a GIF sent as a document becomes an animation."""


def read_piece(params: Params, kind: MediaKind) -> RequestedMedia:
    """The parameter names the file, or the file is the part with the parameter's name."""
    source = named_source(params.text(kind), params.uploads) or params.uploads.get(kind)
    if source is None:
        raise named("there_is_no_file", kind=kind)
    read = piece(params, kind, source)
    detects = kind == "document" and not params.flag("disable_content_type_detection")
    return replace(read, detects_type=detects)


def piece(params: Params, kind: MediaKind, source: Source) -> RequestedMedia:
    return RequestedMedia(
        kind=kind,
        source=source,
        caption=caption(params),
        attributes=_attributes(params, kind),
        options=_options(params, kind),
    )


def named_source(given: str, uploads: Mapping[str, MultipartFile]) -> Source | None:
    if given.startswith(ATTACHED):
        return uploads.get(given.removeprefix(ATTACHED))
    return given or None


def _attributes(params: Params, kind: MediaKind) -> dict[str, Any]:
    """As given by the sender, clamped as in Telegram. A thumbnail is accepted and ignored."""
    attributes: dict[str, Any] = {}
    if kind in _SIZED:
        attributes |= {side: _clamped(params, side, LARGEST_SIDE) for side in ("width", "height")}
    if kind in _TIMED:
        attributes["duration"] = _clamped(params, "duration", LONGEST)
    if kind == "sticker" and params.text("emoji"):
        attributes["emoji"] = params.text("emoji")
    if kind == "audio":
        attributes |= {name: params.text(name) for name in ("performer", "title") if params.text(name)}
    return attributes


def _options(params: Params, kind: MediaKind) -> dict[str, Any]:
    options = {}
    if kind in _VISIBLE and params.flag("has_spoiler"):
        options["has_media_spoiler"] = True
    if kind in _VISIBLE and params.flag("show_caption_above_media"):
        options["show_caption_above_media"] = True
    return options


def _clamped(params: Params, name: str, most: int) -> int:
    return min(max(params.integer(name) or 0, 0), most)
