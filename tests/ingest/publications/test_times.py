"""From a clock on the wall to a moment: the days on which clocks are changed, and other traps."""

from datetime import UTC, datetime

import pytest
from autopost_ingest.publications.times import moment_of
from autopost_runtime.http.problem import HttpProblem

BERLIN, LORD_HOWE, APIA = "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia"


@pytest.mark.parametrize(
    ("local", "zone", "utc"),
    [
        ("2026-12-01T09:00", "Europe/Moscow", "2026-12-01T06:00"),
        ("2026-12-01T09:00:30", "Asia/Kolkata", "2026-12-01T03:30:30"),
        ("2026-03-29T01:59", BERLIN, "2026-03-29T00:59"),
        ("2026-03-29T03:00", BERLIN, "2026-03-29T01:00"),
        ("2026-10-25T02:30+02:00", BERLIN, "2026-10-25T00:30"),
        ("2026-10-25T02:30+01:00", BERLIN, "2026-10-25T01:30"),
        ("2026-10-25T03:00", BERLIN, "2026-10-25T02:00"),
        ("2026-12-01T09:00Z", "UTC", "2026-12-01T09:00"),
        ("2026-04-05T01:45+11:00", LORD_HOWE, "2026-04-04T14:45"),
    ],
)
def test_a_clock_reading_is_one_moment(local, zone, utc):
    assert moment_of(None, local, zone) == datetime.fromisoformat(utc).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("local", "zone", "code", "neighbours"),
    [
        (
            *("2026-03-29T02:30", BERLIN, "local_time_does_not_exist"),
            ["2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00"],
        ),
        (
            *("2026-03-29T02:30+01:00", BERLIN, "local_time_does_not_exist"),
            ["2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00"],
        ),
        (
            *("2026-10-25T02:30", BERLIN, "local_time_exists_twice"),
            ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"],
        ),
        (
            *("2026-10-04T02:15", LORD_HOWE, "local_time_does_not_exist"),
            ["2026-10-04T01:45:00+10:30", "2026-10-04T02:45:00+11:00"],
        ),
        (
            *("2011-12-30T12:00", APIA, "local_time_does_not_exist"),
            ["2011-12-29T12:00:00-10:00", "2011-12-31T12:00:00+14:00"],
        ),
    ],
)
def test_a_reading_that_clocks_skip_or_show_twice_is_refused_with_the_two_that_may_be_meant(
    local, zone, code, neighbours
):
    with pytest.raises(HttpProblem) as refused:
        moment_of(None, local, zone)

    assert (refused.value.status, refused.value.field) == (422, "local")
    assert refused.value.more == {"code": code, "neighbours": neighbours}


@pytest.mark.parametrize(
    ("at", "local", "zone", "field"),
    [
        (None, None, None, "at"),
        (datetime(2026, 12, 1, tzinfo=UTC), "2026-12-01T09:00", "UTC", "at"),
        (None, "2026-12-01T09:00", None, "timezone"),
        (None, "2026-12-01T09:00", "Mars/Olympus", "timezone"),
        (None, "2026-12-01", "UTC", "local"),
        (None, "tomorrow", "UTC", "local"),
        (None, "2026-02-30T09:00", "UTC", "local"),
        (None, "1026-02-03T09:00", "UTC", "local"),
        (None, "2026-12-01T09:00+05:00", "Europe/Moscow", "local"),
        (datetime(2300, 1, 1, tzinfo=UTC), None, None, "at"),
    ],
)
def test_a_time_that_is_none_is_named(at, local, zone, field):
    with pytest.raises(HttpProblem) as refused:
        moment_of(at, local, zone)

    assert (refused.value.status, refused.value.field) == (422, field)
