"""The errors of the MAX API: status, code and message, shared by the methods and fault scripts.

MAX publishes no list. Messages that were never observed are marked; a client must not depend on them.
"""

from autopost_simulator import reply
from autopost_simulator.reply import Reply

CATALOGUE: dict[str, tuple[int, str, str]] = {
    "verify_token": (401, "verify.token", "Invalid access_token"),
    "chat_denied": (403, "chat.denied", "Key: error.dialog.suspended, args: [{id},]."),
    "forwarding_prohibited": (403, "chat.denied", "Forwarding messages from this chat or channel is prohibited"),
    "no_write_right": (403, "chat.denied", "Key: error.chat.write.denied, args: [{id},]."),  # words not observed
    "chat_not_found": (404, "chat.not.found", "Chat {id} not found"),
    "user_chat_not_found": (404, "chat.not.found", "Chat with user {id} not found"),
    "dialog_not_found": (404, "dialog.not.found", "error.dialog.notfound"),
    "message_not_found": (404, "message.not.found", "Message {id} not found"),  # words not observed
    "not_found": (404, "not.found", "Path not found"),  # words not observed
    "method_not_allowed": (405, "method.not.allowed", "Method not allowed"),  # words not observed
    "attachment_not_ready": (400, "attachment.not.ready", "Key: errors.process.attachment.file.not.processed"),
    "text_too_long": (400, "proto.payload", "text: size must be between 0 and 4000"),
    "missing_token": (400, "proto.payload", "Missing `token` in video attachment"),
    "no_photos": (400, "proto.payload", "No `photos`, `url` or `token` provided. Check payload."),
    "movie_not_owner": (400, "proto.payload", "Key: errors.process.attachment.movie.not.owner"),
    "payload": (400, "proto.payload", "{reason}"),
    "web_app_null": (400, "proto.payload", "Field 'webApp' cannot be null"),
    "media_not_ready": (400, "attachment.not.ready", "Key: errors.process.attachment.{kind}.not.processed"),
    "media_not_supported": (400, "proto.payload", "errors.process.attachment.{kind}.not.supported"),
    "media_not_owner": (400, "proto.payload", "Key: errors.process.attachment.{kind}.not.owner"),  # words not observed
    "token_unknown": (400, "proto.payload", "Key: errors.process.attachment.{kind}.not.found"),  # words not observed
    "extension_forbidden": (415, "", "File extension is forbidden"),
    "upload_unknown": (404, "", "Upload link not found"),  # words not observed
    "upload_used": (400, "", "Upload link was used before"),  # words not observed
    "upload_too_large": (413, "", "The {kind} is too large"),  # words not observed
    "upload_pieces_missing": (400, "", "Too much of the file came before its beginning"),  # words not observed
    "webhook_is_set": (405, "method.not.allowed", "Updates go to the webhook"),  # words not observed
    "internal_error": (500, "internal.error", "Internal error 0a1b2c3d"),
    "service_unavailable": (503, "service.unavailable", ""),
    "too_many_requests": (429, "too.many.requests", ""),
}

_EXAMPLES = {"id": "1", "reason": "Invalid payload", "kind": "video"}


class MaxError(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message

    def reply(self, retry_after: int | None = None) -> Reply:
        error = ": ".join(filter(None, (self.code, self.message)))
        return reply.refused(self.status, {"code": self.code, "message": self.message}, error, retry_after)


class MaxRateLimited(MaxError):  # noqa: N818  named like the answer of the provider
    """Without Retry-After: MAX has never been observed to send one."""

    def __init__(self) -> None:
        super().__init__(*CATALOGUE["too_many_requests"])


def named(name: str, **words: object) -> MaxError:
    status, code, message = CATALOGUE[name]
    return MaxError(status, code, message.format(**(_EXAMPLES | words)))


def payload(reason: str) -> MaxError:
    return named("payload", reason=reason)


def by_status(status: int, description: str | None) -> MaxError:
    for known, code, message in CATALOGUE.values():
        if known == status and "{" not in message:
            return MaxError(status, code, message if description is None else description)
    phrase = reply.phrase(status)
    return MaxError(status, phrase.lower().replace(" ", "."), phrase if description is None else description)
