"""Files uploaded to MAX, by id, token or checksum; bytes are kept within a memory limit."""

import mimetypes
import secrets
from dataclasses import dataclass
from typing import Any, Literal

from autopost_simulator.clock import Clock
from autopost_simulator.fingerprint import fingerprint
from autopost_simulator.limits import NANOSECONDS
from autopost_simulator.max.media import Kind
from autopost_simulator.max.refusal import named
from autopost_simulator.max.settings import MaxSettings
from autopost_simulator.world import Bot

FILES_KEPT = 10_000
BYTES_KEPT = 256 * 1024 * 1024

FileState = Literal["processing", "ready", "unsupported", "expired"]


@dataclass(slots=True, kw_only=True)
class MaxFile:
    """``url`` is set for an image given by URL, which is never fetched."""

    id: int
    token: str
    kind: Kind
    owner: str
    name: str
    size: int
    sha256: str
    data: bytes | None
    uploaded_ns: int
    url: str | None = None
    state: FileState | None = None

    @property
    def content_type(self) -> str:
        return mimetypes.guess_type(self.name)[0] or "application/octet-stream"


def new_token() -> str:
    return secrets.token_urlsafe(32)


class MaxFiles:
    def __init__(
        self, clock: Clock, settings: MaxSettings, *, bytes_kept: int = BYTES_KEPT, files_kept: int = FILES_KEPT
    ) -> None:
        self._bytes_kept, self._files_kept = bytes_kept, files_kept
        self._clock = clock
        self._settings = settings
        self._by_id: dict[int, MaxFile] = {}
        self._by_token: dict[str, MaxFile] = {}
        self._size = 0
        self._last_id = 0

    def add(
        self,
        kind: Kind,
        owner: Bot,
        name: str,
        *,
        sha256: str = "",
        data: bytes | None = None,
        size: int = 0,
        token: str | None = None,
        url: str | None = None,
    ) -> MaxFile:
        self._last_id += 1
        file = MaxFile(
            id=self._last_id,
            token=token or new_token(),
            kind=kind,
            owner=owner.token,
            name=name,
            size=size,
            sha256=sha256,
            data=data,
            uploaded_ns=self._clock.monotonic_ns(),
            url=url,
        )
        self._by_id[file.id] = self._by_token[file.token] = file
        self._size += len(data or b"")
        self._make_room()
        return file

    def usable(self, kind: Kind, token: str, bot: Bot) -> MaxFile:
        """The file of a token; an error while it is not ready to attach."""
        file = self._by_token.get(token)
        if file is None or file.kind != kind or self.state(file) == "expired":
            raise named("token_unknown", kind=kind)
        if file.owner != bot.token:
            raise named("movie_not_owner" if kind == "video" else "media_not_owner", kind=kind)
        if self.state(file) == "processing":
            raise named("media_not_ready", kind=kind)
        if self.state(file) == "unsupported":
            raise named("media_not_supported", kind=kind)
        return file

    def state(self, file: MaxFile) -> FileState:
        """The scripted state of the file, else the state by its age."""
        age = self._clock.monotonic_ns() - file.uploaded_ns
        lifetime = self._settings.token_lifetime
        if file.state is not None:
            return file.state
        if lifetime is not None and age >= lifetime * NANOSECONDS:
            return "expired"
        return "ready" if age >= self._settings.processing[file.kind] * NANOSECONDS else "processing"

    def find(self, key: str) -> MaxFile | None:
        if key in self._by_token:
            return self._by_token[key]
        if key.isascii() and key.isdigit() and int(key) in self._by_id:
            return self._by_id[int(key)]
        return next((file for file in self._by_id.values() if file.sha256 == key), None)

    def describe(self) -> list[dict[str, Any]]:
        return [self.description(file) for file in self._by_id.values()]

    def description(self, file: MaxFile) -> dict[str, Any]:
        return {
            "id": file.id,
            "type": file.kind,
            "name": file.name,
            "size": file.size,
            "sha256": file.sha256,
            "state": self.state(file),
            "token": fingerprint(file.owner),
            "kept": file.data is not None,
        }

    def clear(self) -> None:
        self._by_id.clear()
        self._by_token.clear()
        self._size = 0

    def _make_room(self) -> None:
        """Drop the oldest bytes first; metadata is kept longer."""
        for file in self._by_id.values():
            if self._size <= self._bytes_kept:
                break
            self._size -= len(file.data or b"")
            file.data = None
        if len(self._by_id) > self._files_kept:
            oldest = self._by_id.pop(next(iter(self._by_id)))
            self._size -= len(oldest.data or b"")
            del self._by_token[oldest.token]
