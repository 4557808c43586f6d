"""Parse and print times and durations: `90s`, `15m`, `2h`, `3d`, `2026-11-16T15:00Z`."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
FOREVER = "infinity"


class Duration(click.ParamType[timedelta]):
    name = "DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        if not (found := re.fullmatch(r"([1-9][0-9]{0,5})([smhd])", value)):
            self.fail(f"{value!r} is not a duration; write 90s, 15m, 2h or 3d", param, ctx)
        return timedelta(**{UNITS[found[2]]: int(found[1])})


class Moment(click.ParamType[datetime]):
    """A time (UTC without a zone), or a duration before now."""

    name = "TIME|DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        if re.fullmatch(r"[0-9]+[smhd]", value):
            return datetime.now(UTC) - Duration().convert(value, param, ctx)
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a time; write 2026-11-16T15:00Z, or 2h for two hours ago", param, ctx)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def shown(value: Any) -> str:
    """A value as text for a table."""
    if value is None or value == "":
        return "-"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%SZ")
    return " ".join(str(value).split())
