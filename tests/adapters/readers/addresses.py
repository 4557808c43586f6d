"""Which addresses the Bot API server makes a link of, and how it writes them. Written from TDLib's ``parse_url``."""

import ipaddress
import re

OWN_SCHEME = re.compile("(tg|ton|tonsite):(//)?", re.IGNORECASE)
SCHEME = re.compile("([^:/?#@\\[\\]]*)://")
PART = re.compile("(?:[A-Za-z0-9._!$,~*'();&+=-]|%[0-9A-Fa-f]{2}|[^\x00-\x7f])*")
USER_PART = re.compile("(?:[A-Za-z0-9._!$,~*'();&+=:-]|%[0-9A-Fa-f]{2}|[^\x00-\x7f])*")
PORT = re.compile("(.+):([^:@\\]]*)", re.DOTALL)
SPACES = "\t\n\x0b\r \x00"


class UnusableError(ValueError):
    pass


def link(address: str) -> str | None:
    """The address as it comes back, ``None`` where the text stays without a link."""
    try:
        return own(address) or web(address)
    except UnusableError:
        return None


def person(address: str) -> str | None:
    """The id in ``tg://user?id=``."""
    match = re.fullmatch("tg:(?://)?user/?\\?([^#]*)(?:#.*)?", address.lower(), re.DOTALL)
    for parameter in match[1].split("&") if match else ():
        key, _, value = parameter.partition("=")
        if key == "id":
            return value if re.fullmatch("[1-9][0-9]*", value) else None
    return None


def own(address: str) -> str | None:
    match = OWN_SCHEME.match(address)
    if match is None:
        return None
    rest = address[match.end() :]
    scheme, user, host, port, query = parts(rest)
    if rest.lower().startswith("http://") or scheme == "https" or user or port or host.startswith("["):
        raise UnusableError
    name = match[1].lower()
    if not re.fullmatch("[a-z0-9_.-]+" if name == "tonsite" else "[a-z0-9_-]+", host):
        raise UnusableError
    return f"{name}://{host}{query[1:] if query.startswith('/?') else query}"


def web(address: str) -> str:
    scheme, user, host, port, query = parts(address)
    if "." not in host and not host.startswith("["):
        raise UnusableError
    return f"{scheme}://{user + '@' if user else ''}{host}{f':{port}' if port else ''}{query}"


def parts(address: str) -> tuple[str, str, str, int, str]:
    match = SCHEME.match(address)
    scheme = match[1].lower() if match else "http"
    if scheme not in ("http", "https"):
        raise UnusableError
    rest = address[match.end() :] if match else address
    place = re.split("[/?#]", rest, maxsplit=1)[0]
    query = rest[len(place) :].rstrip(SPACES) or "/"
    place, port = with_port(place)
    user, _, host = place.rpartition("@")
    check(user, host)
    query = re.sub("[\x00-\x20]", lambda found: f"%{ord(found[0]):02X}", query)
    return scheme, user, host.lower(), port, query if query.startswith("/") else f"/{query}"


def with_port(place: str) -> tuple[str, int]:
    match = PORT.fullmatch(place)
    if match is None:
        return place, 0
    number = match[2].lstrip("0")
    if not re.fullmatch("[1-9][0-9]{0,4}", number) or int(number) > 65535:
        raise UnusableError
    return match[1], int(number)


def check(user: str, host: str) -> None:
    if host.startswith("[") and host.endswith("]"):
        try:
            ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            raise UnusableError from None
    elif host in ("", ".") or not PART.fullmatch(host):
        raise UnusableError
    if not USER_PART.fullmatch(user):
        raise UnusableError
