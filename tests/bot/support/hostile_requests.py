"""Requests that are meant to hold the bot up. A new one goes into ``REQUESTS``; the loop budget then covers it."""

import json
from collections.abc import Callable
from typing import Any

from bot.support.replicas import CHAT, WORKSPACE
from harness.hostile_texts import HTML, PLAIN
from msgspec import Struct

LONGEST_BODY = 64 * 1024
NAMES = {"workspaceId": WORKSPACE, "chatId": CHAT, "actionId": "a", "actionType": "summarize"}


class Hostile(Struct, frozen=True, kw_only=True):
    """One request of a caller who knows a secret; without ``make`` a GET."""

    path: str = "/api/chat/actions/start"
    make: Callable[[], bytes] | None = None


def _start(**fields: Any) -> Hostile:
    return Hostile(make=lambda: json.dumps({**NAMES, **fields}, ensure_ascii=False).encode())


def _payload(inner: str, count: int) -> Hostile:
    def make() -> bytes:
        names = json.dumps({**NAMES, "status": "done"})[:-1]
        return f'{names}, "payload": {{"a": [{",".join([inner] * count)}]}}}}'.encode()

    return Hostile(path="/api/chat/actions/update", make=make)


def _body(text: str) -> Hostile:
    return Hostile(make=lambda: text.encode())


MARKUP = {
    "tags that never end": "<a ",
    "open quotes": '<a b="',
    "equals signs": "<a a=",
    "open comments": "<!--",
    "sections": "<![<",
    "declarations": "<!a",
    "references": "&#",
    "scripts": "<script>",
    "dashes of a script": "<script" + "-" * 20_000,
    "quotes in turn": """<a '"<b "'""",
    "one long number": "&#" + "9" * 20_000,
}

REQUESTS: dict[str, Hostile] = {
    **{f"text: {name}": _start(displayText=unit * (60_000 // len(unit))) for name, unit in MARKUP.items()},
    **{f"text: {name}": _start(displayText=make(12_000)) for name, make in (PLAIN | HTML).items()},
    "fields without end": _body("{" + ",".join(f'"k{n}":0' for n in range(6_000)) + "}"),
    "open lists": _body("[" * (LONGEST_BODY - 1)),
    "nested lists": _payload("[" * 2_000 + "]" * 2_000, 1),
    "many numbers": _payload("0", 8_000),
    "numbers of three hundred digits": _payload("1e308", 2_600),
    "smallest numbers": _payload("1e-308", 2_300),
    "many objects": _payload("{}", 5_000),
    "another action": _start(actionId="b" * 10_000),
    "another chat": _start(chatId="\U0001f98a" * 10_000),
    "actions of the chat": Hostile(path=f"/api/chat/actions?workspaceId={WORKSPACE}&chatId={CHAT}"),
    "messages of the chat": Hostile(path=f"/api/chats/{CHAT}/messages?limit=200"),
    "all changes of the chat": Hostile(path=f"/api/chats/{CHAT}/events?after=0"),
    "a number the chat never had": Hostile(path=f"/api/chats/{CHAT}/events?after=9223372036854775807"),
    "a ticket of dots": Hostile(path=f"/api/chats/{CHAT}/events?ticket={'Li4u' * 90}"),
}
