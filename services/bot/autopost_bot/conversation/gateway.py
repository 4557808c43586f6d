"""The calls of conversations: one method per SQL function, no other SQL."""

import time
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, Literal
from uuid import UUID

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.lifecycle.pace import RateGroup
from autopost_runtime.lifecycle.probing import Probe
from autopost_runtime.postgres.pool import Database
from msgspec import Struct, convert

from autopost_bot.conversation.taken import (
    Bot,
    Chat,
    Lease,
    PendingReply,
    StoredUpdate,
    TakenChat,
)
from autopost_bot.engine.read_update import read_update
from autopost_bot.engine.rules import Settings
from autopost_bot.engine.ruleset import load_ruleset
from autopost_bot.engine.turn import Conversation


class TurnVerdict(Struct, frozen=True):
    """A row of ``commit_turns_across``."""

    verdict: Literal["committed", "held", "silent", "answered", "stale"]
    reply_id: UUID | None = None
    attempt: int | None = None
    slot_at: datetime | None = None
    wait: timedelta | None = None
    more: bool = False


class CommittedTurn(Struct, frozen=True):
    """A row of ``read_turns``."""

    committed: bool
    reply_id: UUID | None
    attempt: int | None
    slot_at: datetime | None
    wait: timedelta | None


class SlotRequest(Struct, frozen=True, eq=False):
    """A row of what ``take_reply_slots`` is asked for."""

    chat: Chat
    beside: bool
    missed: datetime | None
    since: float
    """When the reply began to wait, by the monotonic clock."""


class ReplySlot(Struct, frozen=True):
    """A row of ``take_reply_slots`` or ``take_press_slot``."""

    slot_at: datetime
    wait: timedelta
    taken: bool


class ReplyVerdict(Struct, frozen=True):
    """A row of ``commit_replies_across``."""

    verdict: Literal["committed", "stale"]
    seq: int | None
    failed: bool
    more: bool


class ConversationGateway:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def due_bot_workspaces(self, limit: int) -> list[WorkspaceId]:
        rows = await self._database.fetch("SELECT workspace_id FROM due_bot_workspaces($1)", limit)
        return [WorkspaceId(row["workspace_id"]) for row in rows]

    async def take_chats(
        self, workspaces: Sequence[WorkspaceId], limits: Sequence[int], lease: timedelta
    ) -> list[TakenChat]:
        until = time.monotonic() + lease.total_seconds()
        rows = await self._database.fetch(
            "SELECT * FROM take_chats_across($1, $2, $3)", list(workspaces), list(limits), lease
        )
        return [_taken(row, until) for row in rows]

    async def read_bot(self, workspace: WorkspaceId) -> Bot | None:
        """Raises ``InvalidRule`` when its settings cannot be read."""
        row = await self._database.fetchrow("SELECT * FROM read_ruleset($1)", workspace)
        if row is None:
            return None
        return Bot(
            rules_seq=row["rules_seq"],
            provider=row["provider"],
            auth_ref=row["auth_ref"],
            rate_group=row["rate_group"],
            pace=row["pace"].total_seconds(),
            ruleset=load_ruleset(row["rules"], _engine_settings(row["settings"])),
        )

    async def keep_ruleset(self, workspace: WorkspaceId, bot: Bot) -> None:
        ruleset = bot.ruleset
        await self._database.execute(
            "SELECT keep_ruleset($1, $2, $3, $4)",
            *(workspace, ruleset.hash, ruleset.rules_document, ruleset.settings_document),
        )

    async def commit_turns(
        self, turns: Sequence[dict[str, Any]], patience: timedelta, behind: Collection[WorkspaceId]
    ) -> list[TurnVerdict]:
        """``behind``: where replies of this process wait for slots, which new ones must not overtake."""
        rows = await self._database.fetch(
            "SELECT * FROM commit_turns_across($1, $2, $3)", turns, patience, list(behind)
        )
        return [TurnVerdict(*row[1:]) for row in sorted(rows, key=itemgetter(0))]

    async def read_turn(self, chat: Chat) -> CommittedTurn | None:
        row = await self._database.fetchrow(
            "SELECT committed, reply_id, attempt, slot_at, wait FROM read_turns($1, $2, $3)",
            *(chat.workspace_id, *_keys([chat])),
        )
        return None if row is None else CommittedTurn(*row)

    async def take_reply_slots(self, requests: Sequence[SlotRequest], patience: timedelta) -> list[ReplySlot | None]:
        """``None``: the chat is not ours any more."""
        chats = [one.chat for one in requests]
        rows = await self._database.fetch(
            "SELECT nth, slot_at, wait, taken FROM take_reply_slots($1, $2, $3, $4, $5, $6)",
            [chat.workspace_id for chat in chats],
            *_keys(chats),
            [one.beside for one in requests],
            [one.missed for one in requests],
            patience,
        )
        found = {row["nth"]: ReplySlot(*row[1:]) for row in rows}
        return [found.get(nth) for nth in range(1, len(requests) + 1)]

    async def take_press_slot(self, workspace: WorkspaceId, chat_id: str, patience: timedelta) -> ReplySlot:
        row = await self._database.fetchrow("SELECT * FROM take_press_slot($1, $2, $3)", workspace, chat_id, patience)
        return convert(dict(row or {}), ReplySlot)

    async def record_reply_part(self, chat: Chat, part: int, provider_ids: Sequence[str]) -> bool:
        return bool(
            await self._database.fetchval(
                "SELECT record_reply_part($1, $2, $3, $4, $5)",
                *(chat.workspace_id, chat.chat_id, chat.lease.token, part, list(provider_ids)),
            )
        )

    async def commit_replies(self, outcomes: Sequence[dict[str, Any]]) -> list[ReplyVerdict]:
        rows = await self._database.fetch("SELECT * FROM commit_replies_across($1)", outcomes)
        return [ReplyVerdict(*row[1:]) for row in sorted(rows, key=itemgetter(0))]

    async def renew_chats(self, workspace: WorkspaceId, chats: Sequence[Chat], lease: timedelta) -> set[str]:
        rows = await self._database.fetch("SELECT * FROM renew_chats($1, $2, $3, $4)", workspace, *_keys(chats), lease)
        return {row[0] for row in rows}

    async def release_chats(self, workspace: WorkspaceId, chats: Sequence[Chat]) -> None:
        await self._database.execute("SELECT release_chats($1, $2, $3)", workspace, *_keys(chats))

    async def take_probes(self) -> list[Probe]:
        rows = await self._database.fetch("SELECT * FROM take_probes(p_of_bots => true)")
        return [convert(dict(row), Probe) for row in rows]

    async def record_probe(self, probe: Probe, probe_at: datetime, error: dict[str, Any] | None) -> str | None:
        """The circuit after it; ``None`` when this probe counts no more."""
        circuit: str | None = await self._database.fetchval(
            "SELECT record_probe($1, $2, $3, $4, $5, $6)::text",
            *(probe.workspace_id, probe.platform, probe.rate_group, probe_at, error is None, error),
        )
        return circuit

    async def stall_groups(self, groups: Collection[RateGroup], lasts: timedelta) -> None:
        workspaces, platforms, rate_groups = zip(*groups, strict=True)
        await self._database.execute(
            "SELECT stall_groups($1, $2, $3, $4)", list(workspaces), list(platforms), list(rate_groups), lasts
        )

    async def set_aside(self, workspace: UUID, work: str, failures: int, wait: timedelta, error: str) -> None:
        await self._database.execute("SELECT set_aside($1, $2, $3, $4, $5)", workspace, work, failures, wait, error)


def _keys(chats: Sequence[Chat]) -> tuple[list[str], list[UUID]]:
    return [chat.chat_id for chat in chats], [chat.lease.token for chat in chats]


def _taken(row: Any, until: float) -> TakenChat:
    return TakenChat(
        chat=Chat(row["workspace_id"], row["chat_id"], Lease(row["lease_token"], until)),
        takes=row["takes"],
        conversation=Conversation(
            state=row["state"], context=row["context"], expires_at=row["expires_at"], newest_ms=row["newest_ms"]
        ),
        reply=None if row["reply"] is None else convert(row["reply"], PendingReply),
        updates=tuple(_update(one) for one in row["updates"] or ()),
        rules_seq=row["rules_seq"],
    )


def _update(row: dict[str, Any]) -> StoredUpdate:
    at = datetime.fromisoformat(row["at"])
    update = read_update(row["key"], row["kind"], row["body"], at, row["provider_ms"], flooded=row["flooded"])
    return StoredUpdate(update, row["trace_id"], row["traceparent"])


def _engine_settings(row: dict[str, Any]) -> dict[str, Any]:
    """The columns that a turn is decided by; the others may change without a new ruleset."""
    return {name: row[name] for name in Settings.__struct_fields__ if name in row}
