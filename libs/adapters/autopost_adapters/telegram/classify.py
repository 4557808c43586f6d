"""Rules for the errors of Telegram. A 400 often concerns the channel, so the description decides.

A code in capitals comes from Telegram's core servers, as 400 or as 403.
"""

from autopost_contracts.outcomes import Category, Scope

from autopost_adapters.classify import Rule

P, T = Category.PERMANENT, Category.TRANSIENT
CHANNEL, DELIVERY, PLATFORM = Scope.CHANNEL, Scope.DELIVERY, Scope.PLATFORM

_CHAT = (
    Rule(400, "upgraded to a supergroup", T, DELIVERY, "chat_migrated"),
    Rule(None, "chat not found|chat_id is empty|(PEER|CHAT)_ID_INVALID|CHANNEL_INVALID", P, CHANNEL, "chat_not_found"),
    Rule(None, "need administrator rights|not enough rights|have no (write access|rights)", P, CHANNEL, "no_rights"),
    Rule(None, r"CHAT_(\w+_)?(FORBIDDEN|RESTRICTED)|CHAT_ADMIN_REQUIRED", P, CHANNEL, "no_rights"),
    Rule(None, "CHANNEL_PRIVATE|USER_BANNED_IN_CHANNEL", P, CHANNEL, "no_rights"),
    Rule(None, "message thread not found|TOPIC_CLOSED|TOPIC_DELETED", P, CHANNEL, "thread_not_found"),
    Rule(403, "kicked", P, CHANNEL, "bot_kicked"),
    Rule(403, "not a member", P, CHANNEL, "not_a_member"),
    Rule(403, "blocked", P, CHANNEL, "bot_blocked"),
    Rule(403, "deactivated", P, CHANNEL, "user_deactivated"),
    Rule(403, "chat was deleted", P, CHANNEL, "chat_deleted"),
    Rule(403, "initiate conversation", P, CHANNEL, "not_started"),
)
_TEXT = (
    Rule(400, "BUTTON_|reply (keyboard )?markup (is|JSON)|inline keyboard", P, DELIVERY, "buttons_invalid"),
    Rule(
        400,
        "(message|text|caption) is too long|MESSAGE_TOO_LONG|CAPTION_TOO_LONG",
        P,
        DELIVERY,
        "message_too_long",
    ),
    Rule(400, "text is empty|text must be non-empty|MESSAGE_EMPTY", P, DELIVERY, "message_empty"),
    Rule(400, "can't parse entities|unsupported parse_mode|ENTITY_", P, DELIVERY, "markup_invalid"),
)
_MEDIA = (
    Rule(400, "wrong (remote )?file identifier|wrong file_id|invalid file_id", T, DELIVERY, "media_expired"),
    Rule(400, "FILE_REFERENCE_|FILE_ID_INVALID|can't use file of type", T, DELIVERY, "media_expired"),
    # names the item, whatever is wrong with it: the whole album was refused, and not because of a file id
    Rule(400, r"failed to send message #\d", P, DELIVERY, "album_refused"),
    Rule(400, "HTTP URL|web page content|WEBPAGE_|EXTERNAL_URL_INVALID", P, DELIVERY, "media_url_refused"),
    Rule(400, "PHOTO_INVALID_DIMENSIONS", P, DELIVERY, "media_dimensions"),
    Rule(400, "IMAGE_PROCESS_FAILED|PHOTO_|VIDEO_|MEDIA_INVALID|MEDIA_EMPTY", P, DELIVERY, "media_invalid"),
    Rule(400, "too big", P, DELIVERY, "media_too_large"),
    Rule(413, "", P, DELIVERY, "media_too_large"),
    Rule(400, "must be non-empty|there is no \\w+ in the request|file_id not specified", P, DELIVERY, "media_empty"),
    Rule(400, "can't be mixed|album|there are no messages|group send failed", P, DELIVERY, "album_invalid"),
    Rule(400, "show_caption_above_media|media JSON|InputMedia|MEDIA_GROUP", P, DELIVERY, "album_invalid"),
)
RULES = (
    *_CHAT,
    *_TEXT,
    *_MEDIA,
    Rule(400, "", P, DELIVERY, "bad_request"),
    Rule(404, "method not found", P, PLATFORM, "method_not_found"),
    Rule(404, "", P, CHANNEL, "unauthorized"),  # the response to an invalid token
    Rule(409, "", T, PLATFORM, "conflict"),
    Rule(421, "", P, PLATFORM, "token_unallowed"),
)
