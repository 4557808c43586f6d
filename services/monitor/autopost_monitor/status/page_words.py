"""Formatting of times, numbers and channel states for the status page."""

from datetime import UTC, datetime, timedelta
from typing import Any

from autopost_monitor.alerts.text import duration
from autopost_monitor.status.page_markup import Markup, tag

STATES = {
    "open": ("open", "good"),
    "full": ("sending", "good"),
    "outage": ("platform away", "bad"),
    "cooling": ("cooling down", "odd"),
    "window_closed": ("outside its window", "odd"),
    "paused": ("paused", "bad"),
    "disabled": ("disabled", "bad"),
    "failed": ("failed", "bad"),
}
NEVER = "infinity"


def at(text: Any) -> datetime | None:
    """A time from the JSON of the database; ``None`` for null and infinity."""
    return None if text is None or text == NEVER else datetime.fromisoformat(text).astimezone(UTC)


def ago(text: Any, now: datetime) -> Markup | str:
    moment = at(text)
    return "–" if moment is None else _time(moment, f"{duration(now - moment)} ago")


def until(text: Any, now: datetime) -> Markup | str:
    moment = at(text)
    if moment is None:
        return "until an operator resumes it" if text == NEVER else ""
    return _time(moment, f"{duration(moment - now)} left")


def lasting(seconds: float) -> str:
    return duration(timedelta(seconds=seconds))


def number(value: float) -> str:
    return f"{value:,.0f}".replace(",", "\u202f") if value == int(value) else f"{value:,.1f}"  # a thin space


def pill(state: str) -> Markup:
    words, mood = STATES.get(state, (state, ""))
    return tag("span", words, cls=f"pill {mood}".strip())


def _time(moment: datetime, words: str) -> Markup:
    return tag("time", words, datetime=moment.isoformat(), title=moment.strftime("%Y-%m-%d %H:%M:%S UTC"))
