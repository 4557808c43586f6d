"""Refuse unknown and mistyped parameters."""

import re
from typing import Any

import msgspec

from autopost_simulator.telegram.refusal import TelegramError
from autopost_simulator.telegram.request.params import Params
from autopost_simulator.telegram.strict.parameters import PARAMETERS
from autopost_simulator.telegram.strict.structures import STRUCTURES

_TEXTS = {
    "int": re.compile(r"[+-]?[0-9]+"),
    "float": re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?"),
    "bool": re.compile(r"true|false|0|1|yes|no", re.IGNORECASE),
}
_TYPES: dict[str, tuple[type[Any], ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "str": (str,),
    "file": (str,),
    "chat": (int, str),
}
_REPORTED = re.compile(r"Object contains unknown field|Expected `(?:bool|int|float|str|int \| str)`")
"""Where an object or an array is expected, the platform itself refuses something else."""


def refuse_unknown(method: str, params: Params) -> None:
    """What is ``null`` or empty counts as absent, but its name must be known.

    A number may come as text, in JSON too: the Go client sends everything so. ``method`` names the method in the
    answer to a webhook, and Telegraf sends it with every upload.
    """
    known = PARAMETERS.get(method)
    if known is None:
        return
    for name, value in params.items():
        if name not in known and name != "method":
            raise _refused(f"{method} has no parameter `{name}`")
        if value is not None and value != "" and name != "method":
            _check(name, value, known[name])


def _check(name: str, value: Any, kind: str) -> None:
    if kind in STRUCTURES:
        _check_structure(name, value, kind)
    elif isinstance(value, str):
        if kind in _TEXTS and not _TEXTS[kind].fullmatch(value.strip()):
            raise _refused(f"`{name}` must be {kind}, not {value[:40]!r}")
    elif not isinstance(value, _TYPES[kind]) or (kind != "bool" and isinstance(value, bool)):
        raise _refused(f"`{name}` must be {kind}, not {type(value).__name__}")


def _check_structure(name: str, value: Any, kind: str) -> None:
    """Only names and types: everything else is refused by the method in the words of the server."""
    try:
        decoded = msgspec.json.decode(value) if isinstance(value, str) else value
        msgspec.convert(_without_nulls(decoded), STRUCTURES[kind])
    except msgspec.ValidationError as error:
        if _REPORTED.match(str(error)):
            raise _refused(f"`{name}`: {error}") from None
    except msgspec.DecodeError:
        return


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


def _refused(reason: str) -> TelegramError:
    return TelegramError(400, f"Bad Request: strict profile of the simulator: {reason}")
