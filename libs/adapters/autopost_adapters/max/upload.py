"""Bring an item to MAX: ask for a link, hand the bytes over, and keep the token that the item is sent by.

Where the token comes from depends on the kind. It may come with the link, before there is anything behind it.
"""

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import msgspec
from autopost_contracts.outcomes import Failed
from autopost_contracts.plan import PlannedMedia
from autopost_runtime.config.load import Secret
from msgspec import Struct

from autopost_adapters.answers import reader
from autopost_adapters.answers import token as token_of
from autopost_adapters.base import Held, Source
from autopost_adapters.classify import certain
from autopost_adapters.max.answers import parse, parse_upload
from autopost_adapters.max.api import Api
from autopost_adapters.max.message import Kind, kind_of

LIFETIME = timedelta(days=7)
"""MAX says that tokens may be kept, and not for how long."""

_TAKEN = re.compile(rb"<retval>\s*1\s*</retval>")


class UploadUrl(Struct, frozen=True):
    url: str
    token: Any = None


class Photo(Struct, frozen=True):
    token: Any


class Photos(Struct, frozen=True):
    photos: dict[str, Photo]


_link = reader(UploadUrl)
_photos = reader(Photos)
_photo = reader(Photo)


async def upload(api: Api, item: PlannedMedia, source: Source, token: Secret) -> Held | Failed:
    """Certain whatever happens: an upload posts nothing, and may be made again."""
    told = await _upload(api, kind_of(item), source, token)
    if isinstance(told, Failed):
        return certain(told)
    return Held(provider_id=told, lifetime=LIFETIME)


async def _upload(api: Api, kind: Kind, source: Source, token: Secret) -> str | Failed:
    given = await api.call("POST", "/uploads", token, {"type": kind})
    link = given if isinstance(given, Failed) else parse(given, _link)
    if isinstance(link, Failed):
        return link
    taken = await api.hand_over(link.url, source)
    return taken if isinstance(taken, Failed) else parse_upload(taken, _reader(kind, link))


def _reader(kind: Kind, link: UploadUrl) -> Callable[[bytes], str]:
    readers: Mapping[Kind, Callable[[bytes], str]] = {
        "image": lambda body: _first(_photos(body)),
        "file": lambda body: _named(_photo(body).token),
        "video": lambda body: _with_link(link, body),
        "audio": lambda body: _with_link(link, body),
    }
    return readers[kind]


def _first(told: Photos) -> str:
    return _named(next((photo.token for photo in told.photos.values()), None))


def _with_link(link: UploadUrl, body: bytes) -> str:
    if not _TAKEN.search(body):
        raise msgspec.DecodeError("the upload was rejected")
    return _named(link.token)


def _named(told: Any) -> str:
    found = token_of(told)
    if found is None:
        raise msgspec.DecodeError("the response has no token")
    return found
