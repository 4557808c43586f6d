"""Which URLs are allowed in links."""

import re
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from autopost_runtime.fetch.addresses import is_public
from autopost_runtime.secrets.redaction import quoted

BARE_ADDRESS = re.compile(r"https?://[^\s<>`*|\[\]()\\]*[^\s<>`*|\[\]()\\_~+^.,!?;:'\"]")
"""A URL in Markdown, up to what may be a mark, without the punctuation after it."""
SCHEMES = frozenset({"http", "https", "mailto", "tel", "tg", "max"})


def wrong_address(url: str, schemes: frozenset[str] = SCHEMES) -> str | None:
    """Why this URL is not allowed in a link, as text for people."""
    parts = _split(url)
    if parts is None or any(character.isspace() or not character.isprintable() for character in url):
        return f"{shown(url)} is not a valid URL"
    if parts.scheme not in schemes:
        return f"{shown(url)} must begin with one of {', '.join(sorted(schemes))}"
    if parts.scheme in ("http", "https") and (wrong := _wrong_host(parts)):
        return f"{shown(url)} {wrong}"
    return None


def _wrong_host(parts: SplitResult) -> str | None:
    """Why no reader can open a URL with this host and port. Private hosts are allowed, for channels of a company."""
    host = (parts.hostname or "").removesuffix(".")
    if not host:
        return "has no host"
    if host == "localhost" or host.endswith(".localhost"):
        return "leads to the reader's own device; use a public host"
    if not _is_possible(host):
        return "has an invalid host"
    return None if _port_of(parts) else "has an invalid port, allowed are 1 to 65535"


def _is_possible(host: str) -> bool:
    """A host name, an IPv4 address with four numbers, or an IPv6 address."""
    if ":" in host or _is_number(host.rpartition(".")[2]):
        return _is_address(host)
    return len(host) <= _LONGEST_HOST and all(_HOST_LABEL.fullmatch(label) for label in host.split("."))


_LONGEST_HOST = 253
_HOST_LABEL = re.compile(r"[\w-]{1,63}")


def _is_address(host: str) -> bool:
    try:
        return "%" not in host and bool(ip_address(host))
    except ValueError:
        return False


def _port_of(parts: SplitResult) -> int:
    """0 for an impossible port."""
    try:
        return 1 if parts.port is None else parts.port
    except ValueError:
        return 0


def has_public_host(url: str) -> bool:
    """For http and https the host has a dot or is an IPv6 address; for other schemes there is a host."""
    parts = _split(url)
    host = (parts and parts.hostname) or ""
    if parts is None or parts.scheme not in ("http", "https"):
        return bool(host)
    return "." in host or ":" in host


def leads_outside(url: str) -> bool:
    """An http or https URL that may be sent to a platform: its host looks public and it has no credentials.

    Host names are not resolved, because the platform fetches the URL from another network.
    """
    parts = _split(url)
    if parts is None or parts.scheme not in ("http", "https") or parts.username is not None:
        return False
    host = (parts.hostname or "").rstrip(".")
    if ":" in host or _is_number(host.rpartition(".")[2]):
        return _is_public_address(host)
    return "." in host and not host.endswith(_INSIDE)


_INSIDE = (".localhost", ".local", ".internal", ".intranet", ".lan", ".home", ".corp", ".home.arpa")


def _is_number(label: str) -> bool:
    """A host whose last label is a number is an IP address, in any notation."""
    return label.isdigit() or label.startswith("0x")


def _is_public_address(host: str) -> bool:
    try:
        return is_public(ip_address(host))
    except ValueError:
        return False


def shown(url: str) -> str:
    return repr(quoted(url))


def _split(url: str) -> SplitResult | None:
    try:
        return urlsplit(url)
    except ValueError:
        return None
