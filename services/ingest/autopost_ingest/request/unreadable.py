"""Say what is wrong with a body that could not be read, and where."""

import re
from collections.abc import Mapping
from typing import get_args, get_type_hints

import msgspec
from autopost_runtime.config.suggestions import suggest
from autopost_runtime.http.strict_json import MAX_PATH_LENGTH, InvalidJson
from autopost_runtime.http.web import HttpProblem
from autopost_runtime.secrets.redaction import quoted

UNREADABLE = (InvalidJson, msgspec.DecodeError, RecursionError)

Objects = Mapping[str, type[msgspec.Struct]]
"""The structs of a body by their path without indexes."""

_WHERE = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")
_VALUE = re.compile(r"value '(?P<value>.*)'", re.DOTALL)
_INDEX = re.compile(r"\[[^]]*\]")
_WRONG = re.compile(r"Invalid enum value '(?P<value>.*)'", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>[^`]*)`")


def unreadable(exc: Exception, objects: Objects) -> HttpProblem:
    match exc:
        case InvalidJson():
            return HttpProblem(400, "Bad Request", exc.reason, field=exc.place or None)
        case msgspec.ValidationError():
            detail, field = _located(str(exc), objects)
            return HttpProblem(400, "Bad Request", detail, field=field)
        case _:
            return HttpProblem(400, "Bad Request", f"the body is not valid JSON: {quoted(str(exc))}")


def _located(message: str, objects: Objects) -> tuple[str, str | None]:
    """Split the message of msgspec into detail and path."""
    where = _WHERE.search(message)
    path = where["path"] if where else ""
    detail = _WHERE.sub("", message)
    if unknown := _UNKNOWN.search(detail):
        known = objects[_INDEX.sub("", path)].__struct_fields__
        detail = f"unknown field; {suggest(unknown['name'], known)}"
        path = f"{path}.{quoted(unknown['name'])}".lstrip(".")
    if wrong := _WRONG.search(detail):
        known = _values_of(path, objects)
        return f"unknown value {quoted(wrong['value'])!r}; {suggest(wrong['value'], known)}", path[:MAX_PATH_LENGTH]
    detail = _VALUE.sub(lambda found: f"value {quoted(found['value'])!r}", detail)
    return detail, path[:MAX_PATH_LENGTH] or None


def _values_of(path: str, objects: Objects) -> tuple[str, ...]:
    """The values of an enumerated field."""
    parent, _, name = _INDEX.sub("", path).rpartition(".")
    return tuple(_literals(get_type_hints(objects[parent])[name]))


def _literals(kind: object) -> list[str]:
    """The strings of every ``Literal`` in a type."""
    return [found for part in get_args(kind) for found in ([part] if isinstance(part, str) else _literals(part))]
