"""The database calls of `autopost bot`: one method per SQL function, no other SQL."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any
from uuid import UUID

import click
import msgspec
from autopost_bot.engine.ruleset import InvalidRule, Ruleset, load_ruleset

from autopost_cli.operate.gateway import Connection, Row, connected
from autopost_cli.operate.operate import CommonOptions
from autopost_cli.operate.selection import choose_workspace

PAGE = 500
NO_BOT = "the workspace has no bot; insert a row into bot_settings first"


class StoredRules(msgspec.Struct, frozen=True):
    """What the bot answers by now."""

    ruleset: Ruleset
    rules_seq: int


class BotGateway:
    def __init__(self, connection: Connection, workspace: UUID, operator: str, reason: str) -> None:
        self._connection = connection
        self._workspace = workspace
        self._signed = (operator, reason)

    @asynccontextmanager
    async def transaction(self, *, dry_run: bool) -> AsyncIterator[None]:
        """A dry run is rolled back."""
        transaction = self._connection.transaction()
        await transaction.start()
        try:
            yield
        except BaseException:
            await transaction.rollback()
            raise
        await (transaction.rollback() if dry_run else transaction.commit())

    async def rules(self) -> StoredRules:
        row = await self._connection.fetchrow("SELECT * FROM read_ruleset($1)", self._workspace)
        if row is None:
            raise click.ClickException(NO_BOT)
        return StoredRules(_loaded(row["rules"], row["settings"]), row["rules_seq"])

    async def all_rules(self) -> list[Row]:
        return await self._rows("SELECT * FROM list_bot_rules($1)")

    async def live_states(self) -> dict[str, int]:
        return {row["state"]: row["chats"] for row in await self._rows("SELECT * FROM live_bot_states($1)")}

    async def import_rules(self, rules: list[Row]) -> list[Row]:
        return await self._rows("SELECT * FROM import_bot_rules($1, $2, $3, $4)", rules, *self._signed)

    async def enable_rules(self, release: list[Row], lint: Row) -> list[Row]:
        return await self._rows("SELECT * FROM enable_bot_rules($1, $2, $3, $4, $5)", release, *self._signed, lint)

    async def turns(self, since: datetime, until: datetime, chat: str | None = None) -> AsyncIterator[Row]:
        """In the order in which they were handled, a chat after the other."""
        after: Any = None
        query = "SELECT * FROM bot_turns($1, $2, $3, $4, $5, $6, $7, $8)"
        while True:
            rows = await self._rows(query, since, until, after, PAGE, *self._signed, chat)
            for row in rows:
                yield row
            if len(rows) < PAGE:
                return
            after = rows[-1]["place"]

    async def why(self, key: str) -> list[Row]:
        return await self._rows("SELECT * FROM why_bot_update($1, $2, $3, $4)", key, *self._signed)

    async def unmatched(self, since: datetime, limit: int) -> list[Row]:
        return await self._rows("SELECT * FROM unmatched_texts($1, $2, $3)", since, limit)

    async def chats(self, limit: int) -> list[Row]:
        return await self._rows("SELECT * FROM list_bot_chats($1, $2)", limit)

    async def actions(self, limit: int) -> list[Row]:
        return await self._rows("SELECT * FROM list_bot_actions($1, $2)", limit)

    async def end_handoff(self, chat: str) -> str:
        verdict: str = await self._connection.fetchval(
            "SELECT end_handoff($1, $2, $3, $4)", self._workspace, chat, *self._signed
        )
        return verdict

    async def turn_reply(self, reply: UUID, decision: str) -> str:
        verdict: str = await self._connection.fetchval(
            "SELECT turn_bot_reply($1, $2, $3, $4, $5)", self._workspace, reply, decision, *self._signed
        )
        return verdict

    async def _rows(self, query: str, *given: Any) -> list[Row]:
        return [dict(row) for row in await self._connection.fetch(query, self._workspace, *given)]


@asynccontextmanager
async def bot_gateway(options: CommonOptions) -> AsyncIterator[BotGateway]:
    async with connected(options.database_url) as connection:
        workspace = await choose_workspace(connection, options.workspace)
        yield BotGateway(connection, workspace, options.operator, options.reason)


def _loaded(rules: Any, settings: Any) -> Ruleset:
    try:
        return load_ruleset(rules, settings)
    except InvalidRule as exc:
        raise click.ClickException(str(exc)) from None
