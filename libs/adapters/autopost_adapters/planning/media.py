"""Choose the type and the source of each media item. Unknown sizes and dimensions are not checked.

An item may have both bytes and a URL: it is sent by URL where platform and channel allow that.
"""

from collections.abc import Callable, Sequence

from autopost_contracts.payload import MediaType, Medium
from autopost_contracts.plan import PlannedMedia, Problem
from msgspec import Struct
from msgspec.structs import replace

from autopost_adapters.markup.links import leads_outside
from autopost_adapters.planning.limits import Limits
from autopost_adapters.planning.settings import Settings

UPLOAD_REQUIRED = "upload_required"
"""The problem code of an item that can be sent once its bytes are fetched."""

_SOURCES = ("blob_ref", "file_id", "attachment_token", "url")


class Media(Struct, frozen=True, kw_only=True):
    items: tuple[PlannedMedia, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


def plan_media(media: Sequence[Medium], limits: Limits, settings: Settings) -> Media:
    items: list[PlannedMedia] = []
    problems: list[Problem] = []
    notes: list[str] = []
    for index, given in enumerate(media):
        field = f"media[{index}]"
        medium = _by_one_source(given, limits, settings)
        sent_as, why = _sent_as(medium, limits)
        problem = _source_problem(medium, field, limits, settings) or _size_problem(medium, sent_as, field, limits)
        if problem:
            problems.append(problem)
        if why:
            notes.append(f"{field} is sent as {sent_as}: {why}")
        if medium.url and not problem:
            notes.append(f"{field} is sent by URL: {limits.platform} fetches it")
        items.append(_planned(medium, sent_as))
    return Media(items=tuple(items), problems=tuple(problems), notes=tuple(notes))


def _by_one_source(medium: Medium, limits: Limits, settings: Settings) -> Medium:
    """Keep bytes or URL. With the URL the properties of our bytes are dropped: the platform may fetch other bytes."""
    if medium.url is None or medium.blob_ref is None:
        return medium
    if _url_problem(medium, "", limits, settings):
        return replace(medium, url=None)
    return Medium(type=medium.type, url=medium.url, caption=medium.caption)


def _size_problem(medium: Medium, sent_as: MediaType, field: str, limits: Limits) -> Problem | None:
    allowed = limits.sizes[sent_as]
    if medium.size is None or medium.size <= allowed:
        return None
    return Problem("media_too_large", field, f"{medium.size} bytes, at most {allowed} are allowed for {sent_as}")


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
        return Problem("validation_failed", field, f"must have exactly one source, has {len(sources)}")
    [source] = sources
    if source == "url":
        return _url_problem(medium, field, limits, settings)
    if source in ("blob_ref", limits.provider_id):
        return None
    return Problem("validation_failed", field, f"{source} cannot be used on {limits.platform}")


def _url_problem(medium: Medium, field: str, limits: Limits, settings: Settings) -> Problem | None:
    if medium.type not in limits.by_url:
        return Problem(UPLOAD_REQUIRED, field, f"{limits.platform} does not accept {medium.type} by URL")
    if not settings.takes_by_url(medium.type):
        return Problem(UPLOAD_REQUIRED, field, f"upload_policy does not allow {medium.type} by URL")
    if not leads_outside(medium.url or ""):
        return Problem(UPLOAD_REQUIRED, field, "must be a public http or https URL without credentials")
    return None


def _sent_as(medium: Medium, limits: Limits) -> tuple[MediaType, str | None]:
    """The type to send, and the reason when it differs from the post's. Items without our bytes keep their type."""
    kind, why = _kind(medium, limits)
    if medium.blob_ref is None:
        return kind, None
    why_file = _WHY_FILE[kind](medium, limits) if kind in _WHY_FILE else None
    return ("file", why_file) if why_file else (kind, why)


def _kind(medium: Medium, limits: Limits) -> tuple[MediaType, str | None]:
    if medium.type != "animation" or limits.animations:
        return medium.type, None
    if medium.content_type == "image/gif":
        return "image", "the platform has no animations"
    return "video", "the platform has no animations"


def _why_not_image(medium: Medium, limits: Limits) -> str | None:
    picture = limits.picture
    if medium.content_type is not None and medium.content_type not in picture.types:
        return f"{medium.content_type} cannot be sent as an image"
    if medium.size is not None and medium.size > picture.size:
        return f"{medium.size} bytes, at most {picture.size} are allowed for an image"
    return _why_wrong_sides(medium.width, medium.height, limits)


def _why_wrong_sides(width: int | None, height: int | None, limits: Limits) -> str | None:
    picture = limits.picture
    if not width or not height:
        return None
    shape = f"{width}×{height} pixels"
    if picture.side is not None and max(width, height) > picture.side:
        return f"{shape}, at most {picture.side} per side are allowed"
    if picture.sides is not None and width + height > picture.sides:
        return f"{shape}, at most {picture.sides} for width plus height are allowed"
    if picture.ratio is not None and max(width, height) > picture.ratio * min(width, height):
        return f"{shape}, the aspect ratio must not exceed {picture.ratio}"
    return None


def _why_not_video(medium: Medium, limits: Limits) -> str | None:
    if limits.video_types is None or medium.content_type is None or medium.content_type in limits.video_types:
        return None
    return f"{medium.content_type} cannot be sent as a video"


_WHY_FILE: dict[MediaType, Callable[[Medium, Limits], str | None]] = {"image": _why_not_image, "video": _why_not_video}
