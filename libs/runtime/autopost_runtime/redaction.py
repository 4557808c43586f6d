"""Take secrets out of text that is about to leave the process: log lines, spans, error messages.

This is the last line of defence. The first is not to put a secret there: config holds it as ``Secret``,
and ``http`` never lets a URL into an exception.
"""

import re
from functools import lru_cache

MASK = "***"

_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"/bot(?!\{)[^/\s\"'?#]{6,}(?=[/\s\"'?#]|$)"), f"/bot{MASK}"),
    (re.compile(r"\b\d{6,}(?::|%3A)[A-Za-z0-9_-]{30,}", re.IGNORECASE), MASK),
    (re.compile(r"\b(bearer|basic)\s+[^\s\"',;]+", re.IGNORECASE), rf"\1 {MASK}"),
    (
        re.compile(r"\b(authorization[\"']?\s*[:=]\s*[\"']?)(?!(?:bearer|basic)\b)[^\s\"',;]+", re.IGNORECASE),
        rf"\1{MASK}",
    ),
    (re.compile(r"(://[^\s:/@]*):[^\s/]+@"), rf"\1:{MASK}@"),
    (re.compile(r"\b(access_token|password|secret)=[^\s&\"']+", re.IGNORECASE), rf"\1={MASK}"),
)
_SECRET_NAMES = frozenset({"token", "secret", "password", "passwd", "authorization", "cookie", "api_key", "access_key"})
_SECRET_ENDINGS = ("_token", "_secret", "_password", "_authorization", "_secret_key", "_api_key")
_NOT_SECRET = frozenset({"claim_token"})  # it fences a commit and opens nothing


def redact(text: str) -> str:
    if not _worth_a_look(text):
        return text
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def _worth_a_look(text: str) -> bool:
    """Without one of these no pattern can match, and most text has none; five times faster than asking a pattern."""
    return (
        ":" in text
        or "=" in text
        or "/bot" in text
        or "%3" in text
        or "earer" in text
        or "asic" in text
        or "EARER" in text
        or "ASIC" in text
    )


@lru_cache(maxsize=1024)
def names_a_secret(name: str) -> bool:
    """Whether a field of this name holds a secret, whatever its value looks like."""
    lowered = name.lower().replace("-", "_")
    return lowered not in _NOT_SECRET and (lowered in _SECRET_NAMES or lowered.endswith(_SECRET_ENDINGS))
