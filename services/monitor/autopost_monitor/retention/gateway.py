"""The database calls of retention: one method per SQL function, no other SQL."""

from datetime import timedelta
from typing import Any, Literal

from autopost_runtime.postgres.pool import Database
from msgspec import Struct, convert

Place = dict[str, Any]
"""The position of a walk, opaque to Python."""

Dropped = Literal["dropped", "young", "unchecked", "unrelayed", "busy"]


class Step(Struct, frozen=True, kw_only=True):
    """The number of deleted rows; ``after`` is ``None`` at the end of the walk."""

    gone: int
    renderings: int = 0
    after: Place | None


class RetainGateway:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def expired_event_partitions(self, keep: timedelta) -> list[str]:
        rows = await self._database.fetch("SELECT partition FROM expired_event_partitions($1)", keep)
        return [row["partition"] for row in rows]

    async def checkpoint_deliveries(self, partition: str, limit: int) -> int | None:
        """``None`` when no delivery needs a checkpoint."""
        seen: int | None = await self._database.fetchval("SELECT checkpoint_deliveries($1, $2)", partition, limit)
        return seen

    async def drop_event_partition(self, partition: str, keep: timedelta, *, relayed: bool) -> Dropped:
        query = "SELECT drop_event_partition($1, $2, $3)"
        verdict: Dropped = await self._database.fetchval(query, partition, keep, relayed)
        return verdict

    async def retain_deliveries(self, keep: timedelta, after: Place, limit: int) -> Step:
        return convert(await self._walk("SELECT retain_deliveries($1, $2, $3)", keep, after, limit), Step)

    async def retain_messages(self, keep: timedelta, after: Place, limit: int) -> Step:
        return convert(await self._walk("SELECT retain_messages($1, $2, $3)", keep, after, limit), Step)

    async def retain_media_blobs(self, keep: timedelta, after: Place, limit: int) -> Step:
        return convert(await self._walk("SELECT retain_media_blobs($1, $2, $3)", keep, after, limit), Step)

    async def retain_receipts(self, keep: timedelta, limit: int) -> int:
        """Receipts have their own expiry; ``keep`` is not used."""
        return int(await self._database.fetchval("SELECT retain_receipts($1)", limit))

    async def retain_ingest_runs(self, keep: timedelta, limit: int) -> int:
        return int(await self._database.fetchval("SELECT retain_ingest_runs($1, $2)", keep, limit))

    async def retain_staged_posts(self, keep: timedelta, limit: int) -> int:
        return int(await self._database.fetchval("SELECT retain_staged_posts($1, $2)", keep, limit))

    async def retain_pull_receipts(self, keep: timedelta, limit: int) -> int:
        return int(await self._database.fetchval("SELECT retain_pull_receipts($1, $2)", keep, limit))

    async def retain_media_fetches(self, keep: timedelta, limit: int) -> int:
        return int(await self._database.fetchval("SELECT retain_media_fetches($1, $2)", keep, limit))

    async def retain_bot_inbox(self, keep: timedelta, limit: int) -> int:
        return int(await self._database.fetchval("SELECT retain_bot_inbox($1, $2)", keep, limit))

    async def retain_bot_outbox(self, keep: timedelta, limit: int) -> int:
        return int(await self._database.fetchval("SELECT retain_bot_outbox($1, $2)", keep, limit))

    async def retain_bot_chats(self, keep: timedelta, limit: int) -> int:
        return int(await self._database.fetchval("SELECT retain_bot_chats($1, $2)", keep, limit))

    async def retain_bot_logs(self, keep: timedelta, limit: int) -> int:
        return int(await self._database.fetchval("SELECT retain_bot_logs($1, $2)", keep, limit))

    async def retain_bot_rulesets(self, keep: timedelta, limit: int) -> int:
        return int(await self._database.fetchval("SELECT retain_bot_rulesets($1, $2)", keep, limit))

    async def retain_bot_state(self, keep: timedelta, limit: int) -> int:
        return int(await self._database.fetchval("SELECT retain_bot_state($1, $2)", keep, limit))

    async def retain_bot_actions(self, keep: timedelta, limit: int) -> int:
        return int(await self._database.fetchval("SELECT retain_bot_actions($1, $2)", keep, limit))

    async def retain_commands(self, keep: timedelta, limit: int) -> int:
        return int(await self._database.fetchval("SELECT retain_commands($1, $2)", keep, limit))

    async def retain_alerts(self, keep: timedelta, limit: int) -> int:
        return int(await self._database.fetchval("SELECT retain_alerts($1, $2)", keep, limit))

    async def _walk(self, query: str, keep: timedelta, after: Place, limit: int) -> Any:
        return await self._database.fetchval(query, keep, after, limit)
