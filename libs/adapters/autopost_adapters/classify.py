"""Turn a platform's refusal into category, scope and code, by a table of rules.

Rules are tried in order and the first that fits decides; the HTTP status alone is the last resort, because a
platform's 400 may be about the post, the channel or the whole bot.
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
READ_FOR_SNIPPET = 16_000
"""Bytes: four thousand characters at least."""
"""Characters of an answer that are kept with a failure."""


class Rule(Struct, frozen=True):
    status: int | None
    pattern: str
    """Searched in the provider's code and description, case-insensitively; empty fits all."""
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
    """Category, scope and code of a refusal, with the platform's words as far as they can be kept.

    A 5xx may have been obeyed before it failed, so it is ambiguous; a 4xx was certainly refused.

    A redirect is not followed, for it would take the token and the post to somebody else. It may be gone soon.
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
                raw=raw,
            )
    return Failed.permanent(Scope.DELIVERY, f"http_{status}", text, raw=raw)


def wait_asked(answer: HttpAnswer) -> int | None:
    """Milliseconds, where the header asks for whole seconds; a date is left alone, for clocks differ."""
    return wait_ms(answer.headers.get("Retry-After", ""))


def unreachable(exc: HttpError) -> Failed:
    """No answer: certainly not sent, or perhaps sent. Only the delivery waits; the platform asked for nothing."""
    return Failed.transient(Scope.PLATFORM, exc.code, ambiguous=not isinstance(exc, NotSent))


def without_bytes(exc: MediaMissing | MediaUnreadable) -> Failed:
    """Certainly not sent: no platform accepts half a body."""
    if isinstance(exc, MediaMissing):
        return Failed.permanent(Scope.DELIVERY, "media_missing_origin", str(exc))
    return Failed.transient(Scope.DELIVERY, "media_unreadable", str(exc))


def unreadable(answer: HttpAnswer) -> Failed:
    """A success whose body makes no sense: the platform may well have accepted."""
    raw = {"status": answer.status, "snippet": snippet_of(answer)}
    return Failed.transient(Scope.PLATFORM, "unreadable_answer", ambiguous=True, raw=raw)


def certain(failed: Failed) -> Failed:
    """Of a call that posts nothing: whatever happened to it, no message can have come of it."""
    return msgspec.structs.replace(failed, ambiguous=False)


def with_answer(failed: Failed, answer: HttpAnswer) -> Failed:
    """Together with what was answered, for whoever keeps it."""
    headers = {name: storable(value) for name, value in harmless(answer.headers).items()}
    told = {"headers": headers, "body": readable(answer.body), "size": len(answer.body)}
    return msgspec.structs.replace(failed, raw=failed.raw | told)


def without_token(answer: HttpAnswer, token: Secret) -> HttpAnswer:
    """Some servers repeat what they were asked, and what they say is kept with a failure."""
    body = mask_secret(answer.body, token.reveal())
    return answer if body == answer.body else HttpAnswer(answer.status, answer.headers, body)


def snippet_of(answer: HttpAnswer) -> str:
    return beginning(storable(answer.body[:READ_FOR_SNIPPET].decode("utf-8", "replace")), SNIPPET)
