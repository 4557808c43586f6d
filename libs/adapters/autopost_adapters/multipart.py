"""Stream ``multipart/form-data``. The length is known in advance, because each source has a size."""

from collections.abc import AsyncIterator, Iterator, Mapping
from uuid import uuid4

from autopost_runtime.http.request_body import StreamedBody, closed

from autopost_adapters.base import MediaUnreadable, Source

_QUOTED = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})
_ENCODED = _QUOTED | str.maketrans({"%": "%25", "\\": "%5C"})


def multipart(fields: Mapping[str, str], files: Mapping[str, Source], *, decodes_names: bool = False) -> StreamedBody:
    """Fields first, then the files, in order. ``decodes_names``: the reader takes a file name for percent-encoded."""
    boundary = uuid4().hex
    pieces = list(_pieces(boundary, fields, files, _ENCODED if decodes_names else _QUOTED))
    length = sum(len(piece) if isinstance(piece, bytes) else piece.size for piece in pieces)
    return StreamedBody(f"multipart/form-data; boundary={boundary}", length, lambda: _stream(pieces))


def _pieces(
    boundary: str, fields: Mapping[str, str], files: Mapping[str, Source], names: dict[int, str]
) -> Iterator[bytes | Source]:
    for name, value in fields.items():
        yield f"--{boundary}\r\n{_disposition(name)}\r\n\r\n{value}\r\n".encode()
    for name, source in files.items():
        head = f'--{boundary}\r\n{_disposition(name)}; filename="{source.name.translate(names)}"\r\n'
        yield f"{head}Content-Type: {source.content_type.translate(_QUOTED)}\r\n\r\n".encode()
        yield source
        yield b"\r\n"
    yield f"--{boundary}--\r\n".encode()


def _disposition(name: str) -> str:
    return f'Content-Disposition: form-data; name="{name.translate(_QUOTED)}"'


async def _stream(pieces: list[bytes | Source]) -> AsyncIterator[bytes]:
    for piece in pieces:
        if isinstance(piece, bytes):
            yield piece
            continue
        chunks = _whole(piece)
        try:
            async for chunk in chunks:
                yield chunk
        finally:
            await closed(chunks)


async def _whole(source: Source) -> AsyncIterator[bytes]:
    """Check the size: on a mismatch the end of the form is not sent, so no platform accepts the form."""
    left = source.size
    chunks = source.open()
    try:
        async for chunk in chunks:
            left -= len(chunk)
            if left < 0:
                raise MediaUnreadable(f"{source.name}: more than the expected {source.size} bytes")
            yield chunk
    finally:
        await closed(chunks)
    if left:
        raise MediaUnreadable(f"{source.name}: {left} of {source.size} bytes missing")
