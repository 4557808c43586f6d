"""Convert an item to a post, as the options of its source say."""

from typing import Any

import msgspec
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.payload import MediaItem, PostButton, PostRequest
from autopost_runtime.telemetry import tracing as telemetry
from msgspec.structs import replace

from autopost_ingest.errors import InvalidPost
from autopost_ingest.posts.enqueue import content_fields
from autopost_ingest.posts.normalize import Normalized, canonical_url, routing_tags
from autopost_ingest.posts.offload import Offload, Rendering
from autopost_ingest.pull.items import Item
from autopost_ingest.pull.parsing.wild_html import escaped
from autopost_ingest.pull.source_config import SourceOptions

MOST_TAGS = 50
LONGEST_TAG = 64
LONGEST_LINK = 2048


def request_of(item: Item, options: SourceOptions, *, with_media: bool = True) -> PostRequest:
    url = item.url if len(item.url) <= LONGEST_LINK and canonical_url(item.url) else ""
    linked = "link" in options.include and options.button is None
    fields = {"title": item.title, "url": item.url, "date": item.date}
    return PostRequest(
        text="\n\n".join(filter(None, (_part(name, item) for name in options.include))),
        parse_mode="HTML",
        links=(url,) if url and linked else (),
        media=_media(item, options) if with_media else (),
        buttons=(PostButton(options.button, url),) if url and options.button else (),
        tags=_tags(item, options),
        routing=options.routing,
        silent=options.silent,
        disable_preview=options.disable_preview,
        meta={name: value for name, value in fields.items() if value},
    )


async def normalized_words(request: PostRequest, workspace: WorkspaceId, offload: Offload) -> Normalized | None:
    """The post without its media, which is not fetched yet; ``None`` when it has only media. Raises
    ``InvalidPost``."""
    if request.media and not request.text and not request.links:
        return None
    return await offload.normalize(workspace, replace(request, media=()))


def post_to_enqueue(
    request: PostRequest, normalized: Normalized, ref: str, source_id: str, renderings: list[Rendering]
) -> dict[str, Any]:
    """The post document for ``ingest_pull_chunk``."""
    return _source_fields(ref, source_id) | content_fields(request, normalized) | {"renderings": renderings}


def post_to_stage(request: PostRequest, ref: str, source_id: str) -> dict[str, Any]:
    """The same for a post whose media must be fetched: its request and routing tags."""
    tags, channel_tags = routing_tags(request)
    return _source_fields(ref, source_id) | {
        "request": msgspec.to_builtins(replace(request, source_ref=ref)),
        "payload": {"type": "media"},
        "tags": tags,
        "routing": {"channels": request.routing.channels, "channel_tags": channel_tags},
    }


class TooOld(InvalidPost):
    """Dated before ``since`` of the source."""


class PassedOver(InvalidPost):
    """It existed before the source was added; it is marked as seen and not posted."""


class TooLarge(InvalidPost):
    """Larger than a post may be."""


class Internal(InvalidPost):
    """Converting it to a post failed; a bug of ours."""


class NotReadable(InvalidPost):
    """Parsing it failed."""


def item_refused(ref: str, problem: InvalidPost | Exception) -> dict[str, Any]:
    if isinstance(problem, PassedOver):
        return {"source_ref": ref, "quiet": True}
    match problem:
        case Internal():
            code = "internal"
        case TooOld():
            code = "before_since"
        case TooLarge():
            code = "too_large"
        case NotReadable():
            code = "unreadable"
        case InvalidPost():
            code = "unprocessable"
        case _:
            code = "not_storable"
    return {"source_ref": ref, "code": code, "message": str(problem)[:500]}


def _source_fields(ref: str, source_id: str) -> dict[str, Any]:
    return {
        "source": {"kind": "pull", "source_id": source_id},
        "source_ref": ref,
        "trace_id": telemetry.current_trace_id(),
        "traceparent": telemetry.current_traceparent(),
    }


def _part(name: str, item: Item) -> str:
    match name:
        case "title":
            return f"<b>{escaped(item.title)}</b>" if item.title else ""
        case "summary":
            return item.summary
        case "content":
            return item.content
        case _:
            return ""  # the link is added after the text, unless the text contains it


def _media(item: Item, options: SourceOptions) -> tuple[MediaItem, ...]:
    most = {"all": None, "first": 1, "none": 0}[options.media]
    short = (each for each in item.media if len(each.url) <= LONGEST_LINK)
    return tuple(MediaItem(type=each.type, url=each.url) for each in short)[:most]


def _tags(item: Item, options: SourceOptions) -> tuple[str, ...]:
    found = (tag.strip()[:LONGEST_TAG] for tag in item.tags) if options.item_tags else ()
    return tuple(dict.fromkeys((*options.tags, *filter(None, found))))[:MOST_TAGS]
