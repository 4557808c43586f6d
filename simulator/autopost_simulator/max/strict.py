"""The strict profile: fields and parameters that an operation does not have, or of another type, are refused by name.

The real platform ignores them, so a client with a mistake would pass.
"""

import re
from typing import Any

import msgspec

from autopost_simulator.max.operation_call import OperationCall
from autopost_simulator.max.refusal import MaxError, payload
from autopost_simulator.max.strict_bodies import BODIES

_QUERIES = {
    "POST /messages": "user_id:int chat_id:int disable_link_preview:bool",
    "GET /messages": "chat_id:int message_ids:str from:int to:int before:int after:int count:int",
    "PUT /messages": "message_id:str",
    "DELETE /messages": "message_id:str",
    "POST /answers": "callback_id:str disable_link_preview:bool",
    "POST /uploads": "type:str",
    "GET /updates": "limit:int timeout:int marker:int types:str",
    "DELETE /subscriptions": "url:str",
    "GET /chats/{id}/members": "user_ids:str marker:int count:int",
    "DELETE /chats/{id}/members": "user_id:int block:bool",
}
_EVERYWHERE = {"v": "str"}
"""Official clients send the version of the API with every request."""
_FORMS = {"int": re.compile(r"-?[0-9]+"), "bool": re.compile(r"true|false|0|1"), "str": re.compile(r".*", re.DOTALL)}
_REPORTED = re.compile(r"Object contains unknown field|Expected `(?:bool|int|float|str)`")
"""Where an object or an array is expected, the platform itself refuses something else."""


def refuse_unknown(operation: str, asked: OperationCall) -> None:
    known = _EVERYWHERE | {
        name: kind for name, _, kind in (given.partition(":") for given in _QUERIES.get(operation, "").split())
    }
    for name, value in asked.query.items():
        if name not in known:
            raise _refused(f"{operation} has no parameter `{name}`")
        if value and not _FORMS[known[name]].fullmatch(value):
            raise _refused(f"`{name}` must be {known[name]}")
    if asked.body and operation in BODIES:
        _check_body(asked.body, BODIES[operation])


def _check_body(body: bytes, kind: type[Any]) -> None:
    """Only names and types: everything else is refused by the operation in the words of the platform."""
    try:
        msgspec.convert(_without_nulls(msgspec.json.decode(body)), kind)
    except msgspec.ValidationError as error:
        if _REPORTED.match(str(error)):
            raise _refused(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


def _refused(reason: str) -> MaxError:
    return payload(f"strict profile of the simulator: {reason}")
