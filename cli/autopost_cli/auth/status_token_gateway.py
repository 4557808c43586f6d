"""The database calls of `autopost auth status-token`, as role `autopost_operator`: one per SQL function."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID

from autopost_cli.operate.gateway import Connection, Row, connected
from autopost_cli.operate.operate import CommonOptions


@asynccontextmanager
async def transaction(options: CommonOptions) -> AsyncIterator[Connection]:
    """A connection in one transaction; a dry run is rolled back."""
    async with connected(options.database_url) as connection:
        transaction = connection.transaction()
        await transaction.start()
        try:
            yield connection
        except BaseException:
            await transaction.rollback()
            raise
        await (transaction.rollback() if options.dry_run else transaction.commit())


async def issue_status_token(
    connection: Connection, options: CommonOptions, digest: str, workspace: UUID | None, label: str, lifetime: timedelta
) -> Row:
    query = "SELECT issue_status_token($1, $2, $3, $4, $5, $6)"
    signed = (options.operator, options.reason)
    return dict(await connection.fetchval(query, digest, workspace, label, lifetime, *signed))


async def revoke_status_token(connection: Connection, options: CommonOptions, label: str) -> Row:
    query = "SELECT revoke_status_token($1, $2, $3)"
    return dict(await connection.fetchval(query, label, options.operator, options.reason))


async def list_status_tokens(connection: Connection) -> list[Row]:
    return [dict(row) for row in await connection.fetch("SELECT * FROM list_status_tokens()")]
