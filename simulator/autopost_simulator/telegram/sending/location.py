"""sendLocation: a point on the map."""

from typing import Any

from autopost_simulator.telegram.refusal import TelegramError
from autopost_simulator.telegram.request.params import Params

_LIMITS = (("latitude", 90.0), ("longitude", 180.0))
_LIVE = ("live_period", "heading", "proximity_alert_radius")


def read_location(params: Params) -> dict[str, Any]:
    """The field ``location`` of the message."""
    place = {name: _coordinate(params, name, most) for name, most in _LIMITS}
    live = {name: params.integer(name) for name in _LIVE} if params.integer("live_period") else {}
    return place | {name: value for name, value in live.items() if value}


def _coordinate(params: Params, name: str, most: float) -> float:
    given = params.text(name).strip()
    if not given:
        raise TelegramError(400, f"Bad Request: {name} is empty")
    try:
        value = float(given)
    except ValueError:
        value = 0.0
    if abs(value) > most:
        raise TelegramError(400, "Bad Request: wrong location specified")
    return value
