"""Normalise a post: one deterministic function, whatever way the post came in.

The hash says that two posts are the same content. Tags, hints, schedules and flags are not content. A change to
anything here that moves a hash is a new ``HASH_VERSION``.
"""

import re
import unicodedata
from collections.abc import Iterable
from hashlib import sha256

import msgspec
from autopost_contracts.payload import Button, Content, Flags, PostRequest
from msgspec import Struct
from w3lib.url import canonicalize_url
from yarl import URL

HASH_VERSION = 1
NORMALIZATION_VERSION = 1

_SPACES = re.compile(r"[^\S\n]+")
_BLANK_LINES = re.compile(r"\n{3,}")


class Refused(Exception):  # noqa: N818  named for what happened
    """The post makes no sense; ``field`` says where."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class Normalized(Struct, frozen=True, kw_only=True):
    content: Content
    content_hash: str
    tags: tuple[str, ...]
    channel_tags: tuple[str, ...]
    flags: Flags


def normalize(request: PostRequest) -> Normalized:
    if request.media:
        raise Refused("media", "posts with media are not accepted yet; send text, links and buttons")
    if request.parse_mode == "Markdown":
        raise Refused("parse_mode", "Markdown is not accepted yet; send HTML, or text without markup")
    content = Content(
        text=_text(request.text or ""),
        parse_mode=request.parse_mode,
        links=_unique(_url(link, f"links[{index}]") for index, link in enumerate(request.links)),
        buttons=_rows(request.buttons),
    )
    if not content.text and not content.links:
        raise Refused("text", "a post needs text, links or media")
    return Normalized(
        content=content,
        content_hash=content_hash(content),
        tags=_tags(request.tags),
        channel_tags=_tags(request.routing.channel_tags),
        flags=Flags(disable_preview=request.disable_preview, silent=request.silent),
    )


def content_hash(content: Content) -> str:
    return sha256(msgspec.json.encode(content, order="sorted")).hexdigest()


def _text(text: str) -> str:
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    lines = (_SPACES.sub(" ", line).strip() for line in text.split("\n"))
    return _BLANK_LINES.sub("\n\n", "\n".join(lines)).strip()


def _url(text: str, field: str) -> str:
    try:
        url = URL(text.strip())
        if url.scheme not in ("http", "https") or not url.host:
            raise Refused(field, "expected an absolute http or https URL")
        return canonicalize_url(str(url), keep_fragments=True)
    except ValueError:
        raise Refused(field, "expected an absolute http or https URL") from None


def _rows(buttons: tuple[Button | tuple[Button, ...], ...]) -> tuple[tuple[Button, ...], ...]:
    """A button outside a row is a row of its own."""
    rows = [row if isinstance(row, tuple) else (row,) for row in buttons]
    return tuple(
        tuple(Button(_text(button.text), _url(button.url, f"buttons[{place}].url")) for button in row)
        for place, row in enumerate(rows)
        if row
    )


def _tags(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({tag.strip().lower() for tag in tags} - {""}))


def _unique(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))
