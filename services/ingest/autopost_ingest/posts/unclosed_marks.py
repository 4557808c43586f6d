"""Markdown marks without their pair: they are text by definition, and often a mistake."""

from collections.abc import Iterator

from autopost_adapters.markup.markdown import read_markdown_closely
from autopost_contracts.payload import Content
from msgspec import Struct


class UnclosedMark(Struct, frozen=True):
    field: str
    mark: str


class Texts(Struct, frozen=True):
    """The texts of a post, by field."""

    by_field: tuple[tuple[str, str], ...]


def texts_of(content: Content) -> Texts:
    captions = ((f"media[{index}].caption", medium.caption) for index, medium in enumerate(content.media))
    return Texts(tuple((field, text) for field, text in (("text", content.text), *captions) if text))


def unclosed_marks(texts: Texts) -> tuple[UnclosedMark, ...]:
    """The first one of each field."""
    return tuple(_found(texts))


def _found(texts: Texts) -> Iterator[UnclosedMark]:
    for field, text in texts.by_field:
        _, _, mark = read_markdown_closely(text)
        if mark:
            yield UnclosedMark(field, mark)
