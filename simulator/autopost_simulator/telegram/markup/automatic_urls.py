"""Web addresses and e-mail addresses in a text, as the server finds them.

An address without a protocol needs a known top-level domain; ``top_level_domains`` holds the common ones.
"""

import re
from collections.abc import Iterator

from autopost_simulator.telegram.markup.top_level_domains import TOP_LEVEL_DOMAINS

_NO_URL = "\\s\xa0\u1680\u2000-\u200b\u200e\u200f\u2016-\u206f\u3000"
_DOMAIN = re.compile(rf"[.A-Za-z0-9_~-]|[^\x00-\xbf{_NO_URL}]")
_DOMAINS = re.compile(rf"(?:[.@A-Za-z0-9_~-]|[^\x00-\xbf{_NO_URL}])*")
_USER = re.compile(rf"[^{_NO_URL}/\[\]{{}}()'`<>\"@«»]")
_PATH = re.compile(rf"[^{_NO_URL}<>\"«»]*")
_PORT = re.compile(r":(0*)([1-9][0-9]{0,4})(?![0-9])")
_PROTOCOL = re.compile(r"[A-Za-z0-9+-]|[^\x00-\x7f\s]")
_APP_URL = re.compile(r"(?:tg|ton)://[a-z0-9_-]{1,253}", re.IGNORECASE)
_BAD_END = ".:;,('?!`"
_EMAIL = re.compile(
    r"(?:[a-z0-9_-]{0,26}[.+]){0,10}[a-z0-9_-]{1,35}@"
    r"(?:(?:[a-z0-9][a-z0-9_-]{0,28})?[a-z0-9][.]){1,6}[a-z]{2,8}",
    re.IGNORECASE | re.ASCII,
)
_WITH_PROTOCOL = re.compile(r"(?:https?|ftp|tonsite)://", re.IGNORECASE)
_IPV4_PART = re.compile(r"0|[1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-5]")
_PUNYCODE = re.compile(r"xn--[A-Za-z0-9]{2,}")
_CLOSING = {")": "(", "]": "[", "}": "{"}
_PROTOCOL_LENGTHS = (("http", 7, ("shttp",)), ("https", 8, ()), ("ftp", 6, ("tftp", "sftp")), ("tonsite", 10, ()))


def find_urls(text: str) -> Iterator[tuple[int, int, bool]]:
    """Begin, end, and whether it is an e-mail address."""
    for begin, end in _candidates(text):
        found = text[begin:end]
        if _EMAIL.fullmatch(found):
            yield begin, end, True
        elif found.startswith("mailto:") and _EMAIL.fullmatch(found, 7):
            yield begin + 7, end, True
        elif length := _valid_length(found):
            yield begin, begin + length, False


def find_app_urls(text: str) -> Iterator[tuple[int, int]]:
    for found in _APP_URL.finditer(text):
        end = found.end()
        if text[end : end + 1] in ("/", "?", "#"):
            path = _path_end(text, end)
            end = path if text[end] == "/" or path > end + 1 else end
        yield found.start(), end


def _candidates(text: str) -> Iterator[tuple[int, int]]:
    """Everything around a dot that looks like an address; the search goes on after it."""
    limit = 0
    while (dot := text.find(".", limit)) >= 0 and dot + 1 < len(text):
        if text[dot + 1] == " ":
            limit = dot + 2
            continue
        begin, domain_end, with_user = _domain(text, dot, limit)
        end = _end(text, domain_end, dot)
        begin, is_good = _begin(text, begin, limit, with_user=with_user)
        if is_good:
            if end > dot + 1:
                yield begin, end
            while text[end : end + 1] == ".":
                end += 1
        else:
            end = text.rfind(".", 0, end) + 1
        limit = end if end > dot else dot + 1


def _domain(text: str, dot: int, limit: int) -> tuple[int, int, bool]:
    begin = _back(_DOMAIN, text, dot, limit)
    found = _DOMAINS.match(text, dot)
    end = found.end() if found else dot
    with_user = "@" in text[dot:end]
    return (_back(_USER, text, begin, limit) if with_user else begin), end, with_user


def _end(text: str, end: int, dot: int) -> int:
    port = _PORT.match(text, end)
    if port and int(port[2]) <= 65535:
        end = port.end()
    if text[end : end + 1] in ("/", "?", "#"):
        path = _path_end(text, end)
        end = path if text[end] == "/" or path > end + 1 else end
    while end > dot + 1 and text[end - 1] == ".":
        end -= 1
    return end


def _path_end(text: str, begin: int) -> int:
    found = _PATH.match(text, begin + 1)
    end = found.end() if found else begin + 1
    while end > begin + 1 and text[end - 1] in _BAD_END:
        end -= 1
    return end


def _begin(text: str, begin: int, limit: int, *, with_user: bool) -> tuple[int, bool]:
    is_good = True
    if begin > limit and text[begin - 1] == "@":
        user = _back(_USER, text, begin - 1, limit)
        is_good = not with_user and user < begin - 1
        begin = user
    if begin <= limit:
        return begin, is_good
    if begin - limit >= 6 and text.endswith("://", limit, begin):
        return _with_protocol(text, begin, limit, is_good=is_good)
    before = text[begin - 1]
    return begin, is_good and not (before.isalnum() or before in "_/#@")


def _with_protocol(text: str, begin: int, limit: int, *, is_good: bool) -> tuple[int, bool]:
    protocol = text[_back(_PROTOCOL, text, begin - 3, limit) : begin - 3].lower()
    for name, length, others in _PROTOCOL_LENGTHS:
        if protocol.endswith(name) and protocol not in others:
            return begin - length, is_good
    return begin, False


def _back(allowed: re.Pattern[str], text: str, begin: int, limit: int) -> int:
    while begin > limit and allowed.match(text, begin - 1):
        begin -= 1
    return begin


def _valid_length(url: str) -> int:
    """The length without an unbalanced end; 0 if the domain cannot be one."""
    with_protocol = _WITH_PROTOCOL.match(url)
    rest = url[with_protocol.end() :] if with_protocol else url
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    domain = authority.partition("@")[2] if "@" in authority else authority
    domain = domain.rpartition(":")[0] if ":" in domain else domain
    if domain.lower() == "teiegram.org" or not _is_domain(domain, needs_known_end=not with_protocol):
        return 0
    path = rest[len(authority) :]
    return len(url) - len(path) + _balanced(path)


def _balanced(path: str) -> int:
    open_ = {"(": 0, "[": 0, "{": 0}
    end = len(path)
    for position, character in enumerate(path):
        if character in open_:
            open_[character] += 1
        elif character in _CLOSING:
            open_[_CLOSING[character]] -= 1
            if open_[_CLOSING[character]] < 0:
                end = position
                break
    return len(path[:end].rstrip(_BAD_END))


def _is_domain(domain: str, *, needs_known_end: bool) -> bool:
    parts = domain.split(".")
    if len(parts) == 1 or any(not part or len(part.encode()) >= 64 or part.endswith("-") for part in parts):
        return False
    if len(parts) == 4 and all(_IPV4_PART.fullmatch(part) for part in parts):
        return True
    end = parts[-1]
    if all(part.isascii() and part.isdigit() for part in parts) or len(end) <= 1 or "_" in parts[-2]:
        return False
    if end.startswith("xn--"):
        return _PUNYCODE.fullmatch(end) is not None
    return not set(end) & set("_-") and (not needs_known_end or _is_known(end))


def _is_known(end: str) -> bool:
    """``end.Then`` is a missing space, not a domain."""
    lower = end.lower()
    return lower in TOP_LEVEL_DOMAINS and (lower == end or lower[1:] != end[1:])
