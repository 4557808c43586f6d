"""Attachments of a new message: allowed combinations, and their form in the message.

Images and videos may be combined; a file, an audio, a contact or a sticker is alone except for a keyboard.
MAX does not document whether the keyboard counts towards the limit; here it does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import msgspec

from autopost_simulator.max.keyboard import keyboard
from autopost_simulator.max.media import Kind
from autopost_simulator.max.refusal import named, payload
from autopost_simulator.max.upload.files import MaxFile, MaxFiles
from autopost_simulator.max.upload.uploads import MaxUploads
from autopost_simulator.world import Bot

ATTACHMENTS = 12

Attachment = dict[str, Any]

_ALONE = ("file", "audio", "contact", "sticker")
_MEDIA: tuple[Kind, ...] = ("video", "audio", "file")


class _Photo(msgspec.Struct, frozen=True):
    token: str


@dataclass(slots=True, frozen=True)
class Attached:
    """``shown`` in the given order, and the keyboard, if any, as a list of one."""

    shown: list[Attachment]
    keyboard: list[Attachment]


class Attaching:
    def __init__(self, files: MaxFiles, uploads: MaxUploads) -> None:
        self._files = files
        self._uploads = uploads
        self._others: dict[object, Callable[[Attachment], Attachment]] = {
            "sticker": _sticker,
            "contact": _contact,
            "share": _share,
            "location": _location,
        }

    def attach(self, given: list[Attachment], bot: Bot, origin: str) -> Attached:
        keyboards = [keyboard(one) for one in given if one.get("type") == "inline_keyboard"]
        others = [one for one in given if one.get("type") != "inline_keyboard"]
        shown = [shape for one in others for shape in self._one(one, bot, origin)]
        if len(shown) + len(keyboards) > ATTACHMENTS:
            raise payload(f"attachments: size must be between 0 and {ATTACHMENTS}")
        if len(keyboards) > 1:
            raise payload("attachments: only one inline_keyboard is allowed")
        for one in shown if len(shown) > 1 else []:
            if one["type"] in _ALONE:
                raise payload(f"attachments: `{one['type']}` must be the only attachment in message")
        return Attached(shown, keyboards)

    def show(self, file: MaxFile, origin: str) -> Attachment:
        url = file.url or f"{origin}/max-files/{file.id}"
        if file.kind == "image":
            return {"type": "image", "payload": {"photo_id": file.id, "token": file.token, "url": url}}
        shape: Attachment = {"type": file.kind, "payload": {"url": url, "token": file.token}}
        return shape | ({"filename": file.name, "size": file.size} if file.kind == "file" else {})

    def _one(self, given: Attachment, bot: Bot, origin: str) -> list[Attachment]:
        kind = given.get("type")
        if kind == "image":
            return [self.show(file, origin) for file in self._pictures(_payload(given), bot)]
        if kind in _MEDIA:
            return [self.show(self._media(kind, _payload(given), bot), origin)]
        if kind in self._others:
            return [self._others[kind](given)]
        raise payload(f"Unknown attachment type `{kind}`")

    def _media(self, kind: Kind, given: Attachment, bot: Bot) -> MaxFile:
        """The error text says video for every kind, as in MAX."""
        token = given.get("token")
        if not isinstance(token, str) or not token:
            raise named("missing_token")
        if self._uploads.awaits(kind, token):
            raise named("media_not_ready", kind=kind)
        return self._files.usable(kind, token, bot)

    def _pictures(self, given: Attachment, bot: Bot) -> list[MaxFile]:
        ways = [way for way in ("photos", "url", "token") if given.get(way)]
        if not ways:
            raise named("no_photos")
        if len(ways) > 1:
            raise payload("`photos`, `url` and `token` exclude each other")
        if given.get("url"):
            return [self._by_address(given["url"], bot)]
        return [self._files.usable("image", token, bot) for token in _picture_tokens(given)]

    def _by_address(self, url: object, bot: Bot) -> MaxFile:
        if not isinstance(url, str) or urlsplit(url).scheme not in ("http", "https"):
            raise payload("url: must be an address of a picture")
        return self._files.add("image", bot, urlsplit(url).path.rpartition("/")[2], url=url)


def _payload(given: Attachment) -> Attachment:
    found = given.get("payload")
    return found if isinstance(found, dict) else {}


def _picture_tokens(given: Attachment) -> list[str]:
    if not given.get("photos"):
        return [str(given["token"])]
    try:
        return [photo.token for photo in msgspec.convert(given["photos"], dict[str, _Photo]).values()]
    except msgspec.ValidationError:
        raise named("no_photos") from None


def _sticker(given: Attachment) -> Attachment:
    code = _payload(given).get("code")
    if not isinstance(code, str) or not code:
        raise payload("Missing `code` in sticker attachment")
    url = f"https://i.oneme.ru/getSmile?smileId={code}"
    return {"type": "sticker", "payload": {"url": url, "code": code}, "width": 128, "height": 128}


def _contact(given: Attachment) -> Attachment:
    found = _payload(given)
    if not any(found.get(name) for name in ("name", "contact_id", "vcf_info", "vcf_phone")):
        raise payload("Missing `name` in contact attachment")
    card = found.get("vcf_info") or _card(found)
    return {"type": "contact", "payload": {"vcf_info": card}}


def _card(found: Attachment) -> str:
    phone = f"TEL;TYPE=cell:{found['vcf_phone']}\r\n" if found.get("vcf_phone") else ""
    return f"BEGIN:VCARD\r\nVERSION:3.0\r\n{phone}FN:{found.get('name') or ''}\r\nEND:VCARD\r\n"


def _share(given: Attachment) -> Attachment:
    found = {name: value for name, value in _payload(given).items() if name in ("url", "token") and value}
    if not found:
        raise payload("Missing `url` in share attachment")
    return {"type": "share", "payload": found}


def _location(given: Attachment) -> Attachment:
    place = {name: given.get(name) for name in ("latitude", "longitude")}
    if not all(isinstance(value, int | float) for value in place.values()):
        raise payload("Missing `latitude` or `longitude` in location attachment")
    return {"type": "location"} | place
