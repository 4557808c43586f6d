"""Download one medium into an unnamed temporary file and check its size and type.

Bytes are written to disk as they arrive, so memory use is constant. A process that dies leaves no file behind.
"""

from collections.abc import AsyncIterator, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from copy import copy
from datetime import timedelta
from hashlib import sha256
from tempfile import TemporaryFile
from typing import BinaryIO, Self

from autopost_contracts.payload import MediaType
from autopost_runtime.fetch.fetch import Fetched, Fetcher, Unfetched
from msgspec import Struct

from autopost_ingest.staging.file_name import file_name
from autopost_ingest.staging.image_size import image_size
from autopost_ingest.staging.media_types import HEAD, content_type_of, fits

MiB = 1024 * 1024
LONGEST_FETCH_WAIT = timedelta(minutes=10)
"""Upper bound of a Retry-After."""

_AGAIN = frozenset({408, 425, 429})


class StorageFailed(Exception):  # noqa: N818  named for what happened
    """Our disk or object store failed; the sender is not the cause."""


class DownloadLimits(Struct, frozen=True, kw_only=True):
    image: int = 10 * MiB
    video: int = 50 * MiB
    file: int = 50 * MiB
    within: timedelta = timedelta(seconds=30)
    idle: timedelta = timedelta(seconds=10)

    def of(self, kind: MediaType) -> int:
        match kind:
            case "image":
                return self.image
            case "video" | "animation":
                return self.video
            case "audio" | "file":
                return self.file


class Downloaded(Struct, frozen=True, kw_only=True):
    """``file`` is open while the download's ``async with`` lasts."""

    file: BinaryIO
    digest: str
    size: int
    content_type: str
    width: int | None
    height: int | None
    name: str | None

    @property
    def blob_ref(self) -> str:
        return f"sha256:{self.digest}"


class Downloader:
    def __init__(self, fetcher: Fetcher, limits: DownloadLimits) -> None:
        self._fetcher = fetcher
        self.limits = limits

    def on_behalf_of(self, whose: Hashable) -> Self:
        made = copy(self)
        made._fetcher = self._fetcher.on_behalf_of(whose)
        return made

    @asynccontextmanager
    async def download(self, url: str, kind: MediaType) -> AsyncIterator[Downloaded]:
        """Raises ``Unfetched`` or ``StorageFailed``."""
        limits = self.limits
        with _nameless_file() as file:
            async with self._fetcher.fetch(
                url, limit=limits.of(kind), within=limits.within, idle=limits.idle
            ) as fetched:
                _refuse_status(fetched)
                digest = await _write_to(fetched, file)
                address, disposition = fetched.url, fetched.headers.get("Content-Disposition")
            size = file.tell()
            content_type = _checked_type(file, kind)
            width, height = image_size(file, content_type) or (None, None)
            yield Downloaded(
                file=file,
                digest=digest,
                size=size,
                content_type=content_type,
                width=width,
                height=height,
                name=file_name(address, disposition, content_type),
            )


def check_fit(kind: MediaType, content_type: str | None, size: int, limits: DownloadLimits) -> None:
    """Raises ``Unfetched``: media fetched as one kind may be invalid as another."""
    if content_type is None or not fits(kind, content_type):
        raise Unfetched("wrong_type", final=True)
    if size > limits.of(kind):
        raise Unfetched("too_large", final=True)


async def _write_to(fetched: Fetched, file: BinaryIO) -> str:
    """Writes do not block: these amounts stay in the page cache."""
    digest = sha256()
    async for chunk in fetched.chunks():
        digest.update(chunk)
        with _storage_errors():
            file.write(chunk)
    with _storage_errors():
        file.flush()
    return digest.hexdigest()


@contextmanager
def _nameless_file() -> Iterator[BinaryIO]:
    with _storage_errors():
        file = TemporaryFile()  # noqa: SIM115  closed below
    try:
        yield file
    finally:
        with suppress(OSError):  # close flushes, which fails on a full disk; the file is not needed any more
            file.close()


@contextmanager
def _storage_errors() -> Iterator[None]:
    """Around disk access only: the caller treats other ``OSError`` as connection errors."""
    try:
        yield
    except OSError as exc:
        raise StorageFailed from exc


def _checked_type(file: BinaryIO, kind: MediaType) -> str:
    file.seek(0)
    head = file.read(HEAD)
    if not head:
        raise Unfetched("empty")
    content_type = content_type_of(head)
    if content_type is None or not fits(kind, content_type):
        raise Unfetched("wrong_type", final=True)
    return content_type


def _refuse_status(fetched: Fetched) -> None:
    status = fetched.status
    if status == 200:
        return
    final = 400 <= status < 500 and status not in _AGAIN
    raise Unfetched(f"http_{status}", final=final, retry_after=_wait(fetched.headers.get("Retry-After")))


def _wait(header: str | None) -> timedelta | None:
    if header is None or not header.isascii() or not header.isdigit() or len(header) > 9:
        return None
    return min(timedelta(seconds=int(header)), LONGEST_FETCH_WAIT)
