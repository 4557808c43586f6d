"""Parameters of a Bot API call, however they came: query, form, JSON or multipart."""

import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from aiohttp import web

from autopost_simulator.telegram.refusal import named


class Params:
    """A form can only carry text, so an object may come as itself or as its JSON."""

    def __init__(self, values: Mapping[str, Any], digest: str) -> None:
        self._values = values
        self.digest = digest

    def text(self, name: str) -> str:
        value = self._values.get(name)
        if value is None:
            return ""
        return value if isinstance(value, str) else msgspec.json.encode(value).decode()

    def integer(self, name: str) -> int | None:
        try:
            return int(self.text(name))
        except ValueError:
            return None

    def flag(self, name: str) -> bool:
        return self.text(name).lower() in ("true", "yes", "1")

    def structure(self, name: str) -> Any:
        """``None`` when absent; ``msgspec.DecodeError`` when it is no JSON."""
        value = self._values.get(name)
        return msgspec.json.decode(value) if isinstance(value, str) and value else value or None


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
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise named("cant_parse_json") from None


async def _multipart(request: web.Request, values: dict[str, Any]) -> Params:
    """The digest is of the fields: the boundary is random and would differ for equal bodies."""
    digest = hashlib.sha256()
    for name, value in (await request.post()).items():
        if isinstance(value, str):
            values[name] = value
            digest.update(f"{name}={value}\n".encode())
    return Params(values, digest.hexdigest())
