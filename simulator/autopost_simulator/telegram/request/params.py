"""Parameters of a Bot API call from query, form, JSON or multipart."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from aiohttp import web

from autopost_simulator.telegram.request.multipart import read_parts


@dataclass(slots=True, frozen=True)
class MultipartFile:
    """A part of a multipart body that has a file name."""

    name: str
    content: bytes


class Params:
    """A form has only text fields, so an object may be given as itself or as JSON text."""

    def __init__(
        self,
        values: Mapping[str, Any],
        digest: str,
        uploads: Mapping[str, MultipartFile] | None = None,
    ) -> None:
        self._values = values
        self.digest = digest
        self.uploads = uploads or {}

    def items(self) -> Iterable[tuple[str, Any]]:
        return self._values.items()

    def text(self, name: str) -> str:
        value = self._values.get(name)
        if value is None:
            return ""
        return value if isinstance(value, str) else msgspec.json.encode(value).decode()

    def integer(self, name: str) -> int | None:
        value = self._values.get(name)
        if value is None or type(value) is int:
            return value
        try:
            return int(self.text(name))
        except ValueError:
            return None

    def flag(self, name: str) -> bool:
        return name in self._values and self.text(name).strip().lower() in ("true", "yes", "1")

    def structure(self, name: str) -> Any:
        """``None`` when absent or empty; ``msgspec.DecodeError`` for invalid JSON."""
        value = self._values.get(name)
        if value == "":
            return None
        return msgspec.json.decode(value) if isinstance(value, str) else value


async def read_params(request: web.Request) -> Params:
    values: dict[str, Any] = dict(request.query)
    if request.content_type == "multipart/form-data":
        return await _multipart(request, values)
    body = await request.read()
    if request.content_type == "application/json" and body:
        values |= _json(body)
    elif body:
        values |= dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))
    return Params(values, hashlib.sha256(body or request.query_string.encode()).hexdigest())


def _json(body: bytes) -> dict[str, Any]:
    """The server goes on without the fields that it cannot read: telebot sends ``null`` where a method has none."""
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


async def _multipart(request: web.Request, values: dict[str, Any]) -> Params:
    """The digest covers the fields: the boundary is random and differs for equal requests."""
    digest = hashlib.sha256()
    uploads: dict[str, MultipartFile] = {}
    for place, content in await read_parts(request):
        digest.update(f"{place.name}={len(content)}:".encode() + content)
        if place.filename is None:
            values[place.name] = content.decode(errors="replace")
        else:
            uploads[place.name] = MultipartFile(place.filename, content)
    return Params(values, digest.hexdigest(), uploads)
