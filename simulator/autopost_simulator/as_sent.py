"""Uploaded bytes, handed out as they were sent: whatever a bot uploads, nothing of it runs in the page."""

from aiohttp import web

_SHOWN = ("image/", "video/", "audio/")
_HARMLESS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox; default-src 'none'"}


def as_sent(body: bytes, content_type: str, headers: dict[str, str] | None = None) -> web.Response:
    """What a browser might run is an attachment."""
    shown = content_type.startswith(_SHOWN) and "svg" not in content_type
    disposition = {"Content-Disposition": "inline" if shown else "attachment"}
    return web.Response(body=body, content_type=content_type, headers=_HARMLESS | disposition | (headers or {}))
