"""One GET request to a local server that may not be running yet.

It does not use httpx: importing that takes longer than starting NATS.
"""

import asyncio
from urllib.parse import urlsplit


async def get(url: str, timeout: float = 1.0) -> tuple[int, str] | None:
    """Status and body; ``None`` without an answer."""
    try:
        async with asyncio.timeout(timeout):
            answer = await _exchange(url)
        head, _, body = answer.partition("\r\n\r\n")
        return int(head.split(" ", 2)[1]), body
    except (OSError, TimeoutError, ValueError, IndexError):
        return None


async def _exchange(url: str) -> str:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        writer.write(f"GET {parts.path or '/'} HTTP/1.0\r\nHost: {parts.netloc}\r\n\r\n".encode())
        return (await reader.read()).decode(errors="replace")
    finally:
        writer.close()
