"""Normalise a post: one deterministic function for posts from any source.

Equal hashes mean equal content. Tags, hints, schedules and flags are not content, nor is anything derived from the
bytes of a medium. A change here that changes a hash needs a new ``HASH_VERSION``.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

import msgspec
from autopost_adapters.markup.markdown import code_spans
from autopost_adapters.markup.marked import EDGE
from autopost_adapters.markup.visible import is_visible
from autopost_contracts.payload import (
    LONGEST_LINK,
    Button,
    Content,
    Flags,
    MediaItem,
    MediaType,
    Medium,
    ParseMode,
    PostButton,
    PostRequest,
)
from msgspec import Struct
from msgspec.structs import replace
from w3lib.url import canonicalize_url
from yarl import URL

from autopost_ingest.errors import InvalidPost
from autopost_ingest.posts.text_limits import LONGEST_TEXT, MOST_MARKS, has_too_many_marks

HASH_VERSION = 2
NORMALIZATION_VERSION = 2

_LINE_BREAKS = re.compile("\r\n?|[\x85\u2028\u2029]")
"""Telegram removes the separators that word processors write, and with them the space between two lines."""
_SPACES = re.compile(r"[ \t\v\f\x1c-\x1f]+")
"""Non-breaking spaces and spaces of a special width are kept, because senders use them on purpose."""
_LINE_ENDS = re.compile(" ?\n ?")
_LIST_INDENT = re.compile(r"(?:(?<=\n)|(?<=\n>))([ \t]++)(?=(?:[-*+•◦▪‣·–—]|[0-9]{1,9}[.)])[ \t])")
"""Before an item it is kept, in a quote too: it shows which list is inside which."""
_TAB = 4
_BLANK_LINES = re.compile(r"\n{3,}")
_CODE_BEGINS = re.compile(r"<(pre|code)\b", re.IGNORECASE)
_CODE_ENDS = {tag: re.compile(rf"</{tag}\b", re.IGNORECASE) for tag in ("pre", "code")}
_BLOB_REF = re.compile(r"sha256:[0-9a-f]{64}")
_LABEL = "[0-9a-z_-]{1,63}"
_HOST = re.compile(rf"{_LABEL}(\.{_LABEL})*\.?|[0-9a-f.]*:[0-9a-f:.]*(%[\w.~%-]+)?", re.ASCII | re.IGNORECASE)
"""An ASCII host name or an IP address; the URL parser has already checked the part in brackets."""
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""Some parsers drop these characters, which gives a different URL."""
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_UNTIDY = ("  ", " \n", "\n ", "\n\n\n")
_SOURCES = ("blob_ref", "file_id", "attachment_token", "url")


class Normalized(Struct, frozen=True, kw_only=True):
    content: Content
    content_hash: str
    tags: tuple[str, ...]
    channel_tags: tuple[str, ...]
    flags: Flags


def normalize(request: PostRequest) -> Normalized:
    content = _content(request)
    if not content.links and not content.media and not is_visible(content.text):
        raise InvalidPost("text", "must not be empty unless the post has links or media")
    tags, channel_tags = routing_tags(request)
    return Normalized(
        content=content,
        content_hash=content_hash(content),
        tags=tags,
        channel_tags=channel_tags,
        flags=Flags(
            disable_preview=request.disable_preview,
            silent=request.silent,
            protect=request.protect,
            thread=request.routing.thread,
            tags=tags,
            fields=request.meta or {},
        ),
    )


def routing_tags(request: PostRequest) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tags of the post, and the channel tags of its routing."""
    return _tags(request.tags), _tags(request.routing.channel_tags)


def _content(request: PostRequest) -> Content:
    text = _text(request.text or "", "text", request.parse_mode)
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
    """The hash is the same before and after the look-up of the media."""
    hashed = replace(content, media=tuple(map(_sender_fields, content.media))) if content.media else content
    return sha256(_encode_sorted(hashed)).hexdigest()


def _sender_fields(medium: Medium) -> Medium:
    """Only the fields of the sender, without properties found later."""
    return Medium(
        type=medium.type,
        blob_ref=medium.blob_ref,
        file_id=medium.file_id,
        attachment_token=medium.attachment_token,
        url=None if medium.url is None or medium.blob_ref else canonical_url(medium.url),
        caption=medium.caption,
    )


def _medium(item: MediaItem, parse_mode: ParseMode | None, field: str) -> Medium:
    named = [name for name in _SOURCES if getattr(item, name) is not None]
    if len(named) != 1:
        raise InvalidPost(field, "must have exactly one of url, blob_ref, file_id and attachment_token")
    [source] = named
    where = f"{field}.{source}"
    value = str(getattr(item, source)).strip()
    if not value:
        raise InvalidPost(where, "must not be empty")
    if source == "url":
        _refuse_unfetchable(value, where)
    if source == "blob_ref" and not _BLOB_REF.fullmatch(value):
        raise InvalidPost(where, "must be sha256: followed by 64 lowercase hexadecimal digits")
    return replace(
        Medium(type=media_type(item), caption=_text(item.caption or "", f"{field}.caption", parse_mode)),
        **{source: value},
    )


def media_type(item: MediaItem) -> MediaType:
    match item.type:
        case "photo":
            return "image"
        case "document":
            return "file"
        case known:
            return known


def _refuse_unfetchable(url: str, field: str) -> None:
    """The URL itself is stored unchanged: a signed URL must keep every character."""
    _url(url, field)
    if URL(url).user is not None or URL(url).password is not None:
        raise InvalidPost(field, "must not contain a user name or password")


def _refuse_unusable(text: str, field: str) -> None:
    """Checked before NFC, whose run time is quadratic in the length of a run of marks."""
    if len(text) > LONGEST_TEXT:
        raise InvalidPost(field, f"must not be longer than {LONGEST_TEXT} characters; this one has {len(text)}")
    if has_too_many_marks(text):
        raise InvalidPost(field, f"must not have more than {MOST_MARKS} combining marks in a row")


def _text(text: str, field: str, parse_mode: ParseMode | None = None) -> str:
    _refuse_unusable(text, field)
    text = unicodedata.normalize("NFC", text if text.isprintable() else _LINE_BREAKS.sub("\n", text))
    if _is_tidy(text):
        return text.strip(EDGE)
    return "".join(piece if code else _collapsed(piece) for piece, code in _pieces(text, parse_mode)).strip(EDGE)


def _is_tidy(text: str) -> bool:
    """No whitespace would collapse. A fast check that most texts pass: the only printable space is the plain one."""
    if text.isprintable():
        return "  " not in text
    return text.replace("\n", "").isprintable() and not any(untidy in text for untidy in _UNTIDY)


def _collapsed(text: str) -> str:
    texts_and_indents = _LIST_INDENT.split(text)
    texts_and_indents[::2] = map(_without_gaps, texts_and_indents[::2])
    texts_and_indents[1::2] = [indent.expandtabs(_TAB) for indent in texts_and_indents[1::2]]
    return "".join(texts_and_indents)


def _without_gaps(text: str) -> str:
    return _BLANK_LINES.sub("\n\n", _LINE_ENDS.sub("\n", _SPACES.sub(" ", text)))


def _pieces(text: str, parse_mode: ParseMode | None) -> Iterator[tuple[str, bool]]:
    """Split into code and other text; whitespace in code is kept."""
    at = 0
    for start, end in _code(text, parse_mode):
        yield text[at:start], False
        yield text[start:end], True
        at = end
    yield text[at:], False


def _code(text: str, parse_mode: ParseMode | None) -> Iterable[tuple[int, int]]:
    match parse_mode:
        case "HTML":
            return _code_in_html(text)
        case "Markdown":
            return code_spans(text)
        case None:
            return ()


def _code_in_html(text: str) -> Iterator[tuple[int, int]]:
    """An unclosed code tag is not code."""
    at, unclosed = 0, set[str]()
    while begins := _CODE_BEGINS.search(text, at):
        at, tag = begins.end(), begins[1].lower()
        ends = None if tag in unclosed else _CODE_ENDS[tag].search(text, at)
        if ends is None:
            unclosed.add(tag)
        else:
            at = ends.end()
            yield begins.start(), at


def _url(text: str, field: str) -> str:
    _refuse_unusable(text, field)
    url = canonical_url(text)
    if url is None:
        raise InvalidPost(field, "must be an absolute http or https URL")
    return url


def canonical_url(text: str) -> str | None:
    """The canonical form; ``None`` when it is not a usable URL."""
    text = text.strip()
    try:
        url = URL(text)
        if url.scheme in ("http", "https") and _HOST.fullmatch(url.raw_host or "") and not _UNSEEN.search(text):
            return canonicalize_url(str(url), keep_fragments=True)
    except ValueError:
        pass
    return None


def _rows(buttons: tuple[PostButton | tuple[PostButton, ...], ...]) -> tuple[tuple[Button, ...], ...]:
    """A button outside a row becomes its own row."""
    rows = (_row(row, f"buttons[{place}]") for place, row in enumerate(buttons))
    return tuple(row for row in rows if row)


def _row(row: PostButton | tuple[PostButton, ...], field: str) -> tuple[Button, ...]:
    if isinstance(row, PostButton):
        return (_button(row, field),)
    return tuple(_button(button, f"{field}[{place}]") for place, button in enumerate(row))


def _button(button: PostButton, field: str) -> Button:
    """The encoded URL must fit the limit too, because readers of a plan rely on it."""
    url = _url(button.url, f"{field}.url")
    if len(url) > LONGEST_LINK:
        raise InvalidPost(f"{field}.url", f"must not be longer than {LONGEST_LINK} characters when percent-encoded")
    return Button(_text(button.text, f"{field}.text"), url)


def _tags(tags: Sequence[str]) -> tuple[str, ...]:
    """As ``canonical_tags`` of the database; a final sigma is an ordinary one."""
    return tuple(sorted({tag.strip().lower().replace("ς", "σ") for tag in tags} - {""})) if tags else ()


def _unique(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))
