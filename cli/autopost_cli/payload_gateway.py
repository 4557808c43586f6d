"""The call of `autopost payload` into the database, as role `autopost_operator`."""

from datetime import timedelta
from uuid import UUID

from autopost_cli.operate import Order
from autopost_cli.operate_gateway import Connection, Row


async def note_payload_access(
    connection: Connection, workspace: UUID, order: Order, ref: str, lifetime: timedelta | None
) -> Row:
    query = "SELECT note_payload_access($1, $2, $3, $4, $5)"
    return dict(await connection.fetchval(query, workspace, ref, order.operator, order.reason, lifetime))
