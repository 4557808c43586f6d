"""File ids: opaque to clients, valid for one bot and one kind of media.

As in Telegram, an id is base64 of bytes whose last one is the format. Whether a file has this id
is checked in ``files``.
"""

import base64
import binascii
import re
import struct
from dataclasses import dataclass
from typing import get_args

from autopost_simulator.telegram.standing import MediaKind

_KINDS: tuple[MediaKind, ...] = get_args(MediaKind)
_ALPHABET = re.compile(r"[A-Za-z0-9_-]*")
_LAYOUT = struct.Struct(">BQ15sB")
_VERSION = 4


class FileIdError(Exception):
    """The reason that follows ``wrong remote file identifier specified:``."""


@dataclass(slots=True, frozen=True)
class FileId:
    bot: int
    kind: MediaKind
    unique_id: str


def write(file_id: FileId) -> str:
    unique = base64.urlsafe_b64decode(file_id.unique_id)
    packed = _LAYOUT.pack(_KINDS.index(file_id.kind), file_id.bot, unique, _VERSION)
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def read(text: str) -> FileId:
    binary = _decoded(text)
    if len(binary) != _LAYOUT.size or binary[-1] != _VERSION or binary[0] >= len(_KINDS):
        raise FileIdError("can't unserialize it. Wrong last symbol")
    kind, bot, unique, _ = _LAYOUT.unpack(binary)
    return FileId(bot, _KINDS[kind], base64.urlsafe_b64encode(unique).decode())


def _decoded(text: str) -> bytes:
    if not _ALPHABET.fullmatch(text):
        raise FileIdError("Wrong character in the string")
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        raise FileIdError("Wrong string length") from None
