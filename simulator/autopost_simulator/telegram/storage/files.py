"""Files that bots have sent: by file id for bots, by unique id for the page and for tests.

Files with equal bytes, kind, name and attributes are one file. The newest ``FILES_KEPT`` are known; the spool decides
how long their bytes are kept, so an old file may be sent by its id although it cannot be downloaded.
"""

import base64
import hashlib
import mimetypes
import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from autopost_simulator.telegram.refusal import named
from autopost_simulator.telegram.standing import MediaKind
from autopost_simulator.telegram.storage import file_ids
from autopost_simulator.telegram.storage.file_ids import FileId, FileIdError
from autopost_simulator.telegram.storage.spool import Spool
from autopost_simulator.world import Bot

FILES_KEPT = 20_000
LARGEST_DOWNLOAD = 20 * 1024 * 1024

_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,10}$")
_FOLDERS: dict[MediaKind, str] = {
    "photo": "photos",
    "video": "videos",
    "document": "documents",
    "audio": "music",
    "animation": "animations",
    "voice": "voice",
    "sticker": "stickers",
}


@dataclass(slots=True, frozen=True, kw_only=True)
class TelegramFile:
    """``attributes`` are the fields that Telegram returns for its kind, such as ``width`` or ``performer``."""

    kind: MediaKind
    sha256: str
    size: int
    content_type: str
    name: str | None
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def unique_id(self) -> str:
        """Twenty characters without padding, the same for every bot."""
        identity = repr((self.kind, self.sha256, self.content_type, self.name, sorted(self.attributes.items())))
        return base64.urlsafe_b64encode(hashlib.sha256(identity.encode()).digest()[:15]).decode()

    @property
    def path(self) -> str:
        """Where a bot downloads it, below ``/file/bot<token>/``."""
        named_so = _SUFFIX.search(self.name or "")
        suffix = named_so[0] if named_so else mimetypes.guess_extension(self.content_type) or ""
        return f"{_FOLDERS[self.kind]}/{self.unique_id}{suffix}"


class TelegramFiles:
    def __init__(self, spool: Spool | None = None, *, kept: int = FILES_KEPT) -> None:
        self._spool = spool or Spool()
        self._kept = kept
        self._known: dict[tuple[int, str], TelegramFile] = {}
        self._by_unique_id: dict[str, TelegramFile] = {}

    def store(self, content: bytes) -> str:
        return self._spool.put(content)

    def keep(self, bot: Bot, file: TelegramFile) -> TelegramFile:
        self._known.pop((bot.id, file.unique_id), None)
        self._known[bot.id, file.unique_id] = file
        self._by_unique_id[file.unique_id] = file
        if len(self._known) > self._kept:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._by_unique_id.pop(oldest[1], None)
        return file

    def id_for(self, bot: Bot, file: TelegramFile) -> str:
        return file_ids.write(FileId(bot.id, file.kind, file.unique_id))

    def sent_again(self, bot: Bot, text: str, kind: MediaKind) -> TelegramFile:
        try:
            file_id = file_ids.read(text)
        except FileIdError as reason:
            raise named("wrong_remote_file_identifier", reason=str(reason)) from None
        file = self._known.get((bot.id, file_id.unique_id))
        if file_id.bot != bot.id or file is None:
            raise named("wrong_file_identifier")
        if file.kind != kind:
            raise named("cant_use_file_of_type", type=file.kind.capitalize(), wanted=kind.capitalize())
        return file

    def is_animation(self, text: str) -> bool:
        try:
            return file_ids.read(text).kind == "animation"
        except FileIdError:
            return False

    def to_download(self, bot: Bot, text: str) -> TelegramFile:
        """The file that ``getFile`` describes."""
        if not text:
            raise named("file_id_not_specified")
        try:
            file_id = file_ids.read(text)
        except FileIdError:
            raise named("invalid_file_id") from None
        file = self._known.get((bot.id, file_id.unique_id))
        if file_id.bot != bot.id or file is None or self.content(file) is None:
            raise named("file_temporarily_unavailable")
        if file.size > LARGEST_DOWNLOAD:
            raise named("file_is_too_big")
        return file

    def at(self, bot: Bot, path: str) -> TelegramFile | None:
        file = self._known.get((bot.id, PurePosixPath(path).stem))
        return file if file is not None and file.path == path and file.size <= LARGEST_DOWNLOAD else None

    def by_unique_id(self, unique_id: str) -> TelegramFile | None:
        return self._by_unique_id.get(unique_id)

    def content(self, file: TelegramFile) -> bytes | None:
        return self._spool.get(file.sha256)

    def clear(self) -> None:
        self._known.clear()
        self._by_unique_id.clear()
        self._spool.clear()
