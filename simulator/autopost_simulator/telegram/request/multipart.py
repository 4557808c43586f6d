"""The parts of a multipart body. aiohttp's own reader warns about file names that the Bot API server accepts."""

from collections.abc import Iterator

from aiohttp import web

from autopost_simulator.telegram.refusal import TelegramError, named
from autopost_simulator.telegram.request.disposition import Disposition, read_disposition


async def read_parts(request: web.Request) -> Iterator[tuple[Disposition, bytes]]:
    boundary = _boundary(request.headers.get("Content-Type", ""))
    body = await request.read()
    return _parts(body, b"\r\n--" + boundary)


def _parts(body: bytes, delimiter: bytes) -> Iterator[tuple[Disposition, bytes]]:
    at = 0 if body.startswith(delimiter[2:]) else body.find(delimiter)
    if at < 0:
        raise named("boundary_not_found")
    at += len(delimiter) - 2 * (not body.startswith(delimiter, at))
    while body.startswith(b"\r\n", at):
        head_end = body.find(b"\r\n\r\n", at)
        end = body.find(delimiter, max(head_end + 2, at))
        if head_end < 0 or end < 0:
            raise TelegramError(400, "Bad Request: can't parse form data headers")
        yield _disposition(body[at + 2 : head_end]), body[head_end + 4 : end]
        at = end + len(delimiter)


def _disposition(head: bytes) -> Disposition:
    for line in head.decode(errors="replace").replace("\r\n ", " ").replace("\r\n\t", " ").split("\r\n"):
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-disposition":
            return read_disposition(value.strip())
    raise TelegramError(400, "Bad Request: field name in multipart/form-data not found")


def _boundary(content_type: str) -> bytes:
    """The parameter as it stands: some clients write it without quotes where they are needed."""
    _, found, rest = content_type.partition("boundary")
    value = rest.partition("=")[2].partition(";")[0].strip().strip('"')
    if not found or not value:
        raise named("boundary_not_found")
    return value.encode()
