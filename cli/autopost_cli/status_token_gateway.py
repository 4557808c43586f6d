"""The calls of `autopost auth status-token` into the database, as role `autopost_operator`: one per function."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID

from autopost_cli.operate import Order
from autopost_cli.operate_gateway import Connection, Row, connected


@asynccontextmanager
async def rehearsed(order: Order) -> AsyncIterator[Connection]:
    """A connection in one transaction; of a dry run nothing stays."""
    async with connected(order.database_url) as connection:
        transaction = connection.transaction()
        await transaction.start()
        try:
            yield connection
        except BaseException:
            await transaction.rollback()
            raise
        await (transaction.rollback() if order.dry_run else transaction.commit())


async def issue_status_token(
    connection: Connection, order: Order, digest: str, workspace: UUID | None, label: str, lifetime: timedelta
) -> Row:
    query = "SELECT issue_status_token($1, $2, $3, $4, $5, $6)"
    signed = (order.operator, order.reason)
    return dict(await connection.fetchval(query, digest, workspace, label, lifetime, *signed))


async def revoke_status_token(connection: Connection, order: Order, label: str) -> Row:
    query = "SELECT revoke_status_token($1, $2, $3)"
    return dict(await connection.fetchval(query, label, order.operator, order.reason))


async def list_status_tokens(connection: Connection) -> list[Row]:
    return [dict(row) for row in await connection.fetch("SELECT * FROM list_status_tokens()")]
