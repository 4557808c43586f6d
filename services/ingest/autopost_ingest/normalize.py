"""Normalise a post: one deterministic function, whatever way the post came in.

The hash says that two posts are the same content. Tags, hints, schedules and flags are not content, nor is what follows
from the bytes of a medium. A change to anything here that moves a hash is a new ``HASH_VERSION``.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

import msgspec
from autopost_contracts.payload import Button, Content, Flags, MediaItem, MediaType, Medium, ParseMode, PostRequest
from msgspec import Struct
from msgspec.structs import replace
from w3lib.url import canonicalize_url
from yarl import URL

HASH_VERSION = 1
NORMALIZATION_VERSION = 1

_SPACES = re.compile(r"[^\S\n]+")
_LINE_ENDS = re.compile(" ?\n ?")
_BLANK_LINES = re.compile(r"\n{3,}")
_CODE = {
    "HTML": (re.compile(r"<pre\b", re.IGNORECASE), re.compile(r"</pre\b", re.IGNORECASE)),
    "Markdown": (re.compile("```"), re.compile("```")),
}
_BLOB_REF = re.compile(r"sha256:[0-9a-f]{64}")
_LABEL = "[0-9a-z_-]{1,63}"
_HOST = re.compile(rf"{_LABEL}(\.{_LABEL})*\.?|[0-9a-f.]*:[0-9a-f:.]*(%[\w.~%-]+)?", re.ASCII | re.IGNORECASE)
"""A name in the letters that name servers know, or an address; the parser has looked at what is between brackets."""
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""Parsers disagree about them: some leave them out, and it is another URL."""
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_UNTIDY = ("  ", " \n", "\n ", "\n\n\n")
_SOURCES = ("blob_ref", "file_id", "attachment_token", "url")


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
    content = _content(request)
    if not content.text and not content.links and not content.media:
        raise Refused("text", "a post needs text, links or media")
    tags = _tags(request.tags)
    return Normalized(
        content=content,
        content_hash=content_hash(content),
        tags=tags,
        channel_tags=_tags(request.routing.channel_tags),
        flags=Flags(
            disable_preview=request.disable_preview,
            silent=request.silent,
            protect=request.protect,
            tags=tags,
            fields=request.meta or {},
        ),
    )


def _content(request: PostRequest) -> Content:
    text = _text(request.text or "", request.parse_mode)
    if not request.media and not request.links and not request.buttons:  # as most posts
        return Content(text=text, parse_mode=request.parse_mode)
    return Content(
        type="media" if request.media else "text",
        text=text,
        parse_mode=request.parse_mode,
        media=tuple(_medium(item, request.parse_mode, f"media[{index}]") for index, item in enumerate(request.media)),
        links=_unique(_url(link, f"links[{index}]") for index, link in enumerate(request.links)),
        buttons=_rows(request.buttons),
    )


def content_hash(content: Content) -> str:
    """The same before and after the post's media were looked up."""
    said = replace(content, media=tuple(map(_said, content.media))) if content.media else content
    return sha256(_encode_sorted(said)).hexdigest()


def _said(medium: Medium) -> Medium:
    """What the sender said of it, and nothing that was found out."""
    return Medium(
        type=medium.type,
        blob_ref=medium.blob_ref,
        file_id=medium.file_id,
        attachment_token=medium.attachment_token,
        url=medium.url,
        caption=medium.caption,
    )


def _medium(item: MediaItem, parse_mode: ParseMode | None, field: str) -> Medium:
    named = [name for name in _SOURCES if getattr(item, name) is not None]
    if len(named) != 1:
        raise Refused(field, "expected exactly one of url, blob_ref, file_id and attachment_token")
    [source] = named
    where = f"{field}.{source}"
    value = str(getattr(item, source)).strip()
    if not value:
        raise Refused(where, "it is empty")
    if source == "url":
        _refuse_unfetchable(value, where)
    if source == "blob_ref" and not _BLOB_REF.fullmatch(value):
        raise Refused(where, "expected sha256: and 64 lowercase hexadecimal digits")
    return replace(Medium(type=media_type(item), caption=_text(item.caption or "", parse_mode)), **{source: value})


def media_type(item: MediaItem) -> MediaType:
    match item.type:
        case "photo":
            return "image"
        case "document":
            return "file"
        case known:
            return known


def _refuse_unfetchable(url: str, field: str) -> None:
    """It is kept as it was given: whoever signed it signed every letter of it."""
    _url(url, field)
    if URL(url).user is not None or URL(url).password is not None:
        raise Refused(field, "a URL with credentials in it is not fetched")


def _text(text: str, parse_mode: ParseMode | None = None) -> str:
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    if _is_tidy(text):
        return text.strip()
    bounds = _CODE.get(parse_mode or "")
    pieces = _pieces(text, *bounds) if bounds else [(text, False)]
    return "".join(piece if code else _collapsed(piece) for piece, code in pieces).strip()


def _is_tidy(text: str) -> bool:
    """Nothing in it would collapse: seen at a glance, since most texts are. No space but the plain one is printable."""
    if text.isprintable():
        return "  " not in text
    return text.replace("\n", "").isprintable() and not any(untidy in text for untidy in _UNTIDY)


def _collapsed(text: str) -> str:
    return _BLANK_LINES.sub("\n\n", _LINE_ENDS.sub("\n", _SPACES.sub(" ", text)))


def _pieces(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> Iterator[tuple[str, bool]]:
    """What is code, and what is around it; in code every space counts. Code that never ends is none."""
    at = 0
    while (start := opening.search(text, at)) and (end := closing.search(text, start.end())):
        yield text[at : start.start()], False
        yield text[start.start() : end.end()], True
        at = end.end()
    yield text[at:], False


def _url(text: str, field: str) -> str:
    url = canonical_url(text)
    if url is None:
        raise Refused(field, "expected an absolute http or https URL")
    return url


def canonical_url(text: str) -> str | None:
    """In its one form; ``None`` when it leads nowhere."""
    text = text.strip()
    try:
        url = URL(text)
        if url.scheme in ("http", "https") and _HOST.fullmatch(url.raw_host or "") and not _UNSEEN.search(text):
            return canonicalize_url(str(url), keep_fragments=True)
    except ValueError:
        pass
    return None


def _rows(buttons: tuple[Button | tuple[Button, ...], ...]) -> tuple[tuple[Button, ...], ...]:
    """A button outside a row is a row of its own."""
    rows = (_row(row, f"buttons[{place}]") for place, row in enumerate(buttons))
    return tuple(row for row in rows if row)


def _row(row: Button | tuple[Button, ...], field: str) -> tuple[Button, ...]:
    if isinstance(row, Button):
        return (_button(row, field),)
    return tuple(_button(button, f"{field}[{place}]") for place, button in enumerate(row))


def _button(button: Button, field: str) -> Button:
    return Button(_text(button.text), _url(button.url, f"{field}.url"))


def _tags(tags: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({tag.strip().lower() for tag in tags} - {""})) if tags else ()


def _unique(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))
