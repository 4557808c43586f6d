"""A creative: what a publication shows. As a post request it is compiled like any post."""

from typing import Annotated, Literal

from autopost_contracts.payload import MediaItem, ParseMode, PostButton, PostRequest
from msgspec import Meta, Struct

from autopost_ingest.errors import InvalidPost

MOST_MEDIA = 10
CreativeMediaType = Literal["photo", "video", "document", "animation"]
MediaKind = Literal["text", "photo", "video", "document", "animation", "media_group"]


class CreativeMedia(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Has one of the two sources."""

    type: CreativeMediaType
    file_id: Annotated[str, Meta(min_length=1, max_length=1024)] | None = None
    blob_ref: Annotated[str, Meta(max_length=71)] | None = None


class CreativeDraft(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    text: Annotated[str, Meta(max_length=65536)] = ""
    parse_mode: ParseMode | None = "HTML"
    media: Annotated[tuple[CreativeMedia, ...], Meta(max_length=MOST_MEDIA)] = ()
    buttons: Annotated[tuple[PostButton | tuple[PostButton, ...], ...], Meta(max_length=100)] = ()
    disable_web_page_preview: bool = False


def media_kind(draft: CreativeDraft) -> MediaKind:
    """The label of metrics, and the row of the media table."""
    match draft.media:
        case ():
            return "text"
        case (one,):
            return one.type
        case _:
            return "media_group"


def request_of(draft: CreativeDraft) -> PostRequest:
    """Raises ``InvalidPost``."""
    for place, one in enumerate(draft.media):
        if (one.file_id is None) == (one.blob_ref is None):
            raise InvalidPost(f"creative_draft.media[{place}]", "must have exactly one of file_id and blob_ref")
    return PostRequest(
        text=draft.text or None,
        parse_mode=draft.parse_mode,
        media=tuple(MediaItem(type=one.type, file_id=one.file_id, blob_ref=one.blob_ref) for one in draft.media),
        buttons=draft.buttons,
        disable_preview=draft.disable_web_page_preview,
    )
