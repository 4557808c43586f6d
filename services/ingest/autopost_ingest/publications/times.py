"""Times of publications: from a clock on the wall to a moment, and back.

A clock reading that does not exist, or exists twice, because clocks are changed that day, is refused: nobody is to
guess when an advertisement goes out.
"""

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from autopost_contracts.payload import EARLIEST, LATEST
from autopost_runtime.http.problem import HttpProblem

_LOCAL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)?")


def zone_named(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise refused("timezone", "unknown time zone; use a name like Europe/Moscow") from None


def moment_of(at: datetime | None, local: str | None, timezone: str | None) -> datetime:
    """Raises ``HttpProblem`` 422."""
    zone = zone_named(timezone) if timezone is not None else None
    if (at is None) == (local is None):
        raise refused("at", "give either `at` with an offset, or `local` with `timezone`")
    if at is not None:
        return _sane(at, "at")
    if zone is None:
        raise refused("timezone", "is needed with `local`; or use `at` with an offset")
    return _on_the_wall(_sane(_parsed(local or ""), "local"), zone)


def in_zone(moment: str, timezone: str | None) -> str | None:
    """The same moment as people of the zone read it; ``None`` when the zone is not known here."""
    try:
        return datetime.fromisoformat(moment).astimezone(ZoneInfo(timezone or "UTC")).isoformat()
    except (KeyError, ValueError, OSError):
        return None


def refused(field: str, words: str, **more: object) -> HttpProblem:
    return HttpProblem(422, "Unprocessable Content", words, field=field, more=more)


def _parsed(text: str) -> datetime:
    try:
        if not _LOCAL.fullmatch(text):
            raise ValueError
        return datetime.fromisoformat(text)
    except ValueError:
        raise refused("local", "must be a date and a time like 2026-12-01T09:00") from None


def _sane(moment: datetime, field: str) -> datetime:
    if not EARLIEST <= moment.replace(tzinfo=moment.tzinfo or UTC) < LATEST:
        raise refused(field, f"must be in the years {EARLIEST.year} to {LATEST.year - 1}")
    return moment


def _on_the_wall(given: datetime, zone: ZoneInfo) -> datetime:
    clock = given.replace(tzinfo=None)
    readings = [clock.replace(tzinfo=zone, fold=fold) for fold in (0, 1)]
    moments = sorted({reading.astimezone(UTC) for reading in readings})
    real = [moment for moment in moments if moment.astimezone(zone).replace(tzinfo=None) == clock]
    if not real:
        before, after = (moment.astimezone(zone).isoformat() for moment in moments)
        words = f"{clock.isoformat()} does not exist in {zone.key}: clocks are put forward; use {before} or {after}"
        raise refused("local", words, code="local_time_does_not_exist", neighbours=[before, after])
    if given.tzinfo is not None:
        return _with_offset(given, real, zone)
    if len(real) > 1:
        first, second = (moment.astimezone(zone).isoformat() for moment in real)
        words = f"{clock.isoformat()} exists twice in {zone.key}: clocks are put back; use {first} or {second}"
        raise refused("local", words, code="local_time_exists_twice", neighbours=[first, second])
    return real[0]


def _with_offset(given: datetime, real: list[datetime], zone: ZoneInfo) -> datetime:
    moment = given.astimezone(UTC)
    if moment not in real:
        right = " or ".join(one.astimezone(zone).isoformat() for one in real)
        raise refused("local", f"the offset is not the one of {zone.key} at that time; use {right}")
    return moment
