"""Liquid with bounded time and memory, and a deterministic result.

The limits of the library stop big outputs and long loops. They do not stop one filter that makes gigabytes from two
short strings, nor a sequence of many short loops. So work is counted here, in characters. It is not timed, because a
template must not fail on a busy machine and pass on an idle one. Filters that read the clock are removed.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from typing import Any, cast

from liquid import BoundTemplate, Environment, RenderContext
from liquid.exceptions import LiquidError
from markupsafe import Markup

LONGEST_TEMPLATE = 16 * 1024
LONGEST_TEXT = 64 * 1024
LONGEST_LIST = 1000
BIGGEST_NUMBER = 10**30
WORK = 4_000_000
STEP = 50
"""The base cost of a step."""

FILTERS = frozenset(
    {
        *("append", "capitalize", "downcase", "escape", "escape_once", "lstrip", "newline_to_br", "prepend", "remove"),
        *("remove_first", "remove_last", "replace", "replace_first", "replace_last", "rstrip", "slice", "split"),
        *("squish", "strip", "strip_newlines", "truncate", "truncatewords", "upcase", "url_encode"),
        *("compact", "concat", "find", "first", "has", "join", "last", "map", "reject", "reverse", "size", "sort"),
        *("sort_natural", "sum", "uniq", "where"),
        *("abs", "at_least", "at_most", "ceil", "divided_by", "floor", "minus", "modulo", "plus", "round", "times"),
        "default",
    }
)
"""Without ``date``, which reads the clock, ``strip_html``, which is quadratic, and filters of no use in a post."""


_GAP = re.compile(r"\s{100}")
_OPENING = re.compile(r"\{[{%]")


class TooMuch(LiquidError):  # noqa: N818  named for what happened
    def __init__(self, what: str) -> None:
        super().__init__(what, token=None)


class _Context(RenderContext):
    __slots__ = ("work",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.work = 0

    def spend(self, work: int) -> None:
        self.work += work
        if self.work > WORK:
            raise TooMuch("the template takes too many steps")

    def get(self, *args: Any, **kwargs: Any) -> object:
        found = super().get(*args, **kwargs)
        self.spend(STEP + _size(found))
        return found

    def assign(self, key: str, val: Any) -> None:
        self.spend(STEP * len(self.locals))  # the library sums the sizes of all locals
        super().assign(key, val)

    def raise_for_loop_limit(self, length: int = 1) -> None:
        """Each iteration may run the whole template."""
        self.spend(length * (STEP + len(cast("Template", self.template).source)))
        super().raise_for_loop_limit(length)


class Template(BoundTemplate):
    context_class = _Context
    source = ""
    names: frozenset[str] = frozenset()
    """The variables that it uses."""


class _BoundedEnvironment(Environment):
    template_class = Template
    output_stream_limit = LONGEST_TEXT
    loop_iteration_limit = LONGEST_LIST
    local_namespace_limit = LONGEST_TEXT
    context_depth_limit = 10

    def setup_tags_and_filters(self, *, extra: bool = False) -> None:
        super().setup_tags_and_filters(extra=extra)
        for name in ("include", "render"):
            del self.tags[name]
        self.filters = {name: _bounded(name, self.filters[name]) for name in FILTERS}


@lru_cache(maxsize=256)
def parse(body: str, *, is_html: bool) -> Template:
    """In HTML all values are escaped on output, except ``Markup``."""
    if len(body) > LONGEST_TEMPLATE:
        raise TooMuch(f"a template must not be longer than {LONGEST_TEMPLATE} characters")
    _check_marks(body)
    template = cast("Template", _BoundedEnvironment(autoescape=is_html).from_string(body))
    template.source = body
    template.names = frozenset(template.global_variables())
    return template


def _check_marks(body: str) -> None:
    """Reject input for which the library's parser takes quadratic time or more."""
    if _GAP.search(body):
        raise TooMuch("a template must not have 100 spaces in a row")
    end = 0
    while opening := _OPENING.search(body, end):
        end = body.find("}}" if opening[0] == "{{" else "%}", opening.end()) + 2
        if end < 2:
            raise TooMuch(f"{opening[0]} at character {opening.start()} is not closed")


def _bounded(name: str, call: Callable[..., object]) -> Callable[..., object]:
    needs_context = getattr(call, "with_context", False)
    expected_size = _EXPECTED_SIZE.get(name)

    @wraps(call)
    def bounded(value: object, *args: object, context: _Context, **kwargs: object) -> object:
        context.spend(STEP + _size(value) + sum(map(_size, args)))
        if expected_size:
            _check(expected_size(value, *args))
        if needs_context:
            kwargs["context"] = context
        made = call(value, *args, **kwargs)
        _check(_size(made))
        return made

    bounded.with_context = True  # type: ignore[attr-defined]
    return bounded


def _check(size: int) -> None:
    if size > LONGEST_TEXT:
        raise TooMuch("a value is too long")


def _replaced(value: object, old: object = "", new: object = "", *_: object) -> int:
    text, sought = str(value), str(old)
    return len(text) + text.count(sought) * len(str(new))


def _joined(value: object, between: object = " ", *_: object) -> int:
    _size(value)
    items = value if isinstance(value, list | tuple | range) else ()
    return len(items) * len(str(between)) + sum(_size(item) for item in items)


_EXPECTED_SIZE: Mapping[str, Callable[..., int]] = {"replace": _replaced, "join": _joined}
"""The output of these filters can be far longer than their input, so its size is computed first."""


def _size(value: object) -> int:
    """The approximate size in characters."""
    match value:
        case str():
            return len(value)
        case list() | tuple() | range():
            if len(value) > LONGEST_LIST:
                raise TooMuch("a list is too long")
            return len(value) if isinstance(value, range) else sum(map(_size, value)) + len(value)
        case dict():
            return sum(map(_size, value.values())) + len(value)
        case int() | float() if abs(value) > BIGGEST_NUMBER:
            raise TooMuch("a number is too large")
        case _:
            return 1


__all__ = ["LONGEST_TEXT", "LiquidError", "Markup", "TooMuch", "parse"]
