"""Upload an item to MAX: request an upload URL, send the bytes, keep the token for the message.

The source of the token depends on the kind. For some kinds it comes with the URL, before any bytes are sent.
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
"""MAX documents that tokens may be reused, but not for how long."""

_ACCEPTED = re.compile(rb"<retval>\s*1\s*</retval>")


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
    """A failure is never ambiguous: an upload posts nothing and can be repeated."""
    provider_id = await _upload(api, kind_of(item), source, token)
    if isinstance(provider_id, Failed):
        return certain(provider_id)
    return Held(provider_id=provider_id, lifetime=LIFETIME)


async def _upload(api: Api, kind: Kind, source: Source, token: Secret) -> str | Failed:
    answer = await api.call("POST", "/uploads", token, {"type": kind})
    link = answer if isinstance(answer, Failed) else parse(answer, _link)
    if isinstance(link, Failed):
        return link
    uploaded = await api.hand_over(link.url, source)
    return uploaded if isinstance(uploaded, Failed) else parse_upload(uploaded, _reader(kind, link))


def _reader(kind: Kind, link: UploadUrl) -> Callable[[bytes], str]:
    readers: Mapping[Kind, Callable[[bytes], str]] = {
        "image": lambda body: _first(_photos(body)),
        "file": lambda body: _required(_photo(body).token),
        "video": lambda body: _with_link(link, body),
        "audio": lambda body: _with_link(link, body),
    }
    return readers[kind]


def _first(uploaded: Photos) -> str:
    return _required(next((photo.token for photo in uploaded.photos.values()), None))


def _with_link(link: UploadUrl, body: bytes) -> str:
    if not _ACCEPTED.search(body):
        raise msgspec.DecodeError("the upload was rejected")
    return _required(link.token)


def _required(token: Any) -> str:
    found = token_of(token)
    if found is None:
        raise msgspec.DecodeError("the response has no token")
    return found
