"""Serve uploaded bytes unchanged, and so that a browser never executes them."""

from aiohttp import web

_SHOWN = ("image/", "video/", "audio/")
_HARMLESS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox; default-src 'none'"}


def serve_uploaded(body: bytes, content_type: str, headers: dict[str, str] | None = None) -> web.Response:
    """Types that a browser might execute are sent as attachments."""
    shown = content_type.startswith(_SHOWN) and "svg" not in content_type
    disposition = {"Content-Disposition": "inline" if shown else "attachment"}
    return web.Response(body=body, content_type=content_type, headers=_HARMLESS | disposition | (headers or {}))
