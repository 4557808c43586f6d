"""`autopost seed`: the demo workspaces of `db/seed.sql`."""

import asyncio

import asyncpg
import click

from autopost_cli.schema import schema_files
from autopost_cli.schema.migrate import DATABASE


async def seed(database_url: str) -> None:
    """Insert the demo workspaces; existing rows are kept."""
    connection = await asyncpg.connect(database_url, timeout=10)
    try:
        async with connection.transaction():
            await connection.execute("SET LOCAL search_path = public")
            await connection.execute(schema_files.seed())
    finally:
        await connection.close()


@click.command("seed")
@DATABASE
def command(database_url: str) -> None:
    """Insert two demo workspaces into the database. Running it again changes nothing."""
    try:
        asyncio.run(seed(database_url))
    except (asyncpg.PostgresError, OSError) as exc:
        raise click.ClickException(f"{exc}; run `autopost migrate up` first") from None
    click.echo("inserted workspaces: demo (40 channels), shop (7 channels)")
