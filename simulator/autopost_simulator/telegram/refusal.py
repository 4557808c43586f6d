"""The errors of the Bot API: code and wording, once for the methods and for fault scripts."""

from autopost_simulator import reply
from autopost_simulator.reply import Reply

CATALOGUE: dict[str, tuple[int, str]] = {
    "not_found": (404, "Not Found"),
    "method_not_found": (404, "Not Found: method not found"),
    "unauthorized": (401, "Unauthorized"),
    "chat_id_is_empty": (400, "Bad Request: chat_id is empty"),
    "chat_not_found": (400, "Bad Request: chat not found"),
    "bot_was_kicked": (403, "Forbidden: bot was kicked from the {chat} chat"),
    "bot_is_not_a_member": (403, "Forbidden: bot is not a member of the {chat} chat"),
    "bot_was_blocked": (403, "Forbidden: bot was blocked by the user"),
    "user_is_deactivated": (403, "Forbidden: user is deactivated"),
    "need_administrator_rights": (400, "Bad Request: need administrator rights in the channel chat"),
    "not_enough_rights": (400, "Bad Request: not enough rights to send text messages to the chat"),
    "have_no_write_access": (400, "Bad Request: have no write access to the chat"),
    "chat_write_forbidden": (400, "Bad Request: CHAT_WRITE_FORBIDDEN"),
    "message_thread_not_found": (400, "Bad Request: message thread not found"),
    "message_text_is_empty": (400, "Bad Request: message text is empty"),
    "message_is_too_long": (400, "Bad Request: message is too long"),
    "text_is_too_long": (400, "Bad Request: text is too long"),
    "message_caption_is_too_long": (400, "Bad Request: message caption is too long"),
    "unsupported_parse_mode": (400, "Bad Request: unsupported parse_mode"),
    "cant_parse_entities": (400, "Bad Request: can't parse entities: {reason}"),
    "cant_parse_json": (400, "Bad Request: can't parse request body as JSON"),
    "cant_parse_reply_markup": (400, "Bad Request: can't parse reply keyboard markup JSON object"),
    "cant_parse_button": (400, "Bad Request: can't parse inline keyboard button: {reason}"),
    "button_url_invalid": (400, "Bad Request: BUTTON_URL_INVALID"),
    "button_data_invalid": (400, "Bad Request: BUTTON_DATA_INVALID"),
    "message_to_be_replied_not_found": (400, "Bad Request: message to be replied not found"),
    "message_to_delete_not_found": (400, "Bad Request: message to delete not found"),
    "message_cant_be_deleted": (400, "Bad Request: message can't be deleted"),
    "message_identifier_is_not_specified": (400, "Bad Request: message identifier is not specified"),
    "wrong_file_identifier": (400, "Bad Request: wrong file identifier/HTTP URL specified"),
    "failed_to_get_url_content": (400, "Bad Request: failed to get HTTP URL content"),
    "wrong_type_of_web_page": (400, "Bad Request: wrong type of the web page content"),
    "image_process_failed": (400, "Bad Request: IMAGE_PROCESS_FAILED"),
    "entity_too_large": (413, "Request Entity Too Large"),
    "internal_server_error": (500, "Internal Server Error"),
    "bad_gateway": (502, "Bad Gateway"),
    "gateway_timeout": (504, "Gateway Timeout"),
}

_EXAMPLES = {"chat": "channel", "reason": 'Unsupported start tag "p" at byte offset 0'}


class Refused(Exception):  # noqa: N818  an answer the provider gives, not an error of ours
    def __init__(self, code: int, description: str) -> None:
        super().__init__(description)
        self.code = code
        self.description = description

    def reply(self, retry_after: int | None = None) -> Reply:
        body: dict[str, object] = {"ok": False, "error_code": self.code, "description": self.description}
        if retry_after is not None:
            body["parameters"] = {"retry_after": retry_after}
        return reply.refused(self.code, body, self.description, retry_after)


class RateLimited(Refused):
    def __init__(self, retry_after: int) -> None:
        super().__init__(429, f"Too Many Requests: retry after {retry_after}")
        self.retry_after = retry_after


def named(name: str, **words: str) -> Refused:
    code, wording = CATALOGUE[name]
    return Refused(code, wording.format(**(_EXAMPLES | words)) if "{" in wording else wording)


def by_status(status: int, description: str | None, retry_after: int | None) -> Refused:
    if description is not None:
        return Refused(status, description)
    if status == 429 and retry_after is not None:
        return RateLimited(retry_after)
    return Refused(status, reply.phrase(status))
