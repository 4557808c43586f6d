"""Take out of text what must not leave the process: secrets always, and numbers and addresses of people nearly always.

This is the last line of defence. The first is not to put a secret there: config holds it as ``Secret``,
and ``http`` never lets a URL into an exception.
"""

import re
from functools import lru_cache

MASK = "***"

_NAMES = r"(?:token|secret|password|passwd|authorization|cookie|api[_-]?key|access[_-]?key|secret[_-]?key)"
_PAIR = re.compile(
    rf"(?<!\\)(\\{{0,7}}[\"'])((?:[\w-]{{0,60}}[_-])?{_NAMES})\1(\s*:\s*)(\\{{0,7}}[\"'])((?:\\.|[^\\])*?)(?:\4|$)",
    re.IGNORECASE | re.DOTALL,
)
"""A name and its value in JSON, also in JSON that is itself a text in JSON, also where the text was cut."""

_SECRETS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"/bot(?!\{)[^/\s\"'?#]{6,}(?=[/\s\"'?#]|$)"), f"/bot{MASK}"),
    (re.compile(r"\b\d{6,}(?::|%3A)[A-Za-z0-9_-]{30,}", re.IGNORECASE), MASK),
    (re.compile(r"\b(bearer|basic)\s+[^\s\"',;]+", re.IGNORECASE), rf"\1 {MASK}"),
    (
        re.compile(r"\b(authorization[\"']?\s*[:=]\s*[\"']?)(?!(?:bearer|basic)\b)[^\s\"',;]+", re.IGNORECASE),
        rf"\1{MASK}",
    ),
    (re.compile(r"(?<![\w-])(x-[\w-]{0,60}(?:secret|token|key)\s*[:=]\s*)[^\s\"',;]+", re.IGNORECASE), rf"\1{MASK}"),
    (re.compile(r"\b((?:set-)?cookie\s*:\s*)[^\r\n\"']+", re.IGNORECASE), rf"\1{MASK}"),
    (re.compile(r"(://[^\s:/@]*):[^\s/]+@"), rf"\1:{MASK}@"),
    (
        re.compile(
            r"(?<![\w-])(?!claim_token=)((?:[\w-]{0,60}[_-])?(?:token|password|passwd|secret|api_?key|signature))"
            r"=[^\s&\"']+",
            re.IGNORECASE,
        ),
        rf"\1={MASK}",
    ),
)

_EMAIL = re.compile(r"(?<![\w.+%-])(?<!//)[\w.+%-]{1,100}@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,}")
_PHONE = re.compile(
    r"\+[1-9](?:[\s().-]{0,2}\d){9,14}(?!\d)"  # as written for abroad
    r"|(?<![\w.:+-])[78](?:[\s-]?\(\d{3,5}\)[\s-]?|[\s-]\d{3,5}[\s-])\d{1,3}(?:[\s-]?\d{2}){2}(?![\w-])"  # 8 (900) …
    r"|(?<![\w.:+-])[78]9\d{9}(?![\w-])"  # a mobile number without spaces
    r"|(?<![\w.:+-])\(?\d{3}\)?[\s.-]\d{3}[\s.-]\d{2}[\s.-]?\d{2}(?![\w-])"  # without the country
)
_MAYBE_PHONE = re.compile(r"\d[\d\s().-]{8,}\d")
_SHORTEST = 6
"""No e-mail address and no phone number is shorter."""

_SECRET_NAMES = frozenset({"token", "secret", "password", "passwd", "authorization", "cookie", "api_key", "access_key"})
_SECRET_ENDINGS = ("_token", "_secret", "_password", "_authorization", "_secret_key", "_api_key", "_cookie")
_NOT_SECRET = frozenset({"claim_token"})  # it fences a commit and opens nothing


def redact(text: str) -> str:
    """Without secrets, phone numbers and e-mail addresses."""
    text = redact_secrets(text)
    if len(text) < _SHORTEST:
        return text
    if "@" in text:
        text = _EMAIL.sub(MASK, text)
    return _PHONE.sub(MASK, text) if _MAYBE_PHONE.search(text) else text


def redact_secrets(text: str) -> str:
    """Only without secrets: for raw payloads, which are opened with a reason, and for what an operator configured."""
    if not _worth_a_look(text):
        return text
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return _PAIR.sub(_mask_value, text)


def _mask_value(pair: re.Match[str]) -> str:
    quote, name, between, opening, _ = pair.groups()
    return f"{quote}{name}{quote}{between}{opening}{MASK}{opening}" if names_a_secret(name) else pair[0]


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
