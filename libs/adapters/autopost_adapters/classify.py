"""Turn a platform's refusal into category, scope and code, by a table of rules.

Rules are tried in order and the first that fits decides; the HTTP status alone is the last resort, because a
platform's 400 may be about the post, the channel or the whole bot.
"""

import re
from collections.abc import Sequence

from autopost_contracts.outcomes import Category, Failed, Scope
from autopost_runtime.http import HttpError, NotSent
from msgspec import Struct


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
    """A 5xx may have been obeyed before it failed, so it is ambiguous; a 4xx was certainly refused."""
    raw = {"status": status, "snippet": snippet[:500]}
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


def unreachable(exc: HttpError) -> Failed:
    """No answer: certainly not sent, or perhaps sent. Only the delivery waits; the platform asked for nothing."""
    return Failed.transient(Scope.PLATFORM, exc.code, ambiguous=not isinstance(exc, NotSent))


def unreadable(status: int, body: bytes) -> Failed:
    """A 2xx whose body makes no sense: the platform may well have accepted."""
    snippet = body[:500].decode("utf-8", "replace")
    return Failed.transient(
        Scope.PLATFORM, "unreadable_answer", ambiguous=True, raw={"status": status, "snippet": snippet}
    )
