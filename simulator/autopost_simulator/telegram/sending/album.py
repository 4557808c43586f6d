"""``media`` of sendMediaGroup: its items, and which of them may be combined.

Up to ten items; photos and videos may be mixed, documents and audio only with their own kind. A single item
is accepted, although the documentation requires two: it becomes an ordinary message.
"""

from typing import Any, get_args

import msgspec

from autopost_simulator.telegram.refusal import TelegramError, named
from autopost_simulator.telegram.request.params import Params
from autopost_simulator.telegram.sending.media import RequestedMedia, named_source, piece
from autopost_simulator.telegram.standing import MediaKind
from autopost_simulator.telegram.storage.files import TelegramFiles
from autopost_simulator.telegram.text import refuse_long_caption

LONGEST = 10
_PREFIX = "Bad Request: "
_KINDS: dict[str, MediaKind] = {kind: kind for kind in get_args(MediaKind) if kind not in ("voice", "sticker")}
_APART: tuple[MediaKind, ...] = ("document", "audio")


def read_album(params: Params) -> list[RequestedMedia]:
    """Parse every item before any is checked, as Telegram does."""
    items = [_item(item, params) for item in _items(params)]
    for item in items:
        refuse_long_caption(item.caption)
    refuse_album([item.kind for item in items], ["show_caption_above_media" in item.options for item in items])
    return items


def refuse_album(kinds: list[MediaKind], captions_above: list[bool]) -> None:
    if len(kinds) > LONGEST:
        raise named("too_many_messages")
    if not kinds:
        raise named("there_are_no_messages")
    if len(set(captions_above)) > 1:
        raise named("captions_placed_differently")
    apart = next((kind for kind in kinds if kind in _APART), None)
    if apart is not None and set(kinds) != {apart}:
        raise named("cant_be_mixed", kind=apart)


def refuse_animation_in_disguise(files: TelegramFiles, items: list[RequestedMedia]) -> None:
    """An animation may be sent as video or document, but its file id is checked."""
    for item in items:
        if isinstance(item.source, str) and item.kind != "photo" and files.is_animation(item.source):
            raise named("cant_use_media_in_album")


def first_caption(params: Params) -> str:
    """For the log, which is written even when the album is refused."""
    try:
        items = params.structure("media")
    except msgspec.DecodeError:
        return ""
    captions = (item.get("caption") for item in items if isinstance(item, dict)) if isinstance(items, list) else ()
    return next((text for text in captions if isinstance(text, str) and text), "")


def read_input_media(params: Params) -> RequestedMedia:
    """``media`` of editMessageMedia: one item, which may be an animation."""
    if not params.text("media"):
        raise named("parameter_is_required", parameter="media")
    try:
        item = params.structure("media")
    except msgspec.DecodeError:
        raise TelegramError(400, "Bad Request: can't parse input media JSON object") from None
    return _item(item, params, for_album=False)


def _items(params: Params) -> list[Any]:
    if not params.text("media"):
        raise named("parameter_is_required", parameter="media")
    try:
        items = params.structure("media")
    except msgspec.DecodeError:
        raise named("cant_parse_media_json") from None
    if items is not None and not isinstance(items, list):
        raise named("expected_an_array_of_media")
    return items or []


def _item(item: object, params: Params, *, for_album: bool = True) -> RequestedMedia:
    if not isinstance(item, dict):
        raise named("cant_parse_input_media", reason="expected an Object")
    item_params = Params(item, "", params.uploads)
    try:
        return _piece(item_params, for_album=for_album)
    except TelegramError as refused:
        raise _in_input_media(refused) from None


def _piece(item_params: Params, *, for_album: bool) -> RequestedMedia:
    kind = _KINDS.get(item_params.text("type"))
    if kind == "animation" and for_album:
        raise TelegramError(400, _PREFIX + 'type "animation" can\'t be used in sendMediaGroup')
    if kind is None:
        raise TelegramError(400, _PREFIX + f'type "{item_params.text("type")}" is unsupported')
    source = named_source(item_params.text("media"), item_params.uploads)
    if source is None:
        raise TelegramError(400, _PREFIX + "media not found")
    return piece(item_params, kind, source)


def _in_input_media(refused: TelegramError) -> TelegramError:
    """Lowercase only the first letter of the whole text, as in Telegram."""
    reason = refused.description.removeprefix(_PREFIX)
    if reason.startswith("can't parse entities"):
        reason = reason[0].upper() + reason[1:]
    return named("cant_parse_input_media", reason=reason)
