"""Read durations as the database, a rules file or a JSON document writes them."""

import re
from datetime import timedelta
from typing import Any

import msgspec

_PARTS = re.compile(r"(\d+(?:\.\d+)?)\s*(milliseconds?|ms|seconds?|sec|s|minutes?|mins?|m|hours?|h|days?|d)")
_CLOCK = re.compile(r"(?:(\d+) days? )?(\d+):(\d\d):(\d\d(?:\.\d+)?)")
_UNITS = {"ms": "milliseconds", "mi": "minutes", "m": "minutes", "s": "seconds", "h": "hours", "d": "days"}


def read_interval(value: Any) -> timedelta:
    """``12 hours``, ``31m``, ``1 day 02:00:00``, ``PT30M`` or seconds; raises ``ValueError``."""
    try:
        return _read(value)
    except OverflowError:
        raise ValueError(f"{str(value)[:40]!r} is too long a duration") from None


def _read(value: Any) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, int | float):
        return timedelta(seconds=value)
    text = str(value).strip().lower()
    if clock := _CLOCK.fullmatch(text):
        days, hours, minutes, seconds = (float(part or 0) for part in clock.groups())
        return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    parts = _PARTS.findall(text)
    if parts and not re.sub(r"\s+", "", _PARTS.sub("", text)):
        return sum((_part(float(count), unit) for count, unit in parts), timedelta())
    try:
        return msgspec.convert(text.upper(), timedelta)
    except msgspec.ValidationError:
        raise ValueError(f"{str(value)[:40]!r} is no duration; write one like '30 minutes' or '12 hours'") from None


def _part(count: float, unit: str) -> timedelta:
    name = "milliseconds" if unit.startswith(("ms", "milli")) else _UNITS[unit[0]]
    return timedelta(**{name: count})
