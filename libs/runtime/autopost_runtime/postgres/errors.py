"""Classify database errors for the caller: can the call be retried, and may it have committed?

A commit without a response has an unknown outcome, never "rolled back": read the data before anything else.
"""

import asyncpg

RETRYABLE_STATES = frozenset(
    {
        "40001",  # serialization_failure
        "40P01",  # deadlock_detected
        "55P03",  # lock_not_available
        "57014",  # query_canceled: the server's statement_timeout
        "57P01",  # admin_shutdown
        "57P02",  # crash_shutdown
        "57P03",  # cannot_connect_now
        "25006",  # read_only_sql_transaction: a standby during a failover, or a nearly full disk
        "25P03",  # idle_in_transaction_session_timeout: we were too slow, the transaction is rolled back
        "58000",  # system_error
        "58030",  # io_error
    }
)
AWAY_STATES = frozenset({"57P01", "57P02", "57P03", "25006", "58000", "58030"})  # those that affect the whole server
INSUFFICIENT_RESOURCES = "53"  # a class of codes: disk full, out of memory, too many connections
UNKNOWN_STATES = frozenset({"57P01", "57P02", "40003"})  # 40003: statement_completion_unknown
NEVER_SENT_STATES = frozenset({"08001", "08004"})  # the connection was not established, or was rejected
NOT_THERE_YET = frozenset({"3D000", "22023"})  # unknown database; unknown role: before the migrations

_CALLER_ERRORS = (asyncpg.exceptions.DataError,)
_NOT_WRITTEN = ("cannot switch to state", "not connected")
"""Errors of asyncpg before it writes to a connection that the server has closed."""


class NotConnected(Exception):  # noqa: N818  named for what happened
    """No connection was available, so nothing was sent; see the cause."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"no database connection: {type(cause).__name__}")


def is_retryable(exc: BaseException) -> bool:
    """Whether a retry may succeed."""
    match exc:
        case NotConnected():
            return exc.__cause__ is None or is_retryable(exc.__cause__) or may_come_up(exc.__cause__)
        case asyncpg.PostgresConnectionError():
            return True
        case asyncpg.PostgresError():
            state = exc.sqlstate or ""
            return state in RETRYABLE_STATES or state.startswith(INSUFFICIENT_RESOURCES)
        case asyncpg.InterfaceError():
            return not _is_caller_error(exc)
        case asyncpg.InternalClientError():  # the connection is lost, whatever state it reports
            return True
        case _:
            return isinstance(exc, OSError)  # includes TimeoutError


def is_of_the_database(exc: BaseException) -> bool:
    """Whether the server reported the error or could not be reached; anything else is a bug in our code."""
    return isinstance(exc, asyncpg.PostgresError | NotConnected) or is_retryable(exc)


def is_away(exc: BaseException) -> bool:
    """Whether the error affects every caller now, and not only this call."""
    if isinstance(exc, asyncpg.PostgresError) and not isinstance(exc, asyncpg.PostgresConnectionError):
        state = exc.sqlstate or ""
        return state in AWAY_STATES or state.startswith(INSUFFICIENT_RESOURCES)
    return is_retryable(exc)


def may_have_committed(exc: BaseException) -> bool:
    """The connection or the response was lost after the statement may have reached the server."""
    match exc:
        case NotConnected() | ConnectionRefusedError():
            return False
        case asyncpg.PostgresConnectionError():
            return exc.sqlstate not in NEVER_SENT_STATES
        case asyncpg.PostgresError():
            return exc.sqlstate in UNKNOWN_STATES
        case asyncpg.InterfaceError():
            return not _is_caller_error(exc)
        case asyncpg.InternalClientError():
            return not str(exc).startswith(_NOT_WRITTEN)
        case _:
            return isinstance(exc, OSError)


def may_come_up(exc: BaseException) -> bool:
    """Whether a service should wait for the database at start."""
    return is_retryable(exc) or (isinstance(exc, asyncpg.PostgresError) and exc.sqlstate in NOT_THERE_YET)


def _is_caller_error(exc: asyncpg.InterfaceError) -> bool:
    """asyncpg raises ``InterfaceError`` both for a lost connection and for a wrong argument."""
    return isinstance(exc, _CALLER_ERRORS) or "the server expects" in str(exc) or "operation is in progress" in str(exc)
