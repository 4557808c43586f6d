"""Media sources: complete, truncated, missing, or with a wrong length."""

from collections.abc import AsyncIterator

from autopost_adapters.base import MediaMissing, MediaUnreadable
from harness.telegram_media import png

PICTURE = png()


class Bytes:
    """``breaks``: what is raised halfway. ``told``: the size that is told, where it is not the true one."""

    def __init__(
        self,
        content: bytes = PICTURE,
        name: str = "picture.png",
        content_type: str = "image/png",
        *,
        breaks: MediaMissing | MediaUnreadable | None = None,
        told: int | None = None,
    ) -> None:
        self.content = content
        self.name = name
        self.content_type = content_type
        self.size = len(content) if told is None else told
        self.opened = 0
        self._breaks = breaks

    async def open(self) -> AsyncIterator[bytes]:
        self.opened += 1
        middle = len(self.content) // 2
        yield self.content[:middle]
        if self._breaks is not None:
            raise self._breaks
        yield self.content[middle:]
