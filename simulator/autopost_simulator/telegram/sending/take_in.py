"""Resolve the media of a call: an upload, a file id or a URL, each with its own errors."""

import mimetypes
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from autopost_simulator.image_size import picture
from autopost_simulator.telegram.refusal import RefusedInside, named
from autopost_simulator.telegram.request.params import MultipartFile
from autopost_simulator.telegram.sending.media import RequestedMedia
from autopost_simulator.telegram.standing import MediaKind
from autopost_simulator.telegram.storage.files import TelegramFile, TelegramFiles
from autopost_simulator.telegram.storage.remote import Web, full_address, is_address
from autopost_simulator.world import Bot

LARGEST_PHOTO = 10 * 1024 * 1024
LARGEST_UPLOAD = 50 * 1024 * 1024
LONGEST_SIDES = 10_000
STEEPEST = 20

_FAMILY: dict[MediaKind, str] = {
    "video": "video/mp4",
    "animation": "video/mp4",
    "audio": "audio/mpeg",
    "voice": "audio/ogg",
}
_MOVING_STICKERS = {".tgs": "application/x-tgsticker", ".webm": "video/webm"}
STICKER_SIDE = 512


class Intake:
    def __init__(self, files: TelegramFiles, web: Web) -> None:
        self._files = files
        self._web = web

    def take_in(self, bot: Bot, piece: RequestedMedia) -> TelegramFile:
        """A file id keeps its attributes; those of the call are ignored, as in Telegram."""
        if isinstance(piece.source, MultipartFile):
            return self._uploaded(bot, piece, piece.source)
        if is_address(piece.source):
            return self._fetched(bot, piece, full_address(piece.source))
        return self._files.sent_again(bot, piece.source, piece.kind)

    def _uploaded(self, bot: Bot, piece: RequestedMedia, upload: MultipartFile) -> TelegramFile:
        size = len(upload.content)
        if size > LARGEST_UPLOAD:
            raise named("entity_too_large")
        if size == 0:
            raise named("file_must_be_non_empty")
        if piece.kind == "photo" and size > LARGEST_PHOTO:
            raise named("photo_is_too_big", size=size)
        return self._keep(bot, piece, upload.content, upload.name, _content_type(piece.kind, upload.name))

    def _fetched(self, bot: Bot, piece: RequestedMedia, url: str) -> TelegramFile:
        page = self._web.fetch(url, piece.kind)
        name = PurePosixPath(urlsplit(url).path).name or None
        return self._keep(bot, piece, page.body, name, page.content_type)

    def _keep(
        self, bot: Bot, piece: RequestedMedia, content: bytes, name: str | None, content_type: str
    ) -> TelegramFile:
        attributes = piece.attributes
        kind = piece.kind
        if kind == "photo":
            name = None
            attributes, content_type = _checked_photo(content)
        elif kind == "sticker":
            attributes, content_type = _checked_sticker(content, name or "")
            attributes, name = attributes | piece.attributes, None
        elif kind == "voice":
            name = None
        elif piece.detects_type and (seen := picture(content)) and seen.content_type == "image/gif":
            kind, content_type = "animation", seen.content_type
            attributes = {"width": seen.width, "height": seen.height, "duration": 0}
        file = TelegramFile(
            kind=kind,
            sha256=self._files.store(content),
            size=len(content),
            content_type=content_type,
            name=name,
            attributes=attributes,
        )
        return self._files.keep(bot, file)


def _checked_photo(content: bytes) -> tuple[dict[str, int], str]:
    """The bytes are stored unchanged; Telegram would convert them to JPEG in several sizes."""
    seen = picture(content)
    if seen is None:
        raise RefusedInside("IMAGE_PROCESS_FAILED")
    shorter, longer = sorted((seen.width, seen.height))
    if shorter == 0 or seen.width + seen.height > LONGEST_SIDES or longer > shorter * STEEPEST:
        raise RefusedInside("PHOTO_INVALID_DIMENSIONS")
    return {"width": seen.width, "height": seen.height}, seen.content_type


def _checked_sticker(content: bytes, name: str) -> tuple[dict[str, Any], str]:
    moving = next((kind for suffix, kind in _MOVING_STICKERS.items() if name.endswith(suffix)), None)
    seen = picture(content)
    if seen is None and moving is None:
        raise RefusedInside("IMAGE_PROCESS_FAILED")
    width, height = (seen.width, seen.height) if seen else (STICKER_SIDE, STICKER_SIDE)
    looks = {"is_animated": moving == _MOVING_STICKERS[".tgs"], "is_video": moving == _MOVING_STICKERS[".webm"]}
    content_type = moving or (seen.content_type if seen else "")
    return {"type": "regular", "width": width, "height": height} | looks, content_type


def _content_type(kind: MediaKind, name: str) -> str:
    """Guessed from the file name, if that fits the kind; documents may have any type."""
    guessed = mimetypes.guess_type(name)[0] or "application/octet-stream"
    usual = _FAMILY.get(kind)
    if usual is None or guessed.startswith(usual.partition("/")[0]) or (kind, guessed) == ("animation", "image/gif"):
        return guessed
    return usual
