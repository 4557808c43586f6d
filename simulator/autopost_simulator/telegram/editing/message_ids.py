"""``message_ids`` of a call."""

import msgspec

from autopost_simulator.telegram.refusal import TelegramError
from autopost_simulator.telegram.request.params import Params

MOST = 100


def read_message_ids(params: Params) -> list[int]:
    try:
        given = params.structure("message_ids") if params.text("message_ids") else None
    except msgspec.DecodeError:
        raise _bad("can't parse message_ids JSON object") from None
    if not given and not isinstance(given, dict):
        raise _bad("message identifiers are not specified")
    if not isinstance(given, list):
        raise _bad("expected an Array of message identifiers")
    if len(given) > MOST:
        raise _bad("too many message identifiers specified")
    return list(dict.fromkeys(map(_message_id, given)))


def _message_id(given: object) -> int:
    if isinstance(given, bool) or not isinstance(given, int | str):
        raise _bad("message identifier must be a Number")
    try:
        number = int(given)
    except ValueError:
        raise _bad("can't parse message identifier as a Number") from None
    if number <= 0:
        raise _bad("invalid message identifier specified")
    return number


def _bad(reason: str) -> TelegramError:
    return TelegramError(400, f"Bad Request: {reason}")
