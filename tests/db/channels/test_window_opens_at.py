"""Posting windows on the wall clock of the channel, through midnight, holidays and both changes of the clock."""

import json
from datetime import datetime

import asyncpg
import pytest
from db.support.builders import NEVER

DAYTIME = {day: [["09:00", "21:00"]] for day in ("mon", "tue", "wed", "thu", "fri")}
LUNCH = {"mon": [["09:00", "13:00"], ["14:00", "18:00"]]}
NIGHT = {"fri": [["22:00", "02:00"]], "sat": [["22:00", "02:00"]]}
EVERY = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def daily(*windows: tuple[str, str]) -> dict[str, list[list[str]]]:
    return {day: [list(window) for window in windows] for day in EVERY}


# 2026-11-16 is a Monday. name: (window, zone, at, opens)
TABLE = {
    "open now": (DAYTIME, "Europe/Moscow", "2026-11-16 12:00+03", "2026-11-16 12:00+03"),
    "opens on the dot": (DAYTIME, "Europe/Moscow", "2026-11-16 09:00+03", "2026-11-16 09:00+03"),
    "closed on the dot": (DAYTIME, "Europe/Moscow", "2026-11-16 21:00+03", "2026-11-17 09:00+03"),
    "before opening": (DAYTIME, "Europe/Moscow", "2026-11-16 08:59+03", "2026-11-16 09:00+03"),
    "over the weekend": (DAYTIME, "Europe/Moscow", "2026-11-20 21:30+03", "2026-11-23 09:00+03"),
    "without a zone it is UTC": (DAYTIME, None, "2026-11-16 08:00+00", "2026-11-16 09:00+00"),
    "the day is the channel's, not ours": (DAYTIME, "Asia/Vladivostok", "2026-11-15 22:00+00", "2026-11-15 23:00+00"),
    "the other side of the date line": (DAYTIME, "America/New_York", "2026-11-17 01:00+00", "2026-11-17 01:00+00"),
    "between two windows": (LUNCH, "UTC", "2026-11-16 13:30+00", "2026-11-16 14:00+00"),
    "in the second window": (LUNCH, "UTC", "2026-11-16 15:00+00", "2026-11-16 15:00+00"),
    "once a week": (LUNCH, "UTC", "2026-11-16 18:00+00", "2026-11-23 09:00+00"),
    "windows out of order": (
        {"mon": [["14:00", "18:00"], ["09:00", "13:00"]]},
        "UTC",
        "2026-11-16 08:00+00",
        "2026-11-16 09:00+00",
    ),
    "over midnight, before": (NIGHT, "UTC", "2026-11-20 23:00+00", "2026-11-20 23:00+00"),
    "over midnight, after": (NIGHT, "UTC", "2026-11-21 01:59+00", "2026-11-21 01:59+00"),
    "over midnight, over": (NIGHT, "UTC", "2026-11-21 02:00+00", "2026-11-21 22:00+00"),
    "the night of the last day": (NIGHT, "UTC", "2026-11-22 01:00+00", "2026-11-22 01:00+00"),
    "until midnight": ({"mon": [["20:00", "00:00"]]}, "UTC", "2026-11-16 23:59+00", "2026-11-16 23:59+00"),
    "until 24:00": ({"mon": [["20:00", "24:00"]]}, "UTC", "2026-11-16 23:59+00", "2026-11-16 23:59+00"),
    "round the clock": (daily(("00:00", "24:00")), "Europe/Berlin", "2026-03-29 00:59+00", "2026-03-29 00:59+00"),
    "a holiday opens nothing": (
        DAYTIME | {"holidays": ["2026-11-16"]},
        "UTC",
        "2026-11-16 12:00+00",
        "2026-11-17 09:00+00",
    ),
    "a holiday of the channel's day": (
        DAYTIME | {"holidays": ["2026-11-17"]},
        "Asia/Vladivostok",
        "2026-11-16 23:30+00",
        "2026-11-17 23:00+00",
    ),
    "a holiday lets the night before run out": (
        NIGHT | {"holidays": ["2026-11-21"]},
        "UTC",
        "2026-11-21 01:00+00",
        "2026-11-21 01:00+00",
    ),
    "a holiday's own night": (
        NIGHT | {"holidays": ["2026-11-21"]},
        "UTC",
        "2026-11-21 22:30+00",
        "2026-11-27 22:00+00",
    ),
    "no window at all": ({}, "UTC", "2026-11-16 12:00+00", None),
    "only holidays": (
        {
            "mon": [["09:00", "10:00"]],
            "holidays": [f"2026-{m:02}-{d:02}" for m in range(1, 13) for d in range(1, 32)]
            + [f"2027-{m:02}-{d:02}" for m in range(1, 13) for d in range(1, 32)],
        },
        "UTC",
        "2026-11-16 12:00+00",
        None,
    ),
    # Berlin, 2026-03-29: 02:00 CET is 03:00 CEST (01:00 UTC).
    "a gap inside a window": (daily(("01:00", "04:00")), "Europe/Berlin", "2026-03-29 01:30+00", "2026-03-29 01:30+00"),
    "a window ends after the gap": (
        daily(("01:00", "04:00")),
        "Europe/Berlin",
        "2026-03-29 02:00+00",
        "2026-03-29 23:00+00",
    ),
    "a window starts inside the gap": (
        daily(("02:30", "05:00")),
        "Europe/Berlin",
        "2026-03-28 23:00+00",
        "2026-03-29 01:30+00",
    ),
    "a window is the gap": (daily(("02:00", "03:00")), "Europe/Berlin", "2026-03-29 00:30+00", "2026-03-30 00:00+00"),
    "a window ends before it starts": (
        daily(("02:30", "03:15")),
        "Europe/Berlin",
        "2026-03-29 00:30+00",
        "2026-03-30 00:30+00",
    ),
    "the day after the gap": (DAYTIME, "Europe/Berlin", "2026-03-30 06:00+00", "2026-03-30 07:00+00"),
    "the day before the gap": (DAYTIME, "Europe/Berlin", "2026-03-27 07:00+00", "2026-03-27 08:00+00"),
    # Berlin, 2026-10-25: 03:00 CEST is 02:00 CET (01:00 UTC); 02:30 comes at 00:30 and at 01:30 UTC.
    "a window starts in the overlap": (
        daily(("02:30", "04:00")),
        "Europe/Berlin",
        "2026-10-25 00:00+00",
        "2026-10-25 00:30+00",
    ),
    "a window ends in the overlap": (
        daily(("01:00", "02:30")),
        "Europe/Berlin",
        "2026-10-25 01:15+00",
        "2026-10-25 01:15+00",
    ),
    "a window is over after its second end": (
        daily(("01:00", "02:30")),
        "Europe/Berlin",
        "2026-10-25 01:30+00",
        "2026-10-26 00:00+00",
    ),
    # New York, 2026-11-01: 02:00 EDT is 01:00 EST (06:00 UTC); 2026-03-08: 02:00 EST is 03:00 EDT (07:00 UTC).
    "New York, overlap, the first time": (
        daily(("01:30", "01:45")),
        "America/New_York",
        "2026-11-01 05:00+00",
        "2026-11-01 05:30+00",
    ),
    "New York, overlap, the second time": (
        daily(("01:30", "01:45")),
        "America/New_York",
        "2026-11-01 06:35+00",
        "2026-11-01 06:35+00",
    ),
    "New York, gap": (daily(("02:15", "02:45")), "America/New_York", "2026-03-08 06:30+00", "2026-03-08 07:15+00"),
    "Lord Howe falls back by half an hour": (
        daily(("01:45", "03:00")),
        "Australia/Lord_Howe",
        "2026-04-04 14:00+00",
        "2026-04-04 14:45+00",
    ),
}


async def opens_at(connection, window, zone, at):
    return await connection.fetchval("SELECT window_opens_at($1, $2, $3)", json.dumps(window), zone, at)


@pytest.mark.parametrize("session", ["UTC", "America/Sao_Paulo"])
async def test_a_window_opens_when_the_clock_on_the_wall_says_so(database, session):
    connection = await database.connect()
    await connection.execute(f"SET timezone = '{session}'")

    found = {
        name: await opens_at(connection, window, zone, datetime.fromisoformat(at))
        for name, (window, zone, at, _) in TABLE.items()
    }

    assert found == {name: datetime.fromisoformat(row[3]) if row[3] else NEVER for name, row in TABLE.items()}


async def test_at_the_moment_it_names_the_window_is_open(database):
    connection = await database.connect()

    for name, (window, zone, at, _) in TABLE.items():
        found = await opens_at(connection, window, zone, datetime.fromisoformat(at))
        assert await opens_at(connection, window, zone, found) == found, name


async def test_a_channel_paused_for_good_never_opens(tenant):
    channel = await tenant.channel(window_mode="windowed", posting_window=DAYTIME)
    await tenant.backlog(channel, 1)

    await tenant.set_channel(channel, "paused_until = 'infinity'")

    connection = await tenant.db.acquire()
    await connection.execute("SET statement_timeout = '5s'")
    assert await tenant.on(connection).claim() == []
    assert await tenant.next_due_at() == NEVER
    await tenant.db.release(connection)


UNSOUND = {
    "a zone that is none": {"timezone": "Mars/Phobos"},
    "an hour that is none": {"window_mode": "windowed", "posting_window": {"mon": [["09:00", "25:00"]]}},
    "no list of windows": {"window_mode": "windowed", "posting_window": {"mon": "09:00"}},
    "a window without an end": {"window_mode": "windowed", "posting_window": {"mon": [["09:00"]]}},
    "an unknown day": {"window_mode": "windowed", "posting_window": {"monday": [["09:00", "10:00"]]}},
    "a filter that is no list": {"route_filter": {"include_any": "sale"}},
    "a filter that is null": {"route_filter": {"exclude": None}},
    "an unknown filter": {"route_filter": {"include": ["sale"]}},
}


async def test_a_channel_nobody_could_read_is_refused_when_it_is_written(tenant):
    """Later it would fail inside a claim or an enqueue, and stop every other channel with it."""
    for name, columns in UNSOUND.items():
        with pytest.raises(asyncpg.PostgresError) as refusal:
            await tenant.channel(**columns)
        assert refusal.value.sqlstate == "AP009", name

    assert await tenant.count("channels") == 0
