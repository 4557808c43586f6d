"""Upload URLs: ``POST /uploads`` creates one, and the upload host accepts one file at it.

For video and audio the token comes with the URL, for images and files with the answer of the host.
"""

import base64
import secrets
from dataclasses import dataclass, field
from typing import Any

from autopost_simulator.exchange import ProviderCall
from autopost_simulator.max.assembly import Assembly
from autopost_simulator.max.media import KINDS, Kind
from autopost_simulator.max.operation_call import OperationCall
from autopost_simulator.max.refusal import named, payload
from autopost_simulator.max.upload.files import MaxFile, MaxFiles, new_token
from autopost_simulator.world import Bot

LINKS_KEPT = 10_000
_TOKEN_WITH_LINK: tuple[Kind, ...] = ("video", "audio")


@dataclass(slots=True, kw_only=True)
class MaxUpload:
    id: str
    kind: Kind
    bot: Bot
    token: str | None
    arriving: Assembly = field(default_factory=Assembly)
    file: MaxFile | None = None


class MaxUploads:
    def __init__(self, files: MaxFiles) -> None:
        self._files = files
        self._by_id: dict[str, MaxUpload] = {}

    def find(self, upload_id: str) -> MaxUpload | None:
        return self._by_id.get(upload_id)

    def open(self, kind: Kind, bot: Bot) -> MaxUpload:
        token = new_token() if kind in _TOKEN_WITH_LINK else None
        upload = MaxUpload(id=secrets.token_urlsafe(24), kind=kind, bot=bot, token=token)
        self._by_id[upload.id] = upload
        if len(self._by_id) > LINKS_KEPT:
            del self._by_id[next(iter(self._by_id))]
        return upload

    def finish(self, upload: MaxUpload, name: str, content: Assembly) -> MaxFile:
        upload.file = self._files.add(
            upload.kind,
            upload.bot,
            name,
            sha256=content.sha256,
            data=content.data,
            size=content.size,
            token=upload.token,
        )
        upload.arriving = Assembly()
        return upload.file

    def awaits(self, kind: Kind, token: str) -> bool:
        """True for the token of an upload link that was not used yet."""
        return any(
            upload.token == token and upload.kind == kind and upload.file is None for upload in self._by_id.values()
        )

    def clear(self) -> None:
        self._by_id.clear()


class UploadOperations:
    def __init__(self, uploads: MaxUploads) -> None:
        self._uploads = uploads
        self.table = {"/uploads": {"POST": self.open}}

    def open(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        kind = asked.query.get("type", "")
        if kind not in KINDS:
            raise payload(f"type: `{kind}` is not one of {', '.join(KINDS)}")
        upload = self._uploads.open(kind, bot)
        link = {"url": f"{asked.origin}/max-upload/{upload.kind}/{upload.id}"}
        return link | ({"token": upload.token} if upload.token else {})


def check_unused(upload: MaxUpload | None) -> MaxUpload:
    if upload is None:
        raise named("upload_unknown")
    if upload.file is not None:
        raise named("upload_used")
    return upload


def photo_key(file: MaxFile) -> str:
    return base64.b64encode(f"photo{file.id:016x}".encode()).decode()
