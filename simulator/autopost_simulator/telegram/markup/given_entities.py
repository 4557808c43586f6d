"""``entities`` of a call: their fields, and the kinds that a bot cannot set because the server finds them itself."""

from typing import Any

from autopost_simulator.telegram.markup.finish import TextError
from autopost_simulator.telegram.markup.formatting import Entity, ParseError
from autopost_simulator.telegram.markup.links import LinkError, check_link, user_of_link
from autopost_simulator.telegram.markup.time_links import custom_emoji, date_time

_PLAIN = (
    "bold",
    "italic",
    "underline",
    "strikethrough",
    "spoiler",
    "code",
    "blockquote",
    "expandable_blockquote",
)
_FOUND = ("mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "bank_card_number")


class UnusableEntity(Exception):  # noqa: N818  named for what it reports
    """The reason that follows ``can't parse MessageEntity:``."""


def read_entity(given: object) -> Entity | None:
    """``None`` for a kind that the server finds itself."""
    if not isinstance(given, dict):
        raise UnusableEntity("expected an Object")
    place = {name: _integer(given, name) for name in ("offset", "length")}
    kind = _field(given, "type", str, "String")
    if kind in _FOUND:
        return None
    return {"type": kind, **place, **_extra(kind, given)} if kind != "text_link" else _link(given, place)


def _extra(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    if kind in _PLAIN:
        return {}
    match kind:
        case "pre":
            return {"language": given["language"]} if given.get("language") else {}
        case "text_mention":
            user = _field(given, "user", dict, "Object")
            number = _integer(user, "id")
            return {"user": {"id": number, "is_bot": False, "first_name": str(number)} | user}
        case "custom_emoji":
            return _converted(lambda: custom_emoji(str(given.get("custom_emoji_id", ""))))
        case "date_time":
            unix_time = _integer(given, "unix_time")
            return _converted(lambda: date_time(unix_time, str(given.get("date_time_format") or "")))
        case "":
            raise UnusableEntity("Type is not specified")
        case _:
            raise UnusableEntity("Unsupported type specified")


def _link(given: dict[str, Any], place: dict[str, int]) -> Entity:
    url = _field(given, "url", str, "String")
    user = user_of_link(url)
    if user is not None:
        return {"type": "text_mention", **place, "user": {"id": user, "is_bot": False, "first_name": str(user)}}
    try:
        return {"type": "text_link", **place, "url": check_link(url)}
    except LinkError as reason:
        raise TextError(f"entity URL '{url}' is invalid: {reason}") from None


def _converted(convert: Any) -> dict[str, Any]:
    try:
        found: dict[str, Any] = convert()
    except ParseError as reason:
        raise UnusableEntity(str(reason)) from None
    return found


def _integer(given: dict[str, Any], name: str) -> int:
    value = given.get(name)
    if isinstance(value, str) and value.lstrip("-").isdigit():
        return int(value)
    if type(value) is not int:
        _field(given, name, int, "Number")
        raise UnusableEntity(f'Field "{name}" must be of type Number')
    return value


def _field(given: dict[str, Any], name: str, kind: type[Any], called: str) -> Any:
    if name not in given:
        raise UnusableEntity(f'Can\'t find field "{name}"')
    if not isinstance(given[name], kind):
        raise UnusableEntity(f'Field "{name}" must be of type {called}')
    return given[name]
