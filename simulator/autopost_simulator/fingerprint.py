"""The fingerprint of a token, shown in the log and in control answers instead of it."""

import hashlib
import re
from functools import lru_cache

_FINGERPRINT = re.compile(r"[0-9a-f]{8}")


@lru_cache(maxsize=4_096)
def fingerprint(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()[:8]


def as_fingerprint(token_or_fingerprint: str) -> str:
    """A fault may name a token or its fingerprint."""
    if _FINGERPRINT.fullmatch(token_or_fingerprint):
        return token_or_fingerprint
    return fingerprint(token_or_fingerprint)
