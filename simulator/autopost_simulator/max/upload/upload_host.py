"""The upload host: a whole file as multipart field ``data``, or chunks with ``Content-Range``.

No ``Authorization`` is needed: the URL grants the upload. Images and files are answered with JSON,
video and audio with XML; a chunk that does not complete the file is answered with the received range
(the form of that answer is not documented). The field of the file is documented as ``data``, but may have any name:
working clients call it ``file``, or by the name of the file.
"""

import re
from dataclasses import dataclass
from urllib.parse import unquote

from aiohttp import BodyPartReader, web

from autopost_simulator import reply
from autopost_simulator.exchange import Act, CallHandler, ProviderCall
from autopost_simulator.max.assembly import Assembly
from autopost_simulator.max.media import check_name, check_sides, check_size
from autopost_simulator.max.refusal import MaxError, named, payload
from autopost_simulator.max.upload.files import MaxFile
from autopost_simulator.max.upload.uploads import MaxUpload, MaxUploads, check_unused, photo_key
from autopost_simulator.reply import Reply

CHUNK = 64 * 1024
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
_FILENAME = re.compile(r'filename="?([^";]*)"?')
_XML = b"<retval>1</retval>"


@dataclass(frozen=True, slots=True)
class UploadChunk:
    """``start`` is ``None`` for a whole file."""

    name: str
    content: Assembly
    start: int | None = None
    total: int | None = None


class UploadHost:
    def __init__(self, uploads: MaxUploads, exchange: CallHandler) -> None:
        self._uploads = uploads
        self._exchange = exchange

    def add_to(self, app: web.Application) -> None:
        app.router.add_post("/max-upload/{kind}/{id}", self.receive)
        app.router.add_get("/max-upload/{kind}/{id}", self.status)

    async def receive(self, request: web.Request) -> web.StreamResponse:
        upload = self._uploads.find(request.match_info["id"])
        call = self._arrive(request, upload)
        if self._exchange.cut_off(request, call):
            return web.Response()
        act = await self._read(request, upload, call)
        return await self._exchange.answer(request, call, act)

    async def status(self, request: web.Request) -> web.StreamResponse:
        upload = self._uploads.find(request.match_info["id"])
        call = self._arrive(request, upload)
        if upload is None:
            return await self._exchange.answer(request, call, named("upload_unknown").reply)
        received = upload.arriving.received() if upload.file is None else f"0-{upload.file.size - 1}/{upload.file.size}"
        return await self._exchange.answer(request, call, lambda: _plain(200, received))

    def _arrive(self, request: web.Request, upload: MaxUpload | None) -> ProviderCall:
        token = upload.bot.token if upload else ""
        return self._exchange.arrive("max", token, f"{request.method} /upload/{request.match_info['kind']}")

    async def _read(self, request: web.Request, found: MaxUpload | None, call: ProviderCall) -> Act:
        """Reads the body first; only the returned function changes state."""
        try:
            upload = check_unused(found)
            piece = await _read(request, upload)
        except MaxError as refused:
            return refused.reply
        call.body_sha256 = piece.content.sha256
        call.uploads = 1
        return lambda: self._take(upload, piece)

    def _take(self, upload: MaxUpload, piece: UploadChunk) -> Reply:
        try:
            check_unused(upload)
            content = piece.content if piece.start is None else _put(upload, piece, piece.start)
            if content.complete:
                check_sides(upload.kind, content.data)
        except MaxError as refused:
            return refused.reply()
        if not content.complete:
            return _plain(201, content.received())
        return _done(self._uploads.finish(upload, piece.name, content))


def _put(upload: MaxUpload, piece: UploadChunk, start: int) -> Assembly:
    if upload.arriving.total not in (None, piece.total):
        raise payload("Content-Range: the size of the file has changed")
    upload.arriving.total = piece.total
    upload.arriving.put(start, piece.content.data or b"")
    return upload.arriving


def _done(file: MaxFile) -> Reply:
    if file.kind == "image":
        return reply.accepted({"photos": {photo_key(file): {"token": file.token}}})
    if file.kind == "file":
        return reply.accepted({"fileId": file.id, "token": file.token})
    return reply.Reply(status=200, body=_XML, verdict="accepted", content_type="text/xml", charset="utf-8")


def _plain(status: int, text: str) -> Reply:
    return reply.Reply(status=status, body=text.encode(), verdict="accepted", content_type="text/plain")


async def _read(request: web.Request, upload: MaxUpload) -> UploadChunk:
    if request.content_type == "multipart/form-data":
        return await _multipart(request, upload)
    ranged = _RANGE.fullmatch(request.headers.get("Content-Range", ""))
    if ranged is None:
        raise payload("Content-Range: `bytes first-last/size` is needed")
    return await _range(request, upload, *map(int, ranged.groups()))


async def _multipart(request: web.Request, upload: MaxUpload) -> UploadChunk:
    try:
        async for part in await request.multipart():
            if isinstance(part, BodyPartReader) and part.filename is not None:
                check_name(upload.kind, part.filename)
                return UploadChunk(part.filename, await _whole(part, upload))
    except ValueError:
        raise payload("The body is not multipart/form-data") from None
    raise payload("The file is expected in the field `data`")


async def _whole(part: BodyPartReader, upload: MaxUpload) -> Assembly:
    content = Assembly()
    while chunk := await part.read_chunk(CHUNK):
        content.append(chunk)
        check_size(upload.kind, content.size)
    return content


async def _range(request: web.Request, upload: MaxUpload, first: int, last: int, total: int) -> UploadChunk:
    name = _name(request)
    check_name(upload.kind, name)
    check_size(upload.kind, total)
    try:
        body = await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise named("upload_too_large", kind=upload.kind) from None
    if not first <= last < total or len(body) != last - first + 1:
        raise payload("Content-Range: does not fit the body")
    content = Assembly()
    content.append(body)
    return UploadChunk(name, content, first, total)


def _name(request: web.Request) -> str:
    given = _FILENAME.search(request.headers.get("Content-Disposition", ""))
    return unquote(given[1] if given else request.headers.get("X-File-Name", ""))
