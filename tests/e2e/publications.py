"""Publications of a running system: made through the HTTP API, judged by what its simulator saw."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import msgspec
from autopost_cli.development import PUBLICATION_SECRET, WORKSPACE
from autopost_contracts.subjects import Topology
from harness.eventually import eventually
from harness.telegram_media import png
from msgspec import Struct

from e2e.system import System

BOTS = {
    name: f"100010{nth}:table-test-token-of-{name}-0123456789"
    for nth, name in enumerate(("calm", "hasty", "busy", "slow"))
}
"""Each is a rate group of its own: what one platform asks of it delays no other test."""
ENVIRONMENT = {f"BOT_{name.upper()}": token for name, token in BOTS.items()}
FILES = {"photo": ("a.png", png()), "video": ("a.mp4", b"moving" * 50), "document": ("a.txt", b"words")}
FILES["animation"] = ("a.gif", b"GIF89a" + b"moving" * 50)
UPLOADS = -1_009_999_999_999
PLENTY = timedelta(seconds=60)
ENDED = {"published", "failed", "paused", "cancelled"}


class Place(Struct, frozen=True):
    """A channel and its chat."""

    channel: UUID
    chat: int


class Seen(Struct, frozen=True):
    """A message as its readers see it."""

    kind: str = "text"
    text: str | None = None
    bold: tuple[str, ...] = ()
    buttons: tuple[tuple[str, str], ...] = ()
    preview: bool = True


class Publications:
    def __init__(self, system: System, topology: Topology) -> None:
        self.system = system
        self.topology = topology
        self.files: dict[str, str] = {}
        self._one_at_a_time = asyncio.Lock()
        self._chats = -1_009_000_000_000

    async def prepare(self) -> None:
        """Bots with their rates, files that the platform knows, and a caller without a rate."""
        database = self.system.database
        for name, token in BOTS.items():
            await self.system.control("tokens", [{"platform": "telegram", "token": token, "limits": []}])
            await database.execute(
                "INSERT INTO credential_bindings (workspace_id, auth_ref, platform, secret_ref) "
                "VALUES ($1, $2, 'telegram', $3)",
                *(UUID(WORKSPACE), name, f"env:BOT_{name.upper()}"),
            )
            await database.execute(
                "INSERT INTO platform_limits (workspace_id, platform, rate_group, rate_rps) "
                "VALUES ($1, 'telegram', $2, 27)",
                *(UUID(WORKSPACE), name),
            )
        await database.execute("UPDATE workspace_endpoints SET ingress_rps = 0 WHERE kind = 'publication_api'")
        await self.system.control("chats", [{"platform": "telegram", "id": UPLOADS, "limits": []}])
        for kind in FILES:
            self.files[kind] = await self._uploaded(kind)

    async def _uploaded(self, kind: str) -> str:
        url = f"{self.system.places['simulator']}/bot{BOTS['calm']}/send{kind.capitalize()}"
        answer = await self.system.http.post(url, data={"chat_id": str(UPLOADS)}, files={kind: FILES[kind]})
        shown = answer.json()["result"][kind]
        return str((shown[-1] if kind == "photo" else shown)["file_id"])

    async def place(self, bot: str = "calm", **columns: Any) -> Place:
        """A new channel; without limits of the platform's."""
        self._chats -= 1
        chat = self._chats
        await self.system.control("chats", [{"platform": "telegram", "id": chat, "limits": []}])
        given = {
            "workspace_id": UUID(WORKSPACE),
            "platform": "telegram",
            "target_id": str(chat),
            "auth_ref": bot,
            "rate_group": bot,
            **columns,
        }
        places = ", ".join(f"${nth}" for nth in range(1, len(given) + 1))
        channel = await self.sql(
            f"INSERT INTO channels ({', '.join(given)}) VALUES ({places}) RETURNING channel_id", *given.values()
        )
        return Place(channel, chat)

    async def sql(self, query: str, *arguments: Any) -> Any:
        """The system has one connection for all tests of a run."""
        async with self._one_at_a_time:
            return await self.system.database.fetchval(query, *arguments)

    def media(self, *kinds: str) -> list[dict[str, str]]:
        return [{"type": kind, "file_id": self.files[kind]} for kind in kinds]

    async def fault(self, place: Place, effect: dict[str, Any], **match: Any) -> None:
        given = {"name": uuid4().hex, "platform": "telegram", "chat": place.chat, "effect": effect, **match}
        await self.system.control("faults", given)

    async def call(self, verb: str, path: str = "", body: Any = None, version: str | None = None) -> httpx.Response:
        headers = {"Authorization": f"Bearer {PUBLICATION_SECRET}", "Content-Type": "application/json"}
        headers |= {"If-Match": version} if version else {}
        url = f"{self.system.places['ingest']}/v1/publications{path}"
        return await self.system.http.request(
            verb, url, headers=headers, content=None if body is None else json.dumps(body)
        )

    async def draft(self, place: Place, creative: dict[str, Any], **fields: Any) -> str:
        body = {"channel_id": str(place.channel), "creative_draft": creative, **fields}
        answer = await self.call("POST", "", body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["publication_id"])

    async def do(self, publication: str, verb: str, body: Any = None) -> httpx.Response:
        version = (await self.show(publication))["version"]
        return await self.call("POST", f"/{publication}/{verb}", body, f'"{version}"')

    async def done(self, publication: str, verb: str, body: Any = None) -> dict[str, Any]:
        answer = await self.do(publication, verb, body)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def schedule(self, publication: str, wait: timedelta = timedelta(0)) -> None:
        await self.done(publication, "schedule", {"at": (datetime.now(UTC) + wait).isoformat()})

    async def publish(self, place: Place, creative: dict[str, Any], **fields: Any) -> str:
        """Drafted, approved and scheduled for this moment."""
        publication = await self.draft(place, creative, **fields)
        await self.done(publication, "approve")
        await self.schedule(publication)
        return publication

    async def show(self, publication: str) -> dict[str, Any]:
        return dict((await self.call("GET", f"/{publication}")).json())

    async def ended(self, publication: str) -> dict[str, Any]:
        async def has_ended() -> dict[str, Any] | None:
            shown = await self.show(publication)
            return shown if shown["status"] in ENDED else None

        return await eventually(has_ended, within=PLENTY)

    async def becomes(self, publication: str, **wanted: Any) -> dict[str, Any]:
        async def is_so() -> dict[str, Any] | None:
            shown = await self.show(publication)
            return shown if wanted.items() <= shown.items() else None

        return await eventually(is_so, within=PLENTY)

    async def log(self, place: Place) -> list[dict[str, Any]]:
        """The calls into its chat, in order of arrival; also those that have no answer."""
        answer = await self.system.http.get(
            f"{self.system.places['simulator']}/_sim/log", params={"platform": "telegram", "chat": str(place.chat)}
        )
        lines = [msgspec.json.decode(line) for line in answer.content.splitlines() if line]
        return sorted(lines, key=lambda line: line["arrived_ns"])

    async def calls(self, place: Place) -> list[tuple[str, int | None]]:
        return [(line["method"], line["status"]) for line in await self.log(place)]

    async def messages(self, place: Place) -> list[dict[str, Any]]:
        answer = await self.system.http.get(
            f"{self.system.places['simulator']}/_sim/chats/telegram/{place.chat}/messages"
        )
        return list(answer.json()["messages"])

    async def seen(self, place: Place) -> list[Seen]:
        return [_seen(message) for message in await self.messages(place)]


def _seen(message: dict[str, Any]) -> Seen:
    text, extra = message["text"] or None, message["extra"]
    rows = (message["buttons"] or {}).get("inline_keyboard", [])
    return Seen(
        kind=next((kind for kind in ("photo", "video", "animation", "document") if kind in extra), "text"),
        text=text,
        bold=tuple(
            message["text"][span["offset"] : span["offset"] + span["length"]]
            for span in message["markup"]
            if span["type"] == "bold"
        ),
        buttons=tuple((button["text"], button["url"]) for row in rows for button in row),
        preview=not extra.get("link_preview_options", {}).get("is_disabled", False),
    )
