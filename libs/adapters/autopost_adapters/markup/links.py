"""Which addresses a link may lead to."""

from urllib.parse import SplitResult, urlsplit

SCHEMES = frozenset({"http", "https", "mailto", "tel", "tg", "max"})


def wrong_address(url: str, schemes: frozenset[str] = SCHEMES) -> str | None:
    """Why this is not the address of a link, in words."""
    parts = _split(url)
    if parts is None or any(character.isspace() or not character.isprintable() for character in url):
        return f"{shown(url)} is not an address"
    if parts.scheme not in schemes:
        return f"{shown(url)} does not begin with one of {', '.join(sorted(schemes))}"
    if parts.scheme in ("http", "https") and not parts.hostname:
        return f"{shown(url)} names no host"
    return None


def has_public_host(url: str) -> bool:
    """Of a web address: its host has a dot, or is this machine; of any other: it has a host at all."""
    parts = _split(url)
    host = (parts and parts.hostname) or ""
    if parts is None or parts.scheme not in ("http", "https"):
        return bool(host)
    return "." in host or host == "localhost"


def shown(url: str) -> str:
    return repr(url if len(url) <= 80 else f"{url[:79]}…")


def _split(url: str) -> SplitResult | None:
    try:
        return urlsplit(url)
    except ValueError:
        return None
