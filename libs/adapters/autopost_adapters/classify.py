"""Classify an error response of a platform: category, scope and code, by a table of rules.

The first rule that matches decides. The HTTP status alone comes last, because a 400 may concern the post, the
channel or the whole bot.
"""

import re
from collections.abc import Sequence

import msgspec
from autopost_contracts.outcomes import Category, Failed, Scope
from autopost_runtime.config.load import Secret
from autopost_runtime.http.client import HttpAnswer, HttpError, NotSent
from autopost_runtime.secrets.redaction import beginning, mask_secret
from autopost_runtime.storage.payloads import harmless, readable
from msgspec import Struct

from autopost_adapters.answers import storable, wait_ms
from autopost_adapters.base import MediaMissing, MediaUnreadable

SNIPPET = 500
"""Characters of a response that are stored with a failure."""
READ_FOR_SNIPPET = 16_000
"""Bytes: at least four thousand characters."""
GATEWAY_TIMEOUT = 408
"""The one 4xx that is not the platform's answer: whoever stands before it waited for the request in vain."""


class Rule(Struct, frozen=True):
    status: int | None
    pattern: str
    """Searched in the platform's error code and description, ignoring case; empty matches all."""
    category: Category
    scope: Scope
    code: str

    def fits(self, status: int, text: str) -> bool:
        return self.status in (None, status) and re.search(self.pattern, text, re.IGNORECASE) is not None


FALLBACK: tuple[Rule, ...] = (
    Rule(429, "", Category.TRANSIENT, Scope.PLATFORM, "rate_limited"),
    Rule(408, "", Category.TRANSIENT, Scope.PLATFORM, "timeout"),
    Rule(401, "", Category.PERMANENT, Scope.CHANNEL, "unauthorized"),
    Rule(403, "", Category.PERMANENT, Scope.CHANNEL, "forbidden"),
    Rule(404, "", Category.PERMANENT, Scope.CHANNEL, "not_found"),
    Rule(413, "", Category.PERMANENT, Scope.DELIVERY, "too_large"),
)


def classify(
    rules: Sequence[Rule], status: int, text: str, *, retry_after_ms: int | None = None, snippet: str = ""
) -> Failed:
    """Classify an error response; the platform's text is kept as far as it can be stored.

    A 5xx is ambiguous: the message may have been accepted before the error. A 4xx was certainly refused.

    A 4xx is a definite answer, so the platform is there; a 5xx is not one.

    A redirect is transient. It is not followed, because the token and the post would go to another host.
    """
    text = storable(text)
    raw = {"status": status, "snippet": beginning(storable(snippet), SNIPPET)}
    if 300 <= status < 400:
        return Failed.transient(Scope.PLATFORM, "redirected", text, raw=raw)
    if status >= 500:
        return Failed.transient(
            Scope.PLATFORM, f"http_{status}", text, retry_after_ms=retry_after_ms, ambiguous=True, raw=raw
        )
    for rule in (*rules, *FALLBACK):
        if rule.fits(status, text):
            return Failed(
                category=rule.category,
                scope=rule.scope,
                code=rule.code,
                message=text,
                retry_after_ms=retry_after_ms,
                answered=status != GATEWAY_TIMEOUT,
                raw=raw,
            )
    unknown = Failed.permanent(Scope.DELIVERY, f"http_{status}", text, raw=raw)
    return msgspec.structs.replace(unknown, answered=True)


def wait_asked(answer: HttpAnswer) -> int | None:
    """Retry-After in milliseconds. Only seconds are read, not a date, because clocks differ."""
    return wait_ms(answer.headers.get("Retry-After", ""))


def unreachable(exc: HttpError) -> Failed:
    """No response: certainly not sent, or ambiguous. Only this delivery waits, because the platform gave no wait."""
    return Failed.transient(Scope.PLATFORM, exc.code, ambiguous=not isinstance(exc, NotSent))


def without_bytes(exc: MediaMissing | MediaUnreadable) -> Failed:
    """Certainly not sent: no platform accepts an incomplete body."""
    if isinstance(exc, MediaMissing):
        return Failed.permanent(Scope.DELIVERY, "media_missing_origin", str(exc))
    return Failed.transient(Scope.DELIVERY, "media_unreadable", str(exc))


def unreadable(answer: HttpAnswer) -> Failed:
    """A success status with an invalid body is ambiguous: the platform may have accepted the message."""
    raw = {"status": answer.status, "snippet": snippet_of(answer)}
    return Failed.transient(Scope.PLATFORM, "unreadable_answer", ambiguous=True, raw=raw)


def of_upload_host(failed: Failed) -> Failed:
    """An upload host is not the API: what it does concerns this delivery and says nothing about the platform."""
    scope = Scope.DELIVERY if failed.scope == Scope.PLATFORM else failed.scope
    return msgspec.structs.replace(failed, scope=scope, answered=False)


def certain(failed: Failed) -> Failed:
    """For calls that post nothing: no failure of them can have created a message."""
    return msgspec.structs.replace(failed, ambiguous=False)


def with_answer(failed: Failed, answer: HttpAnswer) -> Failed:
    """Add the response to the failure, for the raw payload."""
    headers = {name: storable(value) for name, value in harmless(answer.headers).items()}
    response = {"headers": headers, "body": readable(answer.body), "size": len(answer.body)}
    return msgspec.structs.replace(failed, raw=failed.raw | response)


def without_token(answer: HttpAnswer, token: Secret) -> HttpAnswer:
    """Some servers echo the request, and the response is stored with a failure."""
    body = mask_secret(answer.body, token.reveal())
    return answer if body == answer.body else HttpAnswer(answer.status, answer.headers, body)


def snippet_of(answer: HttpAnswer) -> str:
    return beginning(storable(answer.body[:READ_FOR_SNIPPET].decode("utf-8", "replace")), SNIPPET)
