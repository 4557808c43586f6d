"""Run the stored updates of customers through the engine again, and compare with the log, the replies and the states.

One chat after the other and a page at a time, so the memory does not grow with the log. Nothing that is reported has
words or numbers of a customer: a chat is its token, a line its id.
"""

from collections import OrderedDict
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

import msgspec
from autopost_bot.engine.order import HandledOrder
from autopost_bot.engine.read_update import read_update
from autopost_bot.engine.replay import Difference, Fold, Handled, Released, rule_name
from autopost_bot.engine.ruleset import InvalidRule, Ruleset, load_ruleset
from autopost_bot.engine.turn import Conversation
from autopost_contracts.plan import Plan

from autopost_cli.operate.gateway import Row
from autopost_cli.verify.gateway import VerifyGateway

MOST_RULESETS = 20
"""Kept in memory at a time."""


class KeptRulesets:
    """The rulesets that log lines name; what is kept must be what its hash says."""

    def __init__(self, gateway: VerifyGateway, workspace: UUID) -> None:
        self._gateway = gateway
        self._workspace = workspace
        self._known: OrderedDict[str, Ruleset | None] = OrderedDict()

    def get(self, ruleset_hash: str) -> Ruleset | None:
        return self._known.get(ruleset_hash)

    async def load(self, ruleset_hash: str) -> None:
        if ruleset_hash in self._known:
            self._known.move_to_end(ruleset_hash)
            return
        kept = await self._gateway.verify_bot_ruleset(self._workspace, ruleset_hash)
        self._known[ruleset_hash] = None if kept is None else _loaded(kept, ruleset_hash)
        while len(self._known) > MOST_RULESETS:
            self._known.popitem(last=False)


def _loaded(kept: Row, ruleset_hash: str) -> Ruleset | None:
    """``None`` if it was changed. A number may be written in another way by the database, so that is no change."""
    try:
        ruleset = load_ruleset(kept["rules"], kept["settings"])
    except InvalidRule:
        return None
    as_kept = sha256(msgspec.json.encode(kept, order="sorted")).hexdigest()
    return ruleset if ruleset_hash in (as_kept, ruleset.hash) else None


class ChatCheck:
    """One chat, row by row."""

    def __init__(self, row: Row, rulesets: KeptRulesets) -> None:
        self.chat: str = row["chat"]
        self.fold = Fold(rulesets.get, whole=row["whole"])
        self._order = HandledOrder()
        self._last = row

    def add(self, row: Row) -> Iterator[Row]:
        self._last = row
        log = row["log"]
        if row["key"] is None:
            self.fold.add(Released(logged_at=row["logged_at"]))
            return
        place = (row["provider_ts"], row["provider_seq"], row["at"], row["key"])
        if self._order.is_late(place, row["at"], waits=row["waits"]):
            yield self._difference("bot_overtaken" if row["waits"] else "bot_order", log, at=row["at"])
        if log is None:
            if not row["waits"]:
                self.fold.lose()
            if row["is_log_due"]:
                yield self._difference("bot_log_missing", None, at=row["logged_at"])
            return
        for one in self.fold.add(_handled(row)):
            yield self._difference(f"bot_{one.field}", log, one)
        if not _is_intact(row):
            yield self._difference("bot_response", log)

    def end(self) -> Iterator[Row]:
        """The stored conversation is the one that the last turn left."""
        left = self.fold.conversation
        if left is None:
            return
        row = self._last
        if row["state"] is None:
            stored = Conversation()
            if left.expires_at is not None and left.expires_at < datetime.now(UTC):
                return  # retention has deleted it
        else:
            stored = Conversation(state=row["state"], context=row["context"], expires_at=row["expires_at"])
        for name in ("state", "context", "expires_at"):
            if getattr(left, name) != getattr(stored, name):
                shown = Difference("", name, stored.state, left.state) if name == "state" else None
                yield self._difference(f"bot_stored_{name}", row["log"], shown)

    def _difference(
        self, kind: str, log: Row | None, found: Difference | None = None, at: datetime | None = None
    ) -> Row:
        return {
            "kind": kind,
            "chat": self.chat,
            "log_id": log and log["id"],
            "at": log["ts"] if log else at,
            "events": found and found.folded,
            "row": found and found.logged,
        }


class BotCheck:
    """All chats of a workspace; ``add`` takes the pages of ``verify_bot_turns``."""

    def __init__(self, gateway: VerifyGateway, workspace: UUID) -> None:
        self._rulesets = KeptRulesets(gateway, workspace)
        self._chat: ChatCheck | None = None
        self.skipped = 0

    async def add(self, rows: list[Row]) -> list[Row]:
        found: list[Row] = []
        for row in rows:
            if self._chat is None or self._chat.chat != row["chat"]:
                found += self.end()
                self._chat = ChatCheck(row, self._rulesets)
            if row["log"] is not None and (named := row["log"]["meta"].get("ruleset")):
                await self._rulesets.load(named)
            found += self._chat.add(row)
        return found

    def end(self) -> list[Row]:
        if self._chat is None:
            return []
        chat, self._chat = self._chat, None
        self.skipped += chat.fold.skipped
        return list(chat.end())


def _handled(row: Row) -> Handled:
    log: dict[str, Any] = row["log"]
    meta = log["meta"]
    return Handled(
        update=read_update(
            row["key"], row["kind"], row["update"], row["at"], row["provider_ts"], flooded=row["flooded"]
        ),
        logged_at=row["logged_at"],
        ruleset=meta.get("ruleset", ""),
        outcome=meta.get("outcome", ""),
        error=meta.get("error"),
        late=bool(meta.get("late")),
        expired=bool(meta.get("expired")),
        gathered=tuple(meta.get("gathered", ())),
        rule=rule_name(log["matched_rule_id"], log["rule_version"]),
        state_before=log["state_before"],
        state_after=log["state_after"],
        preview=log["response_preview"],
        response_hash=row["response_hash"],
        must_have_reply=row["must_have_reply"],
    )


def _is_intact(row: Row) -> bool:
    """The reply that was sent is the one whose hash was stored."""
    if row["response"] is None:
        return True
    try:
        plan = msgspec.convert(row["response"].get("plan"), Plan)
    except msgspec.ValidationError:
        return False
    return bool(row["response_hash"] == plan.digest())
