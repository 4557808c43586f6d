"""Rules for the errors of MAX. There is no official list of codes: these are documented or were observed.

The upload hosts have their own table, because their errors never concern the channel.
"""

from autopost_contracts.outcomes import Category, Scope

from autopost_adapters.classify import Rule

P, T = Category.PERMANENT, Category.TRANSIENT
CHANNEL, DELIVERY, PLATFORM = Scope.CHANNEL, Scope.DELIVERY, Scope.PLATFORM

RULES = (
    Rule(None, r"attachment\.not\.ready|not\.processed", T, DELIVERY, "attachment.not.ready"),
    Rule(None, r"verify\.token", P, CHANNEL, "unauthorized"),
    Rule(403, "Forwarding messages", P, DELIVERY, "forward_forbidden"),
    Rule(403, r"chat\.denied", P, CHANNEL, "chat_denied"),
    Rule(None, r"(chat|dialog)\.not\.?found", P, CHANNEL, "chat_not_found"),
    Rule(None, r"message\.not\.?found", P, DELIVERY, "message_not_found"),
    Rule(400, r"movie\.not\.owner", T, PLATFORM, "media_not_owned"),
    Rule(400, r"attachment\.\w+\.not\.(found|owner)", T, DELIVERY, "media_expired"),
    Rule(400, r"attachment\.\w+\.not\.supported", P, DELIVERY, "media_unsupported"),
    Rule(400, "text: size must be between 0", P, DELIVERY, "message_too_long"),
    Rule(400, "must have text or attachments", P, DELIVERY, "message_empty"),
    Rule(400, "button|webApp|text: size|url: size", P, DELIVERY, "buttons_invalid"),
    Rule(400, "Missing `token`|No `photos`|attachment|url: must be", P, DELIVERY, "attachments_invalid"),
    Rule(400, "", P, DELIVERY, "bad_request"),
    Rule(404, r"^not\.found", P, PLATFORM, "method_not_found"),
    Rule(405, "", P, PLATFORM, "method_not_allowed"),
    Rule(413, "", P, DELIVERY, "media_too_large"),
    Rule(415, "", P, DELIVERY, "media_unsupported"),
)

UPLOAD_RULES = (
    Rule(413, "", P, DELIVERY, "media_too_large"),
    Rule(415, "", P, DELIVERY, "media_unsupported"),
    Rule(None, "extension is forbidden", P, DELIVERY, "media_unsupported"),
    Rule(400, "", P, DELIVERY, "upload_refused"),
    Rule(403, "", P, DELIVERY, "upload_refused"),
    Rule(429, "", T, PLATFORM, "rate_limited"),
    Rule(None, "", T, DELIVERY, "upload_refused"),
)
"""A rejected upload is rejected again. An upload URL may have expired (404); the next attempt gets a new one."""
