"""Pull a database: one query in a read-only transaction, as far as a row cap and a time limit go.

The cursor is the greatest value of a column. It moves only behind a value that was read with all its rows: what a cap
cuts off is read by the next pull.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any

import asyncpg
import msgspec
from autopost_runtime.config import Secret
from autopost_runtime.redaction import redact

from autopost_ingest.pull.bring import Bringer
from autopost_ingest.pull.documents import Budget
from autopost_ingest.pull.endings import Ended, PullFailed
from autopost_ingest.pull.reader import Reader
from autopost_ingest.pull.reading import ReadRecords
from autopost_ingest.pull.records import MARK
from autopost_ingest.pull.rss import read_by
from autopost_ingest.pull.sources import DbCursor, DbSource, Misconfigured

CONNECT_LIMIT = timedelta(seconds=10)

Row = Mapping[str, Any]

_ARGUMENTS: Mapping[str, Callable[[str], Any]] = {
    **{"int2": int, "int4": int, "int8": int, "float4": float, "float8": float, "numeric": Decimal},
    **{"timestamptz": datetime.fromisoformat, "timestamp": datetime.fromisoformat, "date": date.fromisoformat},
}


async def pull_db(
    source: DbSource, cursor: dict[str, Any], dsn: Secret, budget: Budget, reader: Reader, bringer: Bringer
) -> Ended:
    rows = await _query(source, cursor, dsn, budget.within)
    more = len(rows) > source.rows
    if source.cursor:
        _check_order(rows, source.cursor.column)
        rows = _whole(rows, source.cursor.column, source.rows)
    else:
        rows = rows[: source.rows]
    read = await read_by(
        reader,
        ReadRecords(body=_encoded(rows, source.cursor), url="", fields=source.fields, text_format=source.text_format),
    )
    marks = [item.mark for item in read.items] if source.cursor else []
    await bringer.take(
        await bringer.fresh(read.items), {"last_seen": marks[-1]} if marks else {}, last=True, marks=marks
    )
    if more and not source.cursor:
        raise Misconfigured(
            f"query: it gives more than {source.rows} rows, and without a cursor the rest is never read"
        )
    return Ended(more=more)


async def _query(source: DbSource, cursor: dict[str, Any], dsn: Secret, within: timedelta) -> Sequence[Row]:
    """One row more than the cap, so that it shows when there are more. Raises ``PullFailed`` or ``Misconfigured``."""
    try:
        connection = await asyncpg.connect(
            dsn.reveal(),
            timeout=CONNECT_LIMIT.total_seconds(),
            command_timeout=within.total_seconds() + 5,
            server_settings={
                "application_name": "autopost-pull",
                "statement_timeout": str(round(within.total_seconds() * 1000)),
                "timezone": "UTC",
            },
        )
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, ValueError) as exc:
        raise PullFailed("connect", f"the database cannot be reached: {type(exc).__name__}") from None
    try:
        async with connection.transaction(readonly=True):
            return await _rows(connection, source, cursor)
    except (asyncpg.SyntaxOrAccessError, asyncpg.ReadOnlySQLTransactionError, asyncpg.DataError) as exc:
        raise Misconfigured(f"query: {redact(str(exc))[:300]}") from None
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as exc:
        raise PullFailed(type(exc).__name__, f"the query failed: {redact(str(exc))[:300]}") from None
    finally:
        connection.terminate()


async def _rows(connection: "asyncpg.Connection[Any]", source: DbSource, cursor: dict[str, Any]) -> Sequence[Row]:
    prepared = await connection.prepare(source.query)
    names = [attribute.name for attribute in prepared.get_attributes()]
    given = [parameter.name for parameter in prepared.get_parameters()]
    if len(given) != (source.cursor is not None):
        raise Misconfigured("query: it has $1, and nothing else, exactly when there is a cursor")
    if source.cursor and source.cursor.column not in names:
        raise Misconfigured(f"cursor: the query gives no column {source.cursor.column!r}")
    arguments = [_argument(given[0], cursor.get("last_seen", source.cursor.start))] if source.cursor else []
    found = await prepared.cursor(*arguments)
    return [dict(row) for row in await found.fetch(source.rows + 1)]


def _argument(kind: str, value: Any) -> Any:
    """What was kept as JSON, as the type that the query takes."""
    try:
        return _ARGUMENTS.get(kind, str)(str(value))
    except (ValueError, InvalidOperation):
        raise Misconfigured(f"cursor: {value!r} is no {kind}") from None


def _check_order(rows: Sequence[Row], column: str) -> None:
    if any(row[column] is None for row in rows):
        raise Misconfigured(f"cursor: {column!r} is null in some rows")
    if any(one[column] > other[column] for one, other in pairwise(rows)):
        raise Misconfigured(f"query: its rows are not in the order of {column!r}")


def _whole(rows: Sequence[Row], column: str, cap: int) -> Sequence[Row]:
    """Without the rows at the cap whose value may have more rows behind it."""
    if len(rows) <= cap:
        return rows
    kept = [row for row in rows if row[column] != rows[-1][column]]
    if not kept:
        raise Misconfigured(f"cursor: more than {cap} rows have the same {column!r}")
    return kept


def _encoded(rows: Sequence[Row], cursor: DbCursor | None) -> bytes:
    marked = ({**row, MARK: row[cursor.column]} for row in rows) if cursor else rows
    return msgspec.json.encode(list(marked), enc_hook=str)
