"""The bodies of MAX with all their fields. Every field is optional here: the operations ask for what they need."""

from typing import Any

import msgspec


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    pass


class Tagged(Strict, tag_field="type"):
    pass


class CallbackButton(Tagged, tag="callback"):
    text: str = ""
    payload: str = ""
    intent: str = ""


class LinkButton(Tagged, tag="link"):
    text: str = ""
    url: str = ""


class ContactButton(Tagged, tag="request_contact"):
    text: str = ""


class LocationButton(Tagged, tag="request_geo_location"):
    text: str = ""
    quick: bool = False


class AppButton(Tagged, tag="open_app"):
    text: str = ""
    web_app: str = ""
    contact_id: int = 0
    payload: str = ""


class MessageButton(Tagged, tag="message"):
    text: str = ""


class ClipboardButton(Tagged, tag="clipboard"):
    text: str = ""
    payload: str = ""


Button = CallbackButton | LinkButton | ContactButton | LocationButton | AppButton | MessageButton | ClipboardButton


class KeyboardPayload(Strict):
    buttons: list[list[Button]] = []


class TokenPayload(Strict):
    """The platform refuses ``url`` in words of its own."""

    token: str = ""
    url: str = ""


class ImagePayload(Strict):
    url: str = ""
    token: str = ""
    photos: dict[str, TokenPayload] = {}


class ContactPayload(Strict):
    name: str = ""
    contact_id: int = 0
    vcf_info: str = ""
    vcf_phone: str = ""


class StickerPayload(Strict):
    code: str = ""


class SharePayload(Strict):
    url: str = ""
    token: str = ""


class ImageRequest(Tagged, tag="image"):
    payload: ImagePayload | None = None


class VideoRequest(Tagged, tag="video"):
    payload: TokenPayload | None = None


class AudioRequest(Tagged, tag="audio"):
    payload: TokenPayload | None = None


class FileRequest(Tagged, tag="file"):
    payload: TokenPayload | None = None


class ContactRequest(Tagged, tag="contact"):
    payload: ContactPayload | None = None


class StickerRequest(Tagged, tag="sticker"):
    payload: StickerPayload | None = None


class ShareRequest(Tagged, tag="share"):
    payload: SharePayload | None = None


class LocationRequest(Tagged, tag="location"):
    latitude: float = 0
    longitude: float = 0


class KeyboardRequest(Tagged, tag="inline_keyboard"):
    payload: KeyboardPayload | None = None


AttachmentRequest = (
    ImageRequest
    | VideoRequest
    | AudioRequest
    | FileRequest
    | ContactRequest
    | StickerRequest
    | ShareRequest
    | LocationRequest
    | KeyboardRequest
)


class LinkBody(Strict):
    type: str = ""
    mid: str = ""


class MessageBody(Strict):
    text: str = ""
    attachments: list[AttachmentRequest] = []
    link: LinkBody | None = None
    notify: bool = True
    format: str = ""


class AnswerRequest(Strict):
    message: MessageBody | None = None
    notification: str = ""


class SubscriptionRequest(Strict):
    url: str = ""
    update_types: list[str] = []
    secret: str = ""


class ActionRequest(Strict):
    action: str = ""


class PinRequest(Strict):
    message_id: str = ""
    notify: bool = True


class CommandRequest(Strict):
    name: str = ""
    description: str = ""


class ProfileRequest(Strict):
    first_name: str = ""
    last_name: str = ""
    name: str = ""
    description: str = ""
    commands: list[CommandRequest] = []
    photo: dict[str, Any] | None = None


class CommandsRequest(Strict):
    commands: list[CommandRequest] = []


class ChatRequest(Strict):
    icon: dict[str, Any] | None = None
    title: str = ""
    description: str = ""
    pin: str = ""
    notify: bool = True


class MembersRequest(Strict):
    user_ids: list[int] = []


class AdministratorRequest(Strict):
    user_id: int = 0
    permissions: list[str] = []
    alias: str = ""


class AdministratorsRequest(Strict):
    admins: list[AdministratorRequest] = []
    marker: int = 0


BODIES: dict[str, type[Strict]] = {
    "POST /messages": MessageBody,
    "PUT /messages": MessageBody,
    "POST /answers": AnswerRequest,
    "POST /subscriptions": SubscriptionRequest,
    "POST /chats/{id}/actions": ActionRequest,
    "PUT /chats/{id}/pin": PinRequest,
    "PATCH /me": ProfileRequest,
    "PATCH /me/commands": CommandsRequest,
    "PATCH /chats/{id}": ChatRequest,
    "POST /chats/{id}/members": MembersRequest,
    "POST /chats/{id}/members/admins": AdministratorsRequest,
}
