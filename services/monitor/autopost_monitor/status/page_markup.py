"""Build HTML from values: text is always escaped, only files of this package are inserted as they are."""

from collections.abc import Iterable
from html import escape


class Markup:
    """HTML that is safe to insert. Made by ``tag``, and by ``trusted`` for files of this package."""

    __slots__ = ("_html",)

    def __init__(self, html: str) -> None:
        self._html = html

    def __str__(self) -> str:
        return self._html


VOID = frozenset({"meta", "input", "link", "br"})


def tag(element: str, /, *content: object, **attributes: str | int | float | bool | None) -> Markup:
    """``tag("p", "5 < 6", cls="note")``; ``True`` is an attribute without value, ``None`` and ``False`` omit it."""
    opening = "".join([element, *(_attribute(key, value) for key, value in attributes.items())])
    if element in VOID:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{''.join(map(_inside, content))}</{element}>")


def joined(*content: object) -> Markup:
    return Markup("".join(map(_inside, content)))


def trusted(html: str) -> Markup:
    return Markup(html)


def _inside(content: object) -> str:
    match content:
        case None:
            return ""
        case Markup():
            return str(content)
        case str():
            return escape(content)
        case int() | float():
            return escape(str(content))
        case Iterable():
            return "".join(map(_inside, content))
        case _:
            raise TypeError(f"{type(content).__name__} cannot be shown on a page")


def _attribute(key: str, value: str | int | float | bool | None) -> str:
    name = {"cls": "class", "for_": "for"}.get(key, key.replace("_", "-"))
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'
