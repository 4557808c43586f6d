"""Mask text that must not leave the process: secrets, and usually phone numbers and e-mail addresses.

This is the last line of defence. The first is not to put a secret into text: config holds it as ``Secret``, and
``http`` never puts a URL into an exception.
"""

import re
from functools import lru_cache
from typing import AnyStr
from urllib.parse import quote

import msgspec

MASK = "***"

_NAMES = r"(?:token|secret|password|passwd|authorization|cookie|api[_-]?key|access[_-]?key|secret[_-]?key|пароль|токен)"
_PAIR = re.compile(
    rf"(?<!\\)(\\{{0,7}}[\"'])((?:[\w-]{{0,60}}[_-])?{_NAMES})\1(\s*:\s*)(\\{{0,7}}[\"'])((?:\\.|[^\\])*?)(?:\4|$)",
    re.IGNORECASE | re.DOTALL,
)
"""A name and its value in JSON, also in JSON nested as a string, also where the text was cut."""

_BARE = r"[^\s&\"',;:=«»\d_$^*~+]"
_SIGN = r"[\d_$^*~+]"
_REST = r"[^\s&\"',;«»]"
_TYPED = (
    rf"(?:{_BARE}{{3,}}{_SIGN}{_REST}*|{_BARE}{{2}}{_SIGN}{_REST}+|{_BARE}{_SIGN}{_REST}{{2,}}|[\d_$^~+]{_REST}{{3,}})"
)
"""What somebody types as a password: at least four characters with a digit or sign. Without one it is taken for a word,
because people write "the secret: patience"."""

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
    (re.compile(r"(://[^\s:/@]*):[^\s/]+@"), rf"\1:{MASK}@"),  # up to the last @: a password may have one
    (re.compile(r"\b(https?://)[^\s/?#\"']+@", re.IGNORECASE), rf"\1{MASK}@"),
    (
        re.compile(
            r"(?:(?<![\w-])|(?<=%3F)|(?<=%26))(?!claim_token=)"
            r"((?:[\w-]{0,60}[_-])?(?:token|password|passwd|secret|api[_-]?key|signature|пароль|токен))"
            r"(=|%3D)[^\s&\"']+",
            re.IGNORECASE,
        ),
        rf"\1\2{MASK}",
    ),
    (
        re.compile(
            r"(?<![\w-])(?!claim_token)"
            r"((?:[\w-]{0,60}[_-])?(?:token|password|passwd|secret|api[_-]?key|пароль|токен)"
            rf"[ \t\u00a0]?[:=][ \t\u00a0]{{0,2}}[\"'«]?){_TYPED}",
            re.IGNORECASE,
        ),
        rf"\1{MASK}",
    ),
    (
        re.compile(
            r"([?&;](?:sig|sign|hmac|auth|key|pwd|pass|jwt|sid|session|session_?id|ticket|code)=)[^\s&\"']+",
            re.IGNORECASE,
        ),
        rf"\1{MASK}",
    ),
)

_EMAIL = re.compile(r"(?<![\w.+%-])(?<!//)[\w.+%-]{1,100}(?:@|%40)(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,}")
_DASH = r"\u2010-\u2015-"
"""Typesetters write numbers with these dashes."""
_PHONE = re.compile(
    rf"(?:\+|%2B)[1-9](?:[\s().{_DASH}]{{0,2}}\d){{9,14}}(?!\d)"  # international format
    rf"|(?<![\w.+-])[78](?:[\s{_DASH}]?\(\d{{3,5}}\)[\s{_DASH}]?|[\s{_DASH}]\d{{3,5}}[\s{_DASH}])"
    rf"\d{{1,3}}(?:[\s{_DASH}]?\d{{2}}){{2}}(?![\w-])"  # 8 (900) …
    r"|(?<![\w.+-])[78]9\d{9}(?![\w-])"  # a mobile number without spaces
    rf"|(?<![\w.:+-])\(?\d{{3}}\)?[\s.{_DASH}]\d{{3}}[\s.{_DASH}]\d{{2}}[\s.{_DASH}]?\d{{2}}(?![\w-])"  # local
)
_MAYBE_PHONE = re.compile(rf"\d[\d\s().{_DASH}]{{8,}}\d")
_SHORTEST = 6
"""The minimum length of an e-mail address or a phone number."""

QUOTED = 80
"""Characters of an untrusted text in a message."""

_SEARCHED = 2048
"""Characters of a quoted text that are searched: a secret may begin in the shown part and end far after it."""
_UNDECIDED = 256
"""The last searched characters are not shown: they may be the start of a secret that is not recognisable yet."""
_OPEN_URL = re.compile(r"://[^\s/]*$")
"""A URL whose password may end after the searched part."""

_SECRET_NAMES = frozenset(
    {"token", "secret", "password", "passwd", "authorization", "cookie", "api_key", "access_key", "пароль", "токен"}
)
_SECRET_ENDINGS = ("_token", "_secret", "_password", "_authorization", "_secret_key", "_api_key", "_cookie")
_NOT_SECRET = frozenset({"claim_token"})  # it only fences a commit and grants no access


def redact(text: str) -> str:
    """Mask secrets, phone numbers and e-mail addresses."""
    text = redact_secrets(text)
    if len(text) < _SHORTEST:
        return text
    if "@" in text or "%40" in text:
        text = _EMAIL.sub(MASK, text)
    return _PHONE.sub(MASK, text) if _MAYBE_PHONE.search(text) else text


def quoted(text: str, longest: int = QUOTED) -> str:
    """An untrusted text for a message: short, redacted, one line."""
    shown = beginning(text, longest + 1)
    if len(shown) > longest or len(text) > _SEARCHED:
        shown = f"{shown[: longest - 1]}…"
    return "".join(character if character.isprintable() else "\ufffd" for character in shown)


def beginning(text: str, longest: int) -> str:
    """Redacts before cutting; a secret that ends after the searched part is not shown at all."""
    if len(text) <= _SEARCHED:
        return redact(text)[:longest]
    shown = _OPEN_URL.sub(f"://{MASK}", redact(text[:_SEARCHED]))
    return shown[:-_UNDECIDED][:longest]


def redact_secrets(text: str) -> str:
    """Mask only secrets: for raw payloads, which require a reason to read, and for config values."""
    if not _may_match(text):
        return text
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return _PAIR.sub(_mask_value, text)


def mask_secret(text: AnyStr, secret: str) -> AnyStr:
    """Mask one known secret in ``text``: plain, URL-encoded and as JSON.

    A platform or a proxy may echo our request, including the token.
    """
    if not secret:
        return text
    for written in {secret, quote(secret, safe=""), quote(secret), msgspec.json.encode(secret).decode()[1:-1]}:
        text = text.replace(written, MASK) if isinstance(text, str) else text.replace(written.encode(), MASK.encode())
    return text


def _mask_value(pair: re.Match[str]) -> str:
    quote, name, between, opening, _ = pair.groups()
    return f"{quote}{name}{quote}{between}{opening}{MASK}{opening}" if names_a_secret(name) else pair[0]


def _may_match(text: str) -> bool:
    """Every pattern needs one of these, and most text has none; five times faster than running a pattern."""
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
    """Whether a field of this name holds a secret, whatever its value is."""
    lowered = name.lower().replace("-", "_")
    return lowered not in _NOT_SECRET and (lowered in _SECRET_NAMES or lowered.endswith(_SECRET_ENDINGS))
