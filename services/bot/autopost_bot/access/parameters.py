"""Check the parameters that many calls have."""

from aiohttp import web
from autopost_contracts.ids import WorkspaceId

from autopost_bot.access.problems import foreign_workspace, invalid

LONGEST_ID = 200
BIGGEST_NUMBER = 2**63 - 1


def check_workspace(named: object, workspace: WorkspaceId) -> None:
    """The secret alone identifies the tenant; the name in the request is only compared."""
    if named is None:
        raise invalid("workspaceId", "is required")
    if not isinstance(named, str):
        raise invalid("workspaceId", "must be a string")
    if named.lower() != str(workspace):
        raise foreign_workspace()


def check_chat_id(chat_id: str | None) -> str:
    if not chat_id:
        raise invalid("chatId", "is required")
    if len(chat_id) > LONGEST_ID or any("\ud800" <= each <= "\udfff" or each == "\0" for each in chat_id):
        raise invalid("chatId", f"must have 1 to {LONGEST_ID} characters of valid Unicode")
    return chat_id


def read_number(request: web.Request, name: str, biggest: int, least: int = 1) -> int | None:
    text = request.query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or not least <= int(text) <= biggest:
        raise invalid(name, f"must be a whole number from {least} to {biggest}")
    return int(text)
