"""Lay out texts and media as the parts of a plan.

The text becomes the caption of the first item if it fits and the item has no caption; else it is sent before the
media. A caption that is too long is sent as text right before the message with its item.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from autopost_contracts.plan import MediaPart, Part, PlannedMedia, Preview, Problem, TextPart
from autopost_runtime.secrets.redaction import quoted
from msgspec import Struct
from msgspec.structs import replace

from autopost_adapters.markup.marked import Marked
from autopost_adapters.markup.web_links import first_web_link
from autopost_adapters.planning.arrange import arrange
from autopost_adapters.planning.cut_text import Uncuttable, split, truncate
from autopost_adapters.planning.measure import Measure
from autopost_adapters.planning.text import ParsedTexts

Overflow = Literal["fail", "split", "truncate"]


class Layout(Struct, frozen=True, kw_only=True):
    parts: tuple[Part, ...]
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


class _Item(Struct, frozen=True, kw_only=True):
    planned: PlannedMedia
    field: str
    own: Marked
    caption: Marked
    """The caption to send: the text of the post, the item's own, or empty."""


def lay_out(
    words: ParsedTexts,
    media: Sequence[PlannedMedia],
    measure: Measure,
    overflow: Overflow,
    *,
    buttons: bool,
    names_preview: bool,
) -> Layout:
    """``buttons``: the last message must have room for buttons. ``names_preview``: texts name the link to preview."""
    builder = _LayoutBuilder(measure, overflow, names_preview=names_preview)
    if not media:
        builder.add_text(words.text, "text")
        return builder.layout()
    items = [builder.item(planned, index, words.captions[index]) for index, planned in enumerate(media)]
    if not items[0].own.text and measure.fits_caption(words.text):
        items[0] = replace(items[0], caption=words.text)
    elif words.text.text:
        builder.add_text(words.text, "text")
    album = measure.limits.album
    messages = arrange(
        items,
        album,
        type_of=lambda item: item.planned.type,
        is_alone=lambda item: bool(item.own.text) and not album.captions,
        buttons=buttons and album.buttons,
    )
    for message in messages:
        builder.add_message(message)
    return builder.layout()


class _LayoutBuilder:
    """Collects the parts of one post."""

    def __init__(self, measure: Measure, overflow: Overflow, *, names_preview: bool) -> None:
        self.parts: list[Part] = []
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self._measure = measure
        self._overflow = overflow
        self._names_preview = names_preview

    def layout(self) -> Layout:
        return Layout(parts=tuple(self.parts), problems=tuple(self.problems), notes=tuple(self.notes))

    def item(self, planned: PlannedMedia, index: int, own: Marked) -> _Item:
        caption = own if self._measure.fits_caption(own) else Marked("")
        return _Item(planned=planned, field=f"media[{index}].caption", own=own, caption=caption)

    def add_message(self, items: Sequence[_Item]) -> None:
        for item in items:
            if item.own.text and not item.caption.text:
                self.add_text(item.own, item.field)
        self.parts.append(MediaPart(media=tuple(map(self._captioned, items))))

    def add_text(self, marked: Marked, field: str) -> None:
        for piece in self._within_limits(marked, field):
            written = self._measure.write(piece)
            preview = Preview(url=first_web_link(piece)) if self._names_preview else Preview()
            self.parts.append(TextPart(text=written.text, markup=written.markup, preview=preview))

    def _captioned(self, item: _Item) -> PlannedMedia:
        written = self._measure.write(item.caption)
        return replace(item.planned, caption=written.text, markup=written.markup)

    def _within_limits(self, marked: Marked, field: str) -> Iterable[Marked]:
        problem = self._measure.problem(marked, field)
        if problem is None:
            return [marked]
        try:
            return self._cut(marked, field, problem)
        except Uncuttable as exc:
            shown = quoted(str(exc), 40)
            allowed = self._measure.limits.text.text
            reason = f"{shown!r} cannot be split and does not fit into a message of {allowed} characters"
            self.problems.append(Problem("message_too_long", field, reason))
            return []

    def _cut(self, marked: Marked, field: str, problem: Problem) -> Iterable[Marked]:
        longest = self._measure.limits.text.text
        match self._overflow:
            case "fail":
                self.problems.append(problem)
                return []
            case "split":
                return split(marked, self._measure.fits_text, longest)
            case "truncate":
                kept = truncate(marked, self._measure.fits_text, longest)
                self.notes.append(f"{field} was truncated to {len(kept.text) - 1} of {len(marked.text)} characters")
                return [kept]
