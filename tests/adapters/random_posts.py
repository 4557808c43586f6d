"""Random posts and what readers must see of them, computed without the code under test."""

import hashlib
from functools import cache
from typing import Any, Literal

from autopost_contracts.payload import Button, Content, Flags, MediaType, Medium, ParseMode
from harness.telegram_media import png
from hypothesis import strategies as st
from msgspec import Struct

from adapters.media_sources import Bytes

Look = Literal["bold", "italic", "underline", "strike", "spoiler", "highlight", "code", "link"]

WORDS = [
    "word", "Привет", "snake_case", "a<b", "x&y", "&amp;", "5*3", "[x]", "(y)", "1.", "#one", "> two", "back\\slash",
    "a|b", "~", "+1", "^", '"q"', "'s", "🦊", "👩‍👩‍👧", "🇩🇪", "é", "long" * 5, "end.", "two\nlines",
]  # fmt: skip
PARAGRAPHS = ["par\n\nagraph"]
"""In Markdown a look ends with its paragraph."""
ADDRESSES = ["https://a.example/", "https://a.example/?b=1&c_d=2", "http://b.example/path_(x)"]
TAGS = {
    "bold": "b",
    "italic": "i",
    "underline": "u",
    "strike": "s",
    "spoiler": "tg-spoiler",
    "highlight": "mark",
    "code": "code",
}
MARKS = {
    "bold": "**",
    "italic": "*",
    "underline": "++",
    "strike": "~~",
    "spoiler": "||",
    "highlight": "^^",
    "code": "`",
}
PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


class Span(Struct, frozen=True):
    """Words with a look, or without; ``inner`` is bold within."""

    words: str
    look: Look | None = None
    url: str = ""
    inner: str = ""

    @property
    def seen(self) -> str:
        return f"{self.words} {self.inner}" if self.inner else self.words


class Written(Struct, frozen=True):
    spans: tuple[Span, ...]

    @property
    def seen(self) -> str:
        return " ".join(span.seen for span in self.spans)

    def entities(self, marked_up: bool) -> list[tuple[str, str, str]]:
        """Of each: the look, the words it covers, and where it leads."""
        found = []
        for span in self.spans if marked_up else ():
            if span.look:
                found.append((span.look, span.seen, span.url))
            if span.inner:
                found.append(("bold", span.inner, ""))
        return found

    def source(self, mode: ParseMode | None) -> str:
        return " ".join(_WRITE[mode](span) for span in self.spans)


def _html(span: Span) -> str:
    text = _escaped(span.words) + (f" <b>{_escaped(span.inner)}</b>" if span.inner else "")
    if span.look == "link":
        return f'<a href="{_escaped(span.url)}">{text}</a>'
    return f"<{TAGS[span.look]}>{text}</{TAGS[span.look]}>" if span.look else text


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def _markdown(span: Span) -> str:
    text = span.words if span.look == "code" else _backslashed(span.words)
    text += f" **{_backslashed(span.inner)}**" if span.inner else ""
    if span.look == "link":
        return f"[{text}]({span.url})"
    mark = MARKS[span.look] if span.look else ""
    return f"{mark}{text}{mark}"


def _backslashed(text: str) -> str:
    return "".join(f"\\{character}" if character in PUNCTUATION else character for character in text)


_WRITE = {None: lambda span: span.seen, "HTML": _html, "Markdown": _markdown}


class Picture(Struct, frozen=True):
    """An item of media with its bytes."""

    type: MediaType
    content: bytes
    name: str
    content_type: str
    caption: Written | None = None

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def source(self) -> Bytes:
        return Bytes(self.content, self.name, self.content_type)

    def medium(self, mode: ParseMode | None) -> Medium:
        return Medium(
            type=self.type,
            blob_ref=f"sha256:{self.sha256}",
            caption=self.caption.source(mode) if self.caption else "",
            content_type=self.content_type,
            size=len(self.content),
            name=self.name,
        )


class Post(Struct, frozen=True):
    mode: ParseMode | None
    text: Written | None
    media: tuple[Picture, ...]
    buttons: tuple[tuple[Button, ...], ...]
    flags: Flags

    @property
    def written(self) -> list[Written]:
        captions = [one.caption for one in self.media]
        return [one for one in (self.text, *captions) if one]

    def content(self) -> Content:
        return Content(
            type="media" if self.media else "text",
            text=self.text.source(self.mode) if self.text else "",
            parse_mode=self.mode,
            media=tuple(one.medium(self.mode) for one in self.media),
            buttons=self.buttons,
        )


@cache  # to draw from a strategy is cheap, to make one is not
def spans(longest: int, *looks: Look) -> st.SearchStrategy[tuple[Span, ...]]:
    """Between two looks stands a word without one."""
    plain = st.builds(Span, st.lists(st.sampled_from(WORDS + PARAGRAPHS), min_size=1, max_size=4).map(" ".join))
    words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
    code = st.builds(Span, st.sampled_from(["x1", "код", "a b"]), st.just("code"))
    link = st.builds(Span, words, st.just("link"), st.sampled_from(ADDRESSES), st.just("") | words)
    look = st.builds(Span, words, st.sampled_from(looks))
    italic = st.builds(Span, words, st.just("italic"), st.just(""), words)
    pair = st.tuples(st.one_of(code, link, look, italic), plain)
    return st.lists(pair, max_size=longest).map(lambda pairs: tuple(span for two in pairs for span in two))


_FILES: dict[MediaType, list[tuple[str, str]]] = {
    "video": [("clip.mp4", "video/mp4")],
    "animation": [("moves.gif", "image/gif"), ("moves.mp4", "video/mp4")],
    "audio": [("song.mp3", "audio/mpeg")],
    "file": [("paper.pdf", "application/pdf"), ("счёт «1».txt", "text/plain")],
}


_COUNTS = st.sampled_from([0, 0, 1, 1, 2, 3, 5, 13])
_KINDS = st.sampled_from(list[MediaType](["image", "image", "video", "animation", "audio", "file"]))
_HEIGHTS = st.integers(20, 60)
_BYTES = st.binary(max_size=64)
_NAMES = {kind: st.sampled_from(names) for kind, names in _FILES.items()}
_MODES = st.sampled_from([None, "HTML", "Markdown"])
_FLAGS = st.builds(Flags, st.booleans(), st.booleans())
_BUTTON = st.builds(Button, st.sampled_from(["Go", "Читать 🦊", "a<b"]), st.sampled_from(ADDRESSES))
_ROWS = st.just(()) | st.lists(st.lists(_BUTTON, min_size=1, max_size=3).map(tuple), max_size=3).map(tuple)
_MAYBE = st.booleans()


@st.composite
def posts(draw: st.DrawFn, *looks: Look) -> Post:
    """Each text begins with a name of its own, so that it can be told from the others."""
    media = tuple(_picture(draw, number, looks) for number in range(draw(_COUNTS)))
    has_text = not media or draw(_MAYBE)
    text = Written((Span("«text»"), *draw(spans(8, *looks)))) if has_text else None
    return Post(mode=draw(_MODES), text=text, media=media, buttons=draw(_ROWS), flags=draw(_FLAGS))


def _picture(draw: st.DrawFn, number: int, looks: tuple[Look, ...]) -> Picture:
    kind = draw(_KINDS)
    caption = Written((Span(f"«{number}»"), *draw(spans(3, *looks)))) if draw(_MAYBE) else None
    if kind == "image":
        content = png(40 + number, draw(_HEIGHTS), shade=number)
        return Picture(kind, content, f"picture{number}.png", "image/png", caption)
    name, content_type = draw(_NAMES[kind])
    return Picture(kind, draw(_BYTES) + bytes([number]), name, content_type, caption)


def entities_of(post: Post) -> list[tuple[str, str, str]]:
    return [one for text in post.written for one in text.entities(post.mode is not None)]


def squeezed(text: str) -> str:
    """Without whitespace: it is lost where a text is cut, and nowhere else is it judged here."""
    return "".join(text.split())


def any_settings() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"overflow": st.sampled_from(["split", "split", "fail", "truncate"]), "buttons_text": st.just("⟦buttons⟧")},
        optional={
            "protect": st.booleans(),
            "caption_above": st.booleans(),
            "preview_size": st.sampled_from(["small", "large"]),
            "preview_above": st.booleans(),
        },
    )
