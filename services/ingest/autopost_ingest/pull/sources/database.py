"""Pull a database: one query in a read-only transaction, with limits on rows, bytes and time.

The cursor is the greatest value of a column. It advances only past a value whose rows were all read; the rest is read
by the next pull. The server sends each row as one JSON object, and a worker process parses it, because decoding the
values of a large row would block the event loop. Rows are fetched in small batches, large rows one by one, and no row
that is larger than the limit is sent: it may have a gigabyte.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from math import isfinite
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import asyncpg
import msgspec
from autopost_runtime.config.load import Secret
from autopost_runtime.secrets.redaction import quoted
from msgspec import Struct

from autopost_ingest.pull.endings import PullFailed, PullFinished, PullRejected
from autopost_ingest.pull.import_items import ItemImporter
from autopost_ingest.pull.parsing.reader import DocumentReader
from autopost_ingest.pull.parsing.reading import ReadRows
from autopost_ingest.pull.source_config import DbSource, Misconfigured
from autopost_ingest.pull.sources.fetch_document import Budget, Fetch

CONNECT_LIMIT = timedelta(seconds=10)
MOST_AT_ONCE = 64
ENOUGH_AT_ONCE = 256 * 1024
"""Bytes of one batch of rows; after a larger batch the next row is fetched alone."""

TOO_LARGE = "autopost_row_too_large"
"""In the error of the server for a row over the limit."""
_GUARDED = f"""
    SELECT {{mark}} AS mark, convert_to(row_to_json(autopost_row)::text, 'UTF8') AS record FROM (
{{query}}
    ) AS autopost_row
    WHERE CASE WHEN octet_length(row_to_json(autopost_row)::text) > {{size}}
               THEN ('{TOO_LARGE}' || left(row_to_json(autopost_row)::text, 0))::int = 0 ELSE true END"""
LONGEST_MARK = 4096
"""Characters of a cursor value."""

_COMPARABLE = (int, float, Decimal, date, UUID)
"""Types that Postgres and Python order the same way; the order of text depends on the collation."""

_ARGUMENTS: Mapping[str, Callable[[str], Any]] = {
    **{"int2": int, "int4": int, "int8": int, "float4": float, "float8": float, "numeric": Decimal},
    **{"timestamptz": datetime.fromisoformat, "timestamp": datetime.fromisoformat, "date": date.fromisoformat},
}


class _Row(Struct, frozen=True):
    mark: Any
    """The value of the cursor column."""
    record: bytes


class _Page(Struct, frozen=True):
    rows: Sequence[_Row]
    more: bool


class _Rows(list[_Row]):
    is_cut = False
    """The next row is larger than the limit."""


async def look_up_server(dsn: Secret, fetch: Fetch) -> None:
    """Resolve the host in the fetch threads first, so that a slow name does not block the threads for our own names."""
    try:
        host = urlsplit(dsn.reveal()).hostname or ""
    except ValueError:
        return  # the driver reports the error
    for name in filter(None, host.split(",")):
        try:
            async with asyncio.timeout(CONNECT_LIMIT.total_seconds()):
                await fetch.look_up(name)
        except (OSError, UnicodeError) as exc:
            raise PullFailed("connect", f"the database cannot be reached: {type(exc).__name__}") from None


async def pull_db(
    source: DbSource,
    cursor: dict[str, Any],
    dsn: Secret,
    budget: Budget,
    reader: DocumentReader,
    importer: ItemImporter,
) -> PullFinished:
    page = await _query(source, cursor, dsn, budget)
    rows = tuple(row.record for row in page.rows)
    read = await reader.read(ReadRows(rows=rows, fields=source.fields, text_format=source.text_format))
    marks = [msgspec.to_builtins(row.mark, enc_hook=str) for row in page.rows] if source.cursor else []
    await importer.take(
        await importer.fresh(read.items),
        {"last_seen": marks[-1]} if marks else {},
        last=not (page.more and source.cursor),
        marks=marks,
        newest=not page.more,
    )
    if page.more and not source.cursor:
        raise Misconfigured(f"query: returns more than {source.rows} rows; add a cursor or a LIMIT")
    return PullFinished(more=page.more)


async def _query(source: DbSource, cursor: dict[str, Any], dsn: Secret, budget: Budget) -> _Page:
    """Raises ``PullFailed``, ``PullRejected`` or ``Misconfigured``."""
    within = budget.within
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
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            return await _page(connection, source, cursor, budget.size)
    except (asyncpg.SyntaxOrAccessError, asyncpg.ReadOnlySQLTransactionError, asyncpg.DataError) as exc:
        raise Misconfigured(f"query: {quoted(str(exc))}") from None
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as exc:
        raise PullFailed(type(exc).__name__, f"the query failed: {quoted(str(exc))}") from None
    finally:
        connection.terminate()


async def _page(connection: "asyncpg.Connection[Any]", source: DbSource, cursor: dict[str, Any], size: int) -> _Page:
    theirs = await connection.prepare(source.query)  # its own errors first
    column = source.cursor.column if source.cursor else None
    if column is not None and column not in [attribute.name for attribute in theirs.get_attributes()]:
        raise Misconfigured(f"cursor: the query returns no column {column!r}")
    prepared = await _prepared(connection, source, size)
    given = [parameter.name for parameter in prepared.get_parameters()]
    if len(given) != (source.cursor is not None):
        raise Misconfigured("query: must use the parameter $1 if there is a cursor, and no parameter otherwise")
    if source.cursor is None or column is None:
        rows = await _rows(connection, prepared, [], source.rows, size)
        if _size(rows) > size or rows.is_cut:
            raise PullRejected("too_large", f"the rows are larger than {size} bytes")
        return _Page(rows[: source.rows], len(rows) > source.rows)
    argument = _argument(given[0], cursor.get("last_seen", source.cursor.start))
    rows = await _rows(connection, prepared, [argument], source.rows, size)
    if rows.is_cut:
        rows.append(_Row(await _mark_at(connection, source, argument, len(rows)), b""))
    _check_marks([row.mark for row in rows], column)
    more = len(rows) > source.rows or _size(rows) > size or rows.is_cut
    kept = _complete_values(rows, column, source.rows) if more else rows
    if kept and not isinstance(kept[-1].mark, _COMPARABLE):
        after = await _mark_at(connection, source, _argument(given[0], kept[-1].mark), 0)
        _check_order_after(after, [row.mark for row in kept], column)
    return _Page(kept, more)


def _inner(source: DbSource) -> str:
    return source.query.strip().rstrip(";")


async def _prepared(connection: "asyncpg.Connection[Any]", source: DbSource, size: int) -> Any:
    try:
        return await connection.prepare(_GUARDED.format(mark=_mark(source), query=_inner(source), size=size))
    except (asyncpg.PostgresSyntaxError, asyncpg.FeatureNotSupportedError):
        raise Misconfigured("query: must be one SELECT; it runs in a read-only transaction") from None


def _mark(source: DbSource) -> str:
    """The cursor value; null when it is too long, so that nothing large is decoded in the event loop."""
    if source.cursor is None:
        return "NULL::int"
    column = source.cursor.column.replace('"', '""')
    return f'CASE WHEN length(autopost_row."{column}"::text) <= {LONGEST_MARK} THEN autopost_row."{column}" END'


async def _mark_at(connection: "asyncpg.Connection[Any]", source: DbSource, argument: Any, place: int) -> Any:
    """The cursor value of a row that is not fetched itself; ``None`` without such a row."""
    query = f"SELECT {_mark(source)} FROM (\n{_inner(source)}\n) AS autopost_row OFFSET {place} LIMIT 1"
    return await connection.fetchval(query, argument)


async def _rows(
    connection: "asyncpg.Connection[Any]",
    prepared: Any,
    arguments: Sequence[Any],
    most: int,
    size: int,
) -> _Rows:
    """Read one row more than ``most``, or the row that exceeds ``size``, so that the caller knows there are more."""
    rows = _Rows()
    left, at_once = size, 1
    try:
        async with connection.transaction():  # the caller goes on after a row that is too large
            found = await prepared.cursor(*arguments)
            while left >= 0 and len(rows) <= most:
                batch = [
                    _Row(row["mark"], row["record"]) for row in await found.fetch(min(at_once, most + 1 - len(rows)))
                ]
                if not batch:
                    break
                rows += batch
                left -= _size(batch)
                at_once = min(at_once * 2, MOST_AT_ONCE) if _size(batch) < ENOUGH_AT_ONCE else 1
    except asyncpg.InvalidTextRepresentationError as exc:
        if TOO_LARGE not in str(exc):
            raise
        rows.is_cut = True
    return rows


def _size(rows: Sequence[_Row]) -> int:
    return sum(len(row.record) for row in rows)


def _argument(kind: str, value: Any) -> Any:
    """Convert the stored JSON value to the type of the query parameter."""
    try:
        return _ARGUMENTS.get(kind, str)(str(value))
    except (ValueError, InvalidOperation):
        raise Misconfigured(f"cursor: {quoted(str(value))!r} is not a valid {kind}") from None


def _check_marks(marks: Sequence[Any], column: str) -> None:
    if any(mark is None for mark in marks):
        raise Misconfigured(f"cursor: {column!r} must not be null or longer than {LONGEST_MARK} characters")
    if any(map(_is_infinite, marks)):
        raise Misconfigured(f"cursor: {column!r} must not be infinite")
    comparable = all(isinstance(mark, _COMPARABLE) for mark in marks)
    if comparable and any(one > other for one, other in pairwise(marks)):
        raise Misconfigured(f"query: rows must be ordered by {column!r}")


def _is_infinite(mark: Any) -> bool:
    if isinstance(mark, float | Decimal):
        return not isfinite(mark)
    if isinstance(mark, datetime):  # the driver returns infinity as these values, without a zone
        return mark.replace(tzinfo=None) in (datetime.max, datetime.min)  # noqa: DTZ901  only compared
    return mark in (date.max, date.min)


def _check_order_after(after: Any, marks: Sequence[Any], column: str) -> None:
    """For types that only the server can order: the value ``after`` the last mark must not have been read before."""
    if after is not None and after != marks[-1] and after in marks:
        raise Misconfigured(f"query: rows must be ordered by {column!r}")


def _complete_values(rows: Sequence[_Row], column: str, cap: int) -> Sequence[_Row]:
    """Drop the rows with the last value, because more rows with it may follow."""
    kept = [row for row in rows if row.mark != rows[-1].mark]
    if kept:
        return kept
    if len(rows) > cap:
        raise Misconfigured(f"cursor: more than {cap} rows have the same {column!r}")
    raise PullRejected("too_large", f"the rows with one value of {column!r} are too large together")
