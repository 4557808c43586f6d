"""The objects among the parameters. Every field is optional here: the methods ask for what they need."""

from typing import Any

import msgspec


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    pass


class PreviewOptions(Strict):
    is_disabled: bool = False
    url: str = ""
    prefer_small_media: bool = False
    prefer_large_media: bool = False
    show_above_text: bool = False


class GivenEntity(Strict):
    type: str = ""
    offset: int = 0
    length: int = 0
    url: str = ""
    user: dict[str, Any] | None = None
    language: str = ""
    custom_emoji_id: str = ""
    unix_time: int = 0
    date_time_format: str = ""


class ReplyParameters(Strict):
    message_id: int = 0
    chat_id: int | str = 0
    allow_sending_without_reply: bool = False
    quote: str = ""
    quote_parse_mode: str = ""
    quote_entities: list[GivenEntity] = []
    quote_position: int = 0
    checklist_task_id: int = 0
    poll_option_id: str = ""


class WebApp(Strict):
    url: str = ""


class CopyText(Strict):
    text: str = ""


class LoginUrl(Strict):
    url: str = ""
    forward_text: str = ""
    bot_username: str = ""
    request_write_access: bool = False


class ChosenChat(Strict):
    query: str = ""
    allow_user_chats: bool = False
    allow_bot_chats: bool = False
    allow_group_chats: bool = False
    allow_channel_chats: bool = False


class InlineButton(Strict):
    text: str = ""
    icon_custom_emoji_id: str = ""
    style: str = ""
    url: str = ""
    callback_data: str = ""
    web_app: WebApp | None = None
    login_url: LoginUrl | None = None
    switch_inline_query: str = ""
    switch_inline_query_current_chat: str = ""
    switch_inline_query_chosen_chat: ChosenChat | None = None
    copy_text: CopyText | None = None
    callback_game: dict[str, Any] | None = None
    pay: bool = False


class ReplyMarkup(Strict):
    """An inline keyboard, a keyboard, its removal, or a forced reply."""

    inline_keyboard: list[list[InlineButton]] = []
    keyboard: list[list[Any]] = []
    is_persistent: bool = False
    resize_keyboard: bool = False
    one_time_keyboard: bool = False
    input_field_placeholder: str = ""
    selective: bool = False
    remove_keyboard: bool = False
    force_reply: bool = False


class InputMedia(Strict):
    """Of any type: a field of another type is ignored by the server and harmless."""

    type: str = ""
    media: str = ""
    caption: str = ""
    parse_mode: str = ""
    caption_entities: list[GivenEntity] = []
    show_caption_above_media: bool = False
    has_spoiler: bool = False
    thumbnail: str = ""
    cover: str = ""
    start_timestamp: int = 0
    width: int = 0
    height: int = 0
    duration: int = 0
    supports_streaming: bool = False
    disable_content_type_detection: bool = False
    performer: str = ""
    title: str = ""


STRUCTURES: dict[str, Any] = {
    "any": Any,
    "preview": PreviewOptions,
    "entities": list[GivenEntity],
    "reply": ReplyParameters,
    "markup": ReplyMarkup,
    "media": InputMedia,
    "album": list[InputMedia],
    "names": list[str],
}
