"""The rendering settings of a channel. An invalid value is a problem, never replaced by a guess.

All known keys are listed here. An unknown key is ignored when a post is compiled, so that a typo does not stop posts.
``settings_problems`` reports it, for `autopost channel check`.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, Literal, get_args

import msgspec
from autopost_contracts.payload import MediaType, ParseMode, Thread
from autopost_contracts.plan import Problem
from autopost_runtime.config.suggestions import suggest
from autopost_runtime.secrets.redaction import quoted

BUTTONS_TEXT = "👇"

UploadKind = Literal["image", "video", "file", "audio", "other"]
Upload = Literal["upload_required", "url_allowed"]
UploadPolicy = Mapping[UploadKind, Upload]
"""How media of each kind is sent; kinds that are not listed are uploaded."""

_KINDS: Mapping[MediaType, UploadKind] = {"image": "image", "video": "video", "file": "file", "audio": "audio"}
_PLACE = re.compile(r" - at `(?:key` in `)?\$\.?(?P<field>[^`]*)`$")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that affect rendering; there are other keys."""

    parse_mode: ParseMode | None = None
    """For posts without a parse mode."""
    overflow: Literal["fail", "split", "truncate"] = "fail"
    on_markup: Literal["fail", "plain"] = "fail"
    silent: bool = False
    protect: bool = False
    disable_preview: bool = False
    preview_size: Literal["small", "large"] | None = None
    preview_above: bool = False
    caption_above: bool = False
    buttons_text: Annotated[str, msgspec.Meta(pattern=r"\S", max_length=1024)] = BUTTONS_TEXT
    upload_policy: dict[UploadKind, Upload] = {}

    def takes_by_url(self, kind: MediaType) -> bool:
        return self.upload_policy.get(_KINDS.get(kind, "other")) == "url_allowed"


class _Address(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that affect the target of a post; used by the dispatcher."""

    message_thread_id: Thread | None = None


KNOWN = frozenset({*Settings.__struct_fields__, *_Address.__struct_fields__})


def read_settings(given: Mapping[str, Any]) -> Settings | Problem:
    try:
        return msgspec.convert(given, Settings)
    except msgspec.ValidationError as exc:
        return _problem(exc)


def settings_problems(given: Mapping[str, Any]) -> Iterator[Problem]:
    """All problems, key by key: unknown keys with a suggestion, and invalid values."""
    for key, value in given.items():
        if key not in KNOWN:
            yield _unknown(f"settings.{quoted(key)}", key, KNOWN)
        elif key == "upload_policy" and isinstance(value, dict):
            yield from _policy_problems(value)
        else:
            yield from _value_problems({key: value})


def _policy_problems(policy: Mapping[str, Any]) -> Iterator[Problem]:
    for kind, value in policy.items():
        field = f"settings.upload_policy.{quoted(kind)}"
        if kind not in get_args(UploadKind):
            yield _unknown(field, kind, get_args(UploadKind))
        elif value not in get_args(Upload):
            yield _unknown(field, str(value), get_args(Upload))
        elif value == "url_allowed" and kind != "image":
            yield Problem("setting_unknown", field, "url_allowed has no effect: platforms take only images by URL")


def _value_problems(one: Mapping[str, Any]) -> Iterator[Problem]:
    try:
        msgspec.convert(one, _Address if _Address.__struct_fields__[0] in one else Settings)
    except msgspec.ValidationError as exc:
        yield _problem(exc)


def _unknown(field: str, name: str, known: Collection[str]) -> Problem:
    return Problem("setting_unknown", field, f"unknown {quoted(name)!r}; {suggest(name, known)}")


def _problem(exc: msgspec.ValidationError) -> Problem:
    reason = str(exc)
    place = _PLACE.search(reason)
    field = f"settings.{quoted(place['field'])}" if place else "settings"
    return Problem("setting_unknown", field, quoted(reason[: place.start()] if place else reason, 160))
