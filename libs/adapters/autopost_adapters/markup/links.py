"""Which URLs are allowed in links."""

from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from autopost_runtime.fetch.addresses import is_public
from autopost_runtime.secrets.redaction import quoted

SCHEMES = frozenset({"http", "https", "mailto", "tel", "tg", "max"})


def wrong_address(url: str, schemes: frozenset[str] = SCHEMES) -> str | None:
    """Why this URL is not allowed in a link, as text for people."""
    parts = _split(url)
    if parts is None or any(character.isspace() or not character.isprintable() for character in url):
        return f"{shown(url)} is not a valid URL"
    if parts.scheme not in schemes:
        return f"{shown(url)} must begin with one of {', '.join(sorted(schemes))}"
    if parts.scheme in ("http", "https") and not parts.hostname:
        return f"{shown(url)} has no host"
    return None


def has_public_host(url: str) -> bool:
    """For http and https the host has a dot or is ``localhost``; for other schemes there is a host."""
    parts = _split(url)
    host = (parts and parts.hostname) or ""
    if parts is None or parts.scheme not in ("http", "https"):
        return bool(host)
    return "." in host or host == "localhost"


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
