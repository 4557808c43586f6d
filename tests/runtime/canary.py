"""A token that must turn up nowhere: not in a log line, not in a span, not in an error."""

CANARY = "123456789:AAF0canary_canary-canary_canary0123"
