"""The database calls of `autopost payload`, as role `autopost_payloads`."""

from datetime import timedelta
from uuid import UUID

from autopost_cli.operate.gateway import Connection, Row
from autopost_cli.operate.operate import CommonOptions

ROLE = "autopost_payloads"


async def note_payload_access(
    connection: Connection, workspace: UUID, options: CommonOptions, ref: str, lifetime: timedelta | None
) -> Row:
    """Call it in a transaction: the role reads the workspace of a transaction-local setting."""
    await connection.execute("SELECT set_config('autopost.workspace_id', $1, true)", str(workspace))
    query = "SELECT note_payload_access($1, $2, $3, $4, $5)"
    return dict(await connection.fetchval(query, workspace, ref, options.operator, options.reason, lifetime))
