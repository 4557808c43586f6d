"""Custom emoji and times: ``tg://emoji?id=…``, ``tg://time?unix=…&format=…`` and the tags with the same content."""

import re
from typing import Any

from autopost_simulator.telegram.markup.formatting import ParseError

_INTEGER = re.compile(r"-?[1-9][0-9]*|0")
_LARGEST_ID = 2**63
_LARGEST_TIME = 2**31


def custom_emoji(identifier: str) -> dict[str, Any]:
    number = _integer(identifier, _LARGEST_ID)
    if not number:
        raise ParseError("Invalid custom emoji identifier specified")
    return {"custom_emoji_id": str(number)}


def date_time(unix_time: int, given: str) -> dict[str, Any]:
    """The format as the server returns it: weekday, date, time, each in one form."""
    if given in ("r", "R"):
        return {"unix_time": unix_time, "date_time_format": "r"}
    if set(given) - set("tTdDwW"):
        raise ParseError("Invalid date format used")
    weekday = "w" if set(given) & set("wW") else ""
    date = "d" if "d" in given else "D" if "D" in given else ""
    time = "t" if "t" in given else "T" if "T" in given else ""
    return {"unix_time": unix_time, "date_time_format": weekday + date + time}


def linked_entity(url: str) -> tuple[str, dict[str, Any]]:
    """The entity of ``![text](url)`` in MarkdownV2."""
    emoji, time = _parameters(url, "emoji"), _parameters(url, "time")
    try:
        if emoji is not None:
            return "custom_emoji", custom_emoji(emoji.get("id", ""))
        if time is not None:
            unix_time = _integer(time.get("unix", ""), _LARGEST_TIME)
            if unix_time and unix_time > 0:
                return "date_time", date_time(unix_time, time.get("format", ""))
    except ParseError:
        pass
    raise ParseError("Invalid tg://emoji or tg://time URL specified")


def lenient_integer(text: str) -> int:
    """As many digits as there are; zero without any."""
    digits = re.match(r"-?[0-9]+", text)
    return int(digits[0]) if digits and abs(int(digits[0])) < _LARGEST_TIME else 0


def _parameters(url: str, host: str) -> dict[str, str] | None:
    found = re.match(rf"tg:(?://)?{host}/?\?([^#]*)", url, re.IGNORECASE)
    if found is None:
        return None
    return dict(parameter.partition("=")[::2] for parameter in found[1].split("&"))


def _integer(text: str, bound: int) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) and -bound <= int(text) < bound else None
