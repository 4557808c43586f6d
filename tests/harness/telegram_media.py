"""Small real pictures, and uploads to a simulated Bot API as a plain HTTP client makes them."""

import struct
import zlib
from io import BytesIO
from typing import Any, Protocol

import aiohttp
import msgspec

TOKEN = "1001:telegram-token"


def png(width: int = 40, height: int = 30, shade: int = 128) -> bytes:
    rows = (b"\0" + bytes([shade]) * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in parts
    )


class Asking(Protocol):
    async def ask(self, verb: str, path: str, **options: Any) -> Any: ...


async def upload(
    client: Asking, method: str, files: dict[str, tuple[str, bytes]], *, token: str = TOKEN, **params: Any
) -> Any:
    """``files``: the name of the part, then the file's own name and its bytes."""
    form = aiohttp.FormData(default_to_multipart=True)
    for name, value in params.items():
        form.add_field(name, value if isinstance(value, str) else msgspec.json.encode(value).decode())
    for part, (name, content) in files.items():
        form.add_field(part, BytesIO(content), filename=name)
    return await client.ask("POST", f"/bot{token}/{method}", data=form)


async def sent_file(client: Asking, kind: str, content: bytes | None = None, **options: Any) -> dict[str, Any]:
    """Upload one and get what the message shows of it."""
    name = {"photo": "a.png", "video": "a.mp4", "document": "a.txt", "audio": "a.mp3", "animation": "a.gif"}[kind]
    answer = await upload(
        client, f"send{kind.capitalize()}", {kind: (name, png() if content is None else content)}, **options
    )
    assert answer.status == 200, answer.body
    shown = answer.body["result"][kind]
    return dict(shown[-1] if kind == "photo" else shown)
