"""A token that must not appear in any log line, span or error."""

CANARY = "123456789:AAF0canary_canary-canary_canary0123"
