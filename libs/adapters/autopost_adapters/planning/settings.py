"""What a channel's settings say about rendering. A value that means nothing is told, never guessed at."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from autopost_contracts.payload import MediaType
from autopost_contracts.plan import Problem

BUTTONS_TEXT = "👇"

_PLACE = re.compile(r" - at `\$\.?(?P<field>[^`]*)`$")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Other keys of the settings steer other things."""

    overflow: Literal["fail", "split", "truncate"] = "fail"
    on_markup: Literal["fail", "plain"] = "fail"
    silent: bool = False
    protect: bool = False
    disable_preview: bool = False
    preview_size: Literal["small", "large"] | None = None
    preview_above: bool = False
    caption_above: bool = False
    buttons_text: Annotated[str, msgspec.Meta(pattern=r"\S", max_length=1024)] = BUTTONS_TEXT
    upload_policy: dict[MediaType, Literal["upload_required", "url_allowed"]] = {}


def read_settings(given: Mapping[str, Any]) -> Settings | Problem:
    try:
        return msgspec.convert(given, Settings)
    except msgspec.ValidationError as exc:
        reason = str(exc)
        place = _PLACE.search(reason)
        field = f"settings.{place['field']}" if place else "settings"
        return Problem("setting_unknown", field, reason[: place.start()] if place else reason)
