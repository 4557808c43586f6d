"""Read the body of a start or an update. Unknown fields are ignored, so that newer callers keep working."""

from typing import Any

import msgspec
from autopost_contracts.ids import WorkspaceId
from autopost_runtime.http.problem import HttpProblem
from autopost_runtime.http.strict_json import InvalidJson, check_json, zeros_of

from autopost_bot.access.parameters import LONGEST_ID, check_workspace
from autopost_bot.access.problems import invalid
from autopost_bot.actions.display_text import clean_display_text

LONGEST_BODY = 64 * 1024
LONGEST_TYPE = 64
LONGEST_PAYLOAD = 16 * 1024

Fields = dict[str, Any]


def read_start(body: bytes, workspace: WorkspaceId) -> Fields:
    """A change for ``start_action``. Raises ``HttpProblem`` 400, 403 or 422."""
    fields = _object(body)
    return {**_common(fields, workspace), "action_type": _text(fields, "actionType", LONGEST_TYPE)}


def read_update(body: bytes, workspace: WorkspaceId) -> Fields:
    """A change for ``update_action``. Raises ``HttpProblem`` 400, 403 or 422."""
    fields = _object(body)
    return {**_common(fields, workspace), "status": _status(fields)}


def _object(body: bytes) -> Fields:
    try:
        check_json(body)
        fields = msgspec.json.decode(body)
    except InvalidJson as exc:
        raise HttpProblem(400, "Bad Request", exc.reason, field=exc.place or None) from None
    except (msgspec.DecodeError, RecursionError):
        raise HttpProblem(400, "Bad Request", "the body is not valid JSON") from None
    if not isinstance(fields, dict):
        raise HttpProblem(400, "Bad Request", "the body must be a JSON object")
    return fields


def _common(fields: Fields, workspace: WorkspaceId) -> Fields:
    check_workspace(fields.get("workspaceId"), workspace)
    action: Fields = {
        "chat_id": _text(fields, "chatId", LONGEST_ID, printable=False),
        "action_id": _text(fields, "actionId", LONGEST_ID),
    }
    _read_display_text(fields, action)
    _read_payload(fields, action)
    return action


def _text(fields: Fields, name: str, longest: int, *, printable: bool = True) -> str:
    value = fields.get(name)
    if value is None:
        raise invalid(name, "is required")
    if not isinstance(value, str):
        raise invalid(name, "must be a string")
    if not 1 <= len(value) <= longest:
        raise invalid(name, f"must have 1 to {longest} characters")
    if printable and not value.isprintable():
        raise invalid(name, "must have only printable characters")
    return value


def _status(fields: Fields) -> str:
    status = _text(fields, "status", LONGEST_TYPE)
    if status not in ("done", "error"):
        raise invalid("status", "must be done or error")
    return status


def _read_display_text(fields: Fields, action: Fields) -> None:
    """Absent leaves the text as it is and null clears it; a text that is empty once it is clean counts as absent."""
    if "displayText" not in fields:
        return
    given = fields["displayText"]
    if given is None:
        action["display_text"] = None
    elif not isinstance(given, str):
        raise invalid("displayText", "must be a string or null")
    elif text := clean_display_text(given):
        action["display_text"] = text


def _read_payload(fields: Fields, action: Fields) -> None:
    if "payload" not in fields:
        return
    payload = fields["payload"]
    if payload is not None and not isinstance(payload, dict):
        raise invalid("payload", "must be an object or null")
    if payload is not None and len(msgspec.json.encode(payload)) + _more_digits(payload) > LONGEST_PAYLOAD:
        raise invalid("payload", f"must not be larger than {LONGEST_PAYLOAD} bytes")
    action["payload"] = payload


def _more_digits(value: Any) -> int:
    """How many digits the database adds when it writes the numbers without an exponent."""
    match value:
        case dict():
            return sum(map(_more_digits, value.values()))
        case list():
            return sum(map(_more_digits, value))
        case float() if value:
            return zeros_of(value)
        case _:
            return 0
