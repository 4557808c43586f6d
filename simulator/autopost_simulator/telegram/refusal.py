"""The errors of the Bot API: code and description, shared by the methods and fault scripts."""

from dataclasses import dataclass

from autopost_simulator import reply
from autopost_simulator.reply import Reply

CATALOGUE: dict[str, tuple[int, str]] = {
    "not_found": (404, "Not Found"),
    "method_not_found": (404, "Not Found: method not found"),
    "unauthorized": (401, "Unauthorized"),
    "unallowed_token": (421, "Misdirected Request: unallowed token specified"),
    "chat_id_is_empty": (400, "Bad Request: chat_id is empty"),
    "chat_not_found": (400, "Bad Request: chat not found"),
    "private_chat_not_found": (400, "Bad Request: private chat not found"),
    "bot_was_kicked": (403, "Forbidden: bot was kicked from the {chat} chat"),
    "bot_is_not_a_member": (403, "Forbidden: bot is not a member of the {chat} chat"),
    "bot_was_blocked": (403, "Forbidden: bot was blocked by the user"),
    "cant_initiate_conversation": (403, "Forbidden: bot can't initiate conversation with a user"),
    "user_is_deactivated": (403, "Forbidden: user is deactivated"),
    "group_was_deleted": (403, "Forbidden: the group chat was deleted"),
    "need_administrator_rights": (400, "Bad Request: need administrator rights in the channel chat"),
    "not_enough_rights": (400, "Bad Request: not enough rights to send {content} to the chat"),
    "have_no_write_access": (400, "Bad Request: have no write access to the chat"),
    "chat_write_forbidden": (400, "Bad Request: CHAT_WRITE_FORBIDDEN"),
    "message_thread_not_found": (400, "Bad Request: message thread not found"),
    "topic_closed": (400, "Bad Request: TOPIC_CLOSED"),
    "invalid_user_id": (400, "Bad Request: invalid user_id specified"),
    "participant_id_invalid": (400, "Bad Request: PARTICIPANT_ID_INVALID"),
    "message_text_is_empty": (400, "Bad Request: message text is empty"),
    "message_is_too_long": (400, "Bad Request: message is too long"),
    "edited_message_is_too_long": (400, "Bad Request: MESSAGE_TOO_LONG"),
    "text_is_too_long": (400, "Bad Request: text is too long"),
    "message_caption_is_too_long": (400, "Bad Request: message caption is too long"),
    "media_caption_too_long": (400, "Bad Request: MEDIA_CAPTION_TOO_LONG"),
    "unsupported_parse_mode": (400, "Bad Request: unsupported parse_mode"),
    "cant_parse_entities": (400, "Bad Request: can't parse entities: {reason}"),
    "cant_parse_message_entity": (400, "Bad Request: can't parse MessageEntity: {reason}"),
    "cant_parse_json": (400, "Bad Request: can't parse request body as JSON"),
    "boundary_not_found": (400, "Bad Request: boundary not found"),
    "cant_parse_media_json": (400, "Bad Request: can't parse media JSON object"),
    "expected_an_array_of_media": (400, "Bad Request: expected an Array of InputMedia"),
    "cant_parse_input_media": (400, "Bad Request: can't parse InputMedia: {reason}"),
    "cant_parse_reply_markup": (400, "Bad Request: can't parse reply keyboard markup JSON object"),
    "cant_parse_button": (400, "Bad Request: can't parse inline keyboard button: {reason}"),
    "object_expected_as_reply_markup": (400, "Bad Request: object expected as reply markup"),
    "keyboard_must_be_an_array": (400, 'Bad Request: field "inline_keyboard" must be of type Array'),
    "keyboard_must_be_arrays": (
        400,
        'Bad Request: field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays',
    ),
    "button_text_must_be_non_empty": (400, "Bad Request: inline keyboard button text must be non-empty"),
    "button_url_is_wrong": (400, "Bad Request: inline keyboard button {kind}URL '{url}' is invalid: {reason}"),
    "user_link_in_button": (400, "Bad Request: link to a user can't be used in {kind} URL buttons"),
    "cant_use_button_in_channel": (
        400,
        "Bad Request: can't use {button} button in a channel chat, because users will not be able to use the button "
        "without knowing bot's username",
    ),
    "button_type_invalid": (400, "Bad Request: BUTTON_TYPE_INVALID"),
    "button_copy_text_invalid": (400, "Bad Request: BUTTON_COPY_TEXT_INVALID"),
    "button_url_invalid": (400, "Bad Request: BUTTON_URL_INVALID"),
    "button_data_invalid": (400, "Bad Request: BUTTON_DATA_INVALID"),
    "reply_markup_is_too_long": (400, "Bad Request: reply markup is too long"),
    "message_to_be_replied_not_found": (400, "Bad Request: message to be replied not found"),
    "message_to_edit_not_found": (400, "Bad Request: message to edit not found"),
    "message_cant_be_edited": (400, "Bad Request: message can't be edited"),
    "no_text_to_edit": (400, "Bad Request: there is no text in the message to edit"),
    "no_caption_to_edit": (400, "Bad Request: there is no caption in the message to edit"),
    "message_is_not_modified": (
        400,
        "Bad Request: message is not modified: specified new message content and reply markup "
        "are exactly the same as a current content and reply markup of the message",
    ),
    "message_to_delete_not_found": (400, "Bad Request: message to delete not found"),
    "message_cant_be_deleted": (400, "Bad Request: message can't be deleted"),
    "message_identifier_is_not_specified": (400, "Bad Request: message identifier is not specified"),
    "parameter_is_required": (400, 'Bad Request: parameter "{parameter}" is required'),
    "there_is_no_file": (400, "Bad Request: there is no {kind} in the request"),
    "file_must_be_non_empty": (400, "Bad Request: file must be non-empty"),
    "photo_is_too_big": (
        400,
        "Bad Request: file of size {size} bytes is too big for a photo; the maximum size is 10485760 bytes",
    ),
    "wrong_file_identifier": (400, "Bad Request: wrong file identifier/HTTP URL specified"),
    "wrong_remote_file_identifier": (400, "Bad Request: wrong remote file identifier specified: {reason}"),
    "cant_use_file_of_type": (400, "Bad Request: can't use file of type {type} as {wanted}"),
    "file_id_not_specified": (400, "Bad Request: file_id not specified"),
    "invalid_file_id": (400, "Bad Request: invalid file_id"),
    "file_temporarily_unavailable": (400, "Bad Request: wrong file_id or the file is temporarily unavailable"),
    "file_is_too_big": (400, "Bad Request: file is too big"),
    "invalid_file_url": (400, "Bad Request: invalid file HTTP URL specified: {reason}"),
    "wrong_url": (400, "Bad Request: wrong HTTP URL specified"),
    "failed_to_get_url_content": (400, "Bad Request: failed to get HTTP URL content"),
    "wrong_type_of_web_page": (400, "Bad Request: wrong type of the web page content"),
    "image_process_failed": (400, "Bad Request: IMAGE_PROCESS_FAILED"),
    "photo_invalid_dimensions": (400, "Bad Request: PHOTO_INVALID_DIMENSIONS"),
    "there_are_no_messages": (400, "Bad Request: there are no messages to send"),
    "too_many_messages": (400, "Bad Request: too many messages to send as an album"),
    "cant_be_mixed": (400, "Bad Request: {kind} can't be mixed with other media types"),
    "cant_use_media_in_album": (400, "Bad Request: can't use the media of the specified type in the album"),
    "captions_placed_differently": (
        400,
        "Bad Request: parameter show_caption_above_media must be the same for all messages",
    ),
    "failed_to_send_item": (400, 'Bad Request: failed to send message #{number} with the error message "{code}"'),
    "group_send_failed": (400, "Bad Request: group send failed"),
    "query_is_too_old": (
        400,
        "Bad Request: query is too old and response timeout expired or query ID is invalid",
    ),
    "terminated_by_other_get_updates": (
        409,
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
    ),
    "webhook_is_active": (
        409,
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
    ),
    "entity_too_large": (413, "Request Entity Too Large"),
    "internal_server_error": (500, "Internal Server Error"),
    "bad_gateway": (502, "Bad Gateway"),
    "gateway_timeout": (504, "Gateway Timeout"),
}

_EXAMPLES = {
    "button": "switch_inline_query",
    "chat": "channel",
    "code": "WEBPAGE_MEDIA_EMPTY",
    "content": "text messages",
    "kind": "document",
    "number": "1",
    "parameter": "media",
    "reason": 'Unsupported start tag "p" at byte offset 0',
    "size": "10485761",
    "type": "Document",
    "url": "http://localhost/",
    "wanted": "Photo",
}

_TOLD_AS = {
    "WEBPAGE_CURL_FAILED": "failed_to_get_url_content",
    "WEBPAGE_MEDIA_EMPTY": "wrong_type_of_web_page",
    "EXTERNAL_URL_INVALID": "wrong_url",
    "IMAGE_PROCESS_FAILED": "image_process_failed",
    "PHOTO_INVALID_DIMENSIONS": "photo_invalid_dimensions",
}


class TelegramError(Exception):
    def __init__(self, code: int, description: str, parameters: dict[str, int] | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters or {}

    def reply(self, retry_after: int | None = None) -> Reply:
        body: dict[str, object] = {"ok": False, "error_code": self.code, "description": self.description}
        parameters = self.parameters if retry_after is None else {"retry_after": retry_after}
        if parameters:
            body["parameters"] = parameters
        return reply.refused(self.code, body, self.description, retry_after)


class TelegramRateLimited(TelegramError):  # noqa: N818  named like the answer of the provider
    def __init__(self, retry_after: int) -> None:
        super().__init__(429, f"Too Many Requests: retry after {retry_after}")
        self.retry_after = retry_after


class Upgraded(TelegramError):  # noqa: N818  named like the answer of the provider
    """The only error with another chat id to use."""

    def __init__(self, migrated_to: int) -> None:
        words = "Bad Request: group chat was upgraded to a supergroup chat"
        super().__init__(400, words, {"migrate_to_chat_id": migrated_to})


@dataclass(slots=True, frozen=True)
class Described:
    """A result that comes with a description."""

    result: object
    description: str


class RefusedInside(TelegramError):  # noqa: N818  named like the answer of the provider
    """Refused by the servers behind the Bot API, which translates their code into a text, except in an album."""

    def __init__(self, raw: str) -> None:
        super().__init__(*CATALOGUE[_TOLD_AS[raw]])
        self.raw = raw


def named(name: str, **words: object) -> TelegramError:
    code, wording = CATALOGUE[name]
    return TelegramError(code, wording.format(**(_EXAMPLES | words)) if "{" in wording else wording)


def by_status(status: int, description: str | None, retry_after: int | None) -> TelegramError:
    if description is not None:
        return TelegramError(status, description)
    if status == 429 and retry_after is not None:
        return TelegramRateLimited(retry_after)
    return TelegramError(status, reply.phrase(status))
