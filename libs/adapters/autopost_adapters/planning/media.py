"""What each item of a post is sent as, and from which source; unknown sizes and sides are not judged."""

from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from autopost_contracts.payload import MediaType, Medium
from autopost_contracts.plan import PlannedMedia, Problem
from msgspec import Struct

from autopost_adapters.planning.limits import Limits
from autopost_adapters.planning.settings import Settings

_SOURCES = ("blob_ref", "file_id", "attachment_token", "url")


class Media(Struct, frozen=True, kw_only=True):
    items: tuple[PlannedMedia, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


def plan_media(media: Sequence[Medium], limits: Limits, settings: Settings) -> Media:
    items: list[PlannedMedia] = []
    problems: list[Problem] = []
    notes: list[str] = []
    for index, medium in enumerate(media):
        field = f"media[{index}]"
        sent_as, why = _sent_as(medium, limits)
        problem = _source_problem(medium, field, limits, settings) or _size_problem(medium, sent_as, field, limits)
        if problem:
            problems.append(problem)
        if why:
            notes.append(f"{field} goes as {sent_as}: {why}")
        items.append(_planned(medium, sent_as))
    return Media(items=tuple(items), problems=tuple(problems), notes=tuple(notes))


def _size_problem(medium: Medium, sent_as: MediaType, field: str, limits: Limits) -> Problem | None:
    allowed = limits.sizes[sent_as]
    if medium.size is None or medium.size <= allowed:
        return None
    return Problem("media_too_large", field, f"{medium.size} bytes, {allowed} are allowed for {sent_as}")


def _planned(medium: Medium, sent_as: MediaType) -> PlannedMedia:
    return PlannedMedia(
        type=sent_as,
        blob_ref=medium.blob_ref,
        file_id=medium.file_id,
        attachment_token=medium.attachment_token,
        url=medium.url,
        content_type=medium.content_type,
        size=medium.size,
        name=medium.name,
    )


def _source_problem(medium: Medium, field: str, limits: Limits, settings: Settings) -> Problem | None:
    sources = [name for name in _SOURCES if getattr(medium, name)]
    if len(sources) != 1:
        return Problem("validation_failed", field, f"expected exactly one source, found {len(sources)}")
    [source] = sources
    if source == "url":
        return _url_problem(medium, field, limits, settings)
    if source in ("blob_ref", limits.provider_id):
        return None
    return Problem("validation_failed", field, f"{source} belongs to another platform than {limits.platform}")


def _url_problem(medium: Medium, field: str, limits: Limits, settings: Settings) -> Problem | None:
    if medium.type not in limits.by_url:
        return Problem("upload_required", field, f"{limits.platform} takes no {medium.type} by url")
    if settings.upload_policy.get(medium.type) != "url_allowed":
        return Problem("upload_required", field, f"the channel's upload_policy does not allow {medium.type} by url")
    try:
        parts = urlsplit(medium.url or "")
    except ValueError:
        parts = urlsplit("")
    if parts.scheme in ("http", "https") and parts.netloc:
        return None
    return Problem("validation_failed", field, "expected an absolute http or https url")


def _sent_as(medium: Medium, limits: Limits) -> tuple[MediaType, str | None]:
    """With the reason, where it is not what the post called it. What is not ours to upload stays what it is."""
    called, why = _called(medium, limits)
    if medium.blob_ref is None:
        return called, None
    doubt = _DOUBTS[called](medium, limits) if called in _DOUBTS else None
    return ("file", doubt) if doubt else (called, why)


def _called(medium: Medium, limits: Limits) -> tuple[MediaType, str | None]:
    if medium.type != "animation" or limits.animations:
        return medium.type, None
    if medium.content_type == "image/gif":
        return "image", "there are no animations here"
    return "video", "there are no animations here"


def _picture_doubt(medium: Medium, limits: Limits) -> str | None:
    picture = limits.picture
    if medium.content_type is not None and medium.content_type not in picture.types:
        return f"{medium.content_type} is not shown as a picture"
    if medium.size is not None and medium.size > picture.size:
        return f"{medium.size} bytes, {picture.size} are allowed for a picture"
    return _sides_doubt(medium.width, medium.height, limits)


def _sides_doubt(width: int | None, height: int | None, limits: Limits) -> str | None:
    picture = limits.picture
    if not width or not height:
        return None
    shape = f"{width}×{height} pixels"
    if picture.side is not None and max(width, height) > picture.side:
        return f"{shape}, {picture.side} are allowed for a side"
    if picture.sides is not None and width + height > picture.sides:
        return f"{shape}, {picture.sides} are allowed for both sides together"
    if picture.ratio is not None and max(width, height) > picture.ratio * min(width, height):
        return f"{shape}, one side may be {picture.ratio} times the other"
    return None


def _video_doubt(medium: Medium, limits: Limits) -> str | None:
    if limits.video_types is None or medium.content_type is None or medium.content_type in limits.video_types:
        return None
    return f"{medium.content_type} is not shown as a video"


_DOUBTS: dict[MediaType, Callable[[Medium, Limits], str | None]] = {"image": _picture_doubt, "video": _video_doubt}
