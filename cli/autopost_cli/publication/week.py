"""The days of a calendar week, as the filters of a list."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import click


class Zone(click.ParamType[ZoneInfo]):
    name = "ZONE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ZoneInfo:
        if isinstance(value, ZoneInfo):
            return value
        try:
            return ZoneInfo(value)
        except (KeyError, ValueError, OSError):
            self.fail(f"{value!r} is not a time zone; write a name like Europe/Moscow", param, ctx)


class Week(click.ParamType[date]):
    """A calendar week, as its Monday."""

    name = "WEEK"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> date:
        if isinstance(value, date):
            return value
        try:
            return datetime.strptime(f"{value}-1", "%G-W%V-%u").date()  # noqa: DTZ007  a date has no zone
        except ValueError:
            self.fail(f"{value!r} is not a week; write 2026-W49", param, ctx)


def bounds(monday: date | None, zone: ZoneInfo) -> tuple[str, str]:
    """From Monday to Monday, as people of the zone have them; without a week, the current one."""
    if monday is None:
        today = datetime.now(UTC).astimezone(zone).date()
        monday = today - timedelta(days=today.weekday())
    ends = (monday, monday + timedelta(days=7))
    begin, end = (datetime.combine(day, time(), tzinfo=zone).astimezone(UTC).isoformat() for day in ends)
    return begin, end


def days(publications: list[dict[str, Any]], zone: ZoneInfo) -> dict[date, list[tuple[str, dict[str, Any]]]]:
    """By day: the time of day in the zone, and the publication."""
    found: dict[date, list[tuple[str, dict[str, Any]]]] = {}
    for publication in publications:
        moment = datetime.fromisoformat(publication["scheduled_at"]).astimezone(zone)
        found.setdefault(moment.date(), []).append((f"{moment:%H:%M}", publication))
    return found
