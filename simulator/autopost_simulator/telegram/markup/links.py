"""Links as the Bot API server checks and rewrites them, in texts, buttons and webhooks.

A host needs a dot, unless it is an IPv6 address; a port must exist. Spaces in the path become ``%20``.
"""

import ipaddress
import re
from dataclasses import dataclass

_AUTHORITY_ENDS = re.compile(r"[/?#]")
_PROTOCOL = re.compile(r"([^:/?#@\[\]]*)://")
_HOST = re.compile(r"(?:[A-Za-z0-9.\-_!$,~*'();&+=\u0080-\U0010ffff]|%[0-9A-Fa-f]{2})*")
_USERINFO = re.compile(r"(?:[A-Za-z0-9.\-_!$,~*'();&+=:\u0080-\U0010ffff]|%[0-9A-Fa-f]{2})*")
_SPACES = " \t\r\n\0\v"
_APP_HOST = re.compile(r"[A-Za-z0-9_-]+")
_TONSITE_HOST = re.compile(r"[A-Za-z0-9_.-]+")
_OWN_SCHEMES = ("tg", "ton", "tonsite")
_USER = re.compile(r"tg:(?://)?user/?\?([^#]*)")
_NUMBER = re.compile(r"-?[1-9][0-9]*|0")


class LinkError(Exception):
    """What the server says of the link, without the link itself."""


@dataclass(slots=True, frozen=True)
class Url:
    protocol: str
    userinfo: str
    host: str
    port: int | None
    query: str
    is_ipv6: bool = False

    def __str__(self) -> str:
        userinfo = f"{self.userinfo}@" if self.userinfo else ""
        port = f":{self.port}" if self.port else ""
        return f"{self.protocol}://{userinfo}{self.host}{port}{self.query}"


def checked_link(link: str) -> str | None:
    """The link as the server stores it; ``None`` for a bad one."""
    try:
        return check_link(link)
    except LinkError:
        return None


def check_link(link: str, *, https_only: bool = False) -> str:
    scheme = link.partition(":")[0].lower()
    if ":" in link and scheme in _OWN_SCHEMES:
        if https_only:
            raise LinkError("Only HTTPS links are allowed")
        return _app_link(scheme, link[len(scheme) + 1 :].removeprefix("//"))
    url = parse_url(link)
    if https_only and url.protocol != "https":
        raise LinkError("Only HTTPS links are allowed")
    if "." not in url.host and not url.is_ipv6:
        raise LinkError("Wrong HTTP URL")
    return str(url)


def parse_url(text: str, default_protocol: str = "http") -> Url:
    protocol, rest = _protocol(text, default_protocol)
    ends = _AUTHORITY_ENDS.search(rest)
    authority, query = (rest, "") if ends is None else (rest[: ends.start()], rest[ends.start() :])
    authority, port = _port(authority)
    userinfo, _, host = authority.rpartition("@")
    host, is_ipv6 = _checked_host(host, userinfo)
    return Url(protocol, userinfo, host, port, _checked_query(query), is_ipv6)


def user_of_link(link: str) -> int | None:
    """``tg://user?id=…`` mentions a user instead of linking to something."""
    user = _USER.match(link.lower())
    for parameter in user[1].split("&") if user else ():
        key, _, value = parameter.partition("=")
        if key == "id":
            return int(value) if _NUMBER.fullmatch(value) and int(value) > 0 else None
    return None


def _app_link(scheme: str, rest: str) -> str:
    url = parse_url(rest)
    if rest.lower().startswith("http://") or url.protocol == "https" or url.userinfo or url.port or url.is_ipv6:
        raise LinkError("Wrong tg URL" if scheme == "tg" else "Wrong ton URL")
    if not (_TONSITE_HOST if scheme == "tonsite" else _APP_HOST).fullmatch(url.host):
        raise LinkError("Unallowed characters in URL host")
    query = url.query[1:] if url.query.startswith("/?") else url.query
    return f"{scheme}://{url.host}{query}"


def _protocol(text: str, default: str) -> tuple[str, str]:
    given = _PROTOCOL.match(text)
    if given is None:
        return default, text
    protocol = given[1].lower()
    if protocol not in ("http", "https"):
        raise LinkError("Unsupported URL protocol")
    return protocol, text[given.end() :]


def _port(authority: str) -> tuple[str, int | None]:
    """A colon in brackets belongs to an IPv6 address, and one before ``@`` to the user."""
    colon = max(authority.rfind(mark) for mark in ":]@")
    if colon <= 0 or authority[colon] != ":":
        return authority, None
    digits = authority[colon + 1 :].lstrip("0")
    if not (digits.isascii() and digits.isdigit()) or int(digits) > 65535:
        raise LinkError("Wrong port number specified in the URL")
    return authority[:colon], int(digits)


def _checked_host(host: str, userinfo: str) -> tuple[str, bool]:
    if host.startswith("[") and host.endswith("]"):
        try:
            ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            raise LinkError("Wrong IPv6 address specified in the URL") from None
        return host.lower(), True
    if not host:
        raise LinkError("URL host is empty")
    if host == ".":
        raise LinkError("Host is invalid")
    for part, name, pattern in ((host, "host", _HOST), (userinfo, "userinfo", _USERINFO)):
        allowed = pattern.match(part)
        if allowed is None or allowed.end() != len(part):
            wrong = part[allowed.end() if allowed else 0]
            what = "Wrong percent-encoded symbol" if wrong == "%" else "Disallowed character"
            raise LinkError(f"{what} in URL {name}")
    return _lower(host), False


def _checked_query(query: str) -> str:
    query = query.rstrip(_SPACES) or "/"
    query = query if query.startswith("/") else f"/{query}"
    return "".join(character if character > " " else f"%{ord(character):02X}" for character in query)


def _lower(text: str) -> str:
    """Only ASCII letters."""
    return "".join(character.lower() if character.isascii() else character for character in text)
