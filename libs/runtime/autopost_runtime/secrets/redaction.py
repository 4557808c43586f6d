"""Take out of text what must not leave the process: secrets always, and numbers and addresses of people nearly always.

This is the last line of defence. The first is not to put a secret there: config holds it as ``Secret``,
and ``http`` never lets a URL into an exception.
"""

import re
from functools import lru_cache
from typing import AnyStr
from urllib.parse import quote

import msgspec

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
    (re.compile(r"\b(https?://)[^\s/@?#\"']+@", re.IGNORECASE), rf"\1{MASK}@"),
    (re.compile(r"(://[^\s:/@]*):[^\s/]+@"), rf"\1:{MASK}@"),
    (
        re.compile(
            r"(?:(?<![\w-])|(?<=%3F)|(?<=%26))(?!claim_token=)"
            r"((?:[\w-]{0,60}[_-])?(?:token|password|passwd|secret|api[_-]?key|signature))"
            r"(=|%3D)[^\s&\"']+",
            re.IGNORECASE,
        ),
        rf"\1\2{MASK}",
    ),
    (
        re.compile(
            r"([?&;](?:sig|sign|hmac|auth|key|pwd|pass|jwt|sid|session|session_?id|ticket|code)=)[^\s&\"']+",
            re.IGNORECASE,
        ),
        rf"\1{MASK}",
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

QUOTED = 80
"""Characters of a foreign text that a message shows."""

_LOOKED_AT = 2048
"""Characters of a text that is quoted: a secret may begin in what is shown and end far behind it."""
_UNDECIDED = 256
"""The last characters of what is looked at: what goes on behind them may be a secret without looking like one."""
_OPEN_ADDRESS = re.compile(r"://[^\s/]*$")
"""A password may end behind it."""

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


def quoted(text: str, longest: int = QUOTED) -> str:
    """What a problem, a refusal or an error shows of a text that somebody else wrote: short, redacted, one line."""
    shown = beginning(text, longest + 1)
    if len(shown) > longest or len(text) > _LOOKED_AT:
        shown = f"{shown[: longest - 1]}…"
    return "".join(character if character.isprintable() else "\ufffd" for character in shown)


def beginning(text: str, longest: int) -> str:
    """Redacted before it is cut; nothing is shown of a secret that ends behind what is looked at."""
    if len(text) <= _LOOKED_AT:
        return redact(text)[:longest]
    shown = _OPEN_ADDRESS.sub(f"://{MASK}", redact(text[:_LOOKED_AT]))
    return shown[:-_UNDECIDED][:longest]


def redact_secrets(text: str) -> str:
    """Only without secrets: for raw payloads, which are opened with a reason, and for what an operator configured."""
    if not _worth_a_look(text):
        return text
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return _PAIR.sub(_mask_value, text)


def mask_secret(text: AnyStr, secret: str) -> AnyStr:
    """``text`` without this one known secret: as it is, as in a URL and as in JSON.

    A platform, or a gateway before it, may repeat our request, and with it the token.
    """
    if not secret:
        return text
    for written in {secret, quote(secret, safe=""), quote(secret), msgspec.json.encode(secret).decode()[1:-1]}:
        text = text.replace(written, MASK) if isinstance(text, str) else text.replace(written.encode(), MASK.encode())
    return text


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
