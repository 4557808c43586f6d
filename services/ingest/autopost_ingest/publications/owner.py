"""The owner of a publication: an address that is told when it is paused or fails, or a name."""

import re
from collections.abc import Callable, Mapping

from yarl import URL

from autopost_ingest.errors import InvalidPost

_CHAT = re.compile(r"-?[0-9]{1,18}|@[A-Za-z][A-Za-z0-9_]{3,31}")
_MAILBOX = re.compile(r"[^@\s,;:?<>\"]{1,64}@[^@\s,;:?<>\"]{1,190}")


def check_owner(owner: str) -> None:
    """Raises ``InvalidPost`` for an address that no notice could reach. Any other text is a name."""
    scheme, colon, rest = owner.partition(":")
    check = _CHECKS.get(scheme.lower()) if colon else None
    if check is not None and (problem := check(owner, rest)):
        raise InvalidPost("owner", problem)


def _chat(_: str, rest: str) -> str | None:
    return None if _CHAT.fullmatch(rest) else "must be like telegram:-1001234567890 or telegram:@name"


def _mailbox(_: str, rest: str) -> str | None:
    return None if _MAILBOX.fullmatch(rest) else "must be one address, like mailto:ads@shop.example"


def _https(owner: str, _: str) -> str | None:
    try:
        url = URL(owner)
        is_sound = bool(url.host and url.port) and owner.isprintable() and " " not in owner
    except ValueError:
        is_sound = False
    if not is_sound:
        return "must be a URL like https://shop.example/hooks/autopost"
    return "must have no user and no password in the URL" if url.user or url.password else None


def _http(_: str, __: str) -> str:
    return "must use https; an http address is not told"


_CHECKS: Mapping[str, Callable[[str, str], str | None]] = {
    "telegram": _chat,
    "mailto": _mailbox,
    "https": _https,
    "http": _http,
}
