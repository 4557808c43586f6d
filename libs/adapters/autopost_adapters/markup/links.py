"""Which addresses a link may lead to."""

from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from autopost_runtime.fetch.addresses import is_public
from autopost_runtime.secrets.redaction import quoted

SCHEMES = frozenset({"http", "https", "mailto", "tel", "tg", "max"})


def wrong_address(url: str, schemes: frozenset[str] = SCHEMES) -> str | None:
    """Why this is not the address of a link, in words."""
    parts = _split(url)
    if parts is None or any(character.isspace() or not character.isprintable() for character in url):
        return f"{shown(url)} is not a valid URL"
    if parts.scheme not in schemes:
        return f"{shown(url)} must begin with one of {', '.join(sorted(schemes))}"
    if parts.scheme in ("http", "https") and not parts.hostname:
        return f"{shown(url)} has no host"
    return None


def has_public_host(url: str) -> bool:
    """Of a web address: its host has a dot, or is this machine; of any other: it has a host at all."""
    parts = _split(url)
    host = (parts and parts.hostname) or ""
    if parts is None or parts.scheme not in ("http", "https"):
        return bool(host)
    return "." in host or host == "localhost"


def leads_outside(url: str) -> bool:
    """A web address that may be given to somebody else: of a public host, as far as it shows, and without credentials.

    Names are not resolved: whoever fetches it does so from elsewhere.
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
    """As the last label of a host: it is an address then, however it is spelled."""
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
