"""When operators are there: hours in the format of ``posting_window``, by the wall clock of a time zone.

{"mon": [["09:00", "21:00"]], …, "holidays": ["2027-01-01"]}; ["22:00", "02:00"] runs over midnight
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_ON_DAY = (
    "в понедельник",
    "во вторник",
    "в среду",
    "в четверг",
    "в пятницу",
    "в субботу",
    "в воскресенье",
)
FURTHEST = 400
WEEK = 7
A_MONDAY = date(2026, 1, 5)


def opens_at(hours: dict[str, Any] | None, timezone: str, at: datetime) -> datetime | None:
    """The first moment, not before ``at``, within the hours; ``at`` itself while open, ``None`` if there is none."""
    if hours is None:
        return at
    zone = ZoneInfo(timezone)
    today = at.astimezone(zone).date()
    for day in (today + timedelta(days=n) for n in range(-1, FURTHEST)):
        openings = [max(opens, at) for opens, closes in _spans(hours, zone, day) if closes > at]
        if openings:
            return min(openings)
    return None


def check_hours(hours: dict[str, Any] | None, timezone: str) -> None:
    """Read every day once; raises for one that cannot be read, and for a name that is no day."""
    zone = ZoneInfo(timezone)
    for name in hours or {}:
        if name not in (*DAYS, "holidays"):
            raise ValueError(f"{name!r} is not one of {', '.join(DAYS)}, holidays")
    for day in (A_MONDAY + timedelta(days=n) for n in range(WEEK)):
        try:
            list(_spans({**(hours or {}), "holidays": ()}, zone, day))
        except (ValueError, TypeError) as exc:
            raise ValueError(f"{DAYS[day.weekday()]}: {exc}") from None


def in_words(opening: datetime | None, timezone: str, at: datetime) -> str:
    """«сегодня в 9:00», «завтра в 9:00», «в среду в 9:00», «25.12 в 9:00»."""
    if opening is None:
        return ""
    zone = ZoneInfo(timezone)
    local, today = opening.astimezone(zone), at.astimezone(zone).date()
    return f"{_day(local.date(), (local.date() - today).days)} в {local.hour}:{local.minute:02}"


def _day(day: date, ahead: int) -> str:
    if ahead < 2:
        return ("сегодня", "завтра")[max(ahead, 0)]
    return _ON_DAY[day.weekday()] if ahead < WEEK else f"{day.day:02}.{day.month:02}"


def _spans(hours: dict[str, Any], zone: ZoneInfo, day: date) -> Iterator[tuple[datetime, datetime]]:
    if day.isoformat() in hours.get("holidays", ()):
        return
    for start, end in hours.get(DAYS[day.weekday()], ()):
        opens, closes = time.fromisoformat(start), _end(end)
        last = day if closes > opens else day + timedelta(days=1)
        yield (
            datetime.combine(day, opens, zone).astimezone(UTC),
            datetime.combine(last, closes, zone).replace(fold=1).astimezone(UTC),
        )


def _end(written: str) -> time:
    return time(0) if written == "24:00" else time.fromisoformat(written)
