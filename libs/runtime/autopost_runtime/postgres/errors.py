"""What an error of the database means for the caller: may it be tried again, and may it have happened?

A commit whose answer was lost is unknown, never "rolled back": read back before doing anything else.
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
        "25006",  # read_only_sql_transaction: a standby that is about to be the primary, or a disk that is nearly full
        "25P03",  # idle_in_transaction_session_timeout: we were too slow, and all was rolled back
        "58000",  # system_error
        "58030",  # io_error
    }
)
AWAY_STATES = frozenset({"57P01", "57P02", "57P03", "25006", "58000", "58030"})  # of those above: of the whole server
INSUFFICIENT_RESOURCES = "53"  # the class: disk full, out of memory, too many connections
UNKNOWN_STATES = frozenset({"57P01", "57P02", "40003"})  # the last: statement_completion_unknown
NEVER_SENT_STATES = frozenset({"08001", "08004"})  # the connection was not made or refused
NOT_THERE_YET = frozenset({"3D000", "22023"})  # no such database; no such role: migrations come first

_OUR_MISTAKE = (asyncpg.exceptions.DataError,)
_NOTHING_WRITTEN = ("cannot switch to state", "not connected")
"""What asyncpg says before it writes to a connection that the server has closed meanwhile."""


class NotConnected(Exception):  # noqa: N818  named for what happened
    """No connection could be had, so nothing was sent; the cause says why."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"no database connection: {type(cause).__name__}")


def is_retryable(exc: BaseException) -> bool:
    """Whether the same call may succeed later."""
    match exc:
        case NotConnected():
            return exc.__cause__ is None or is_retryable(exc.__cause__) or may_come_up(exc.__cause__)
        case asyncpg.PostgresConnectionError():
            return True
        case asyncpg.PostgresError():
            state = exc.sqlstate or ""
            return state in RETRYABLE_STATES or state.startswith(INSUFFICIENT_RESOURCES)
        case asyncpg.InterfaceError():
            return not _is_our_mistake(exc)
        case asyncpg.InternalClientError():  # its connection is lost, whatever state it reports
            return True
        case _:
            return isinstance(exc, OSError)  # TimeoutError is one


def is_of_the_database(exc: BaseException) -> bool:
    """Whether the server said so or could not be reached; anything else is a mistake in our code."""
    return isinstance(exc, asyncpg.PostgresError | NotConnected) or is_retryable(exc)


def is_away(exc: BaseException) -> bool:
    """Whether every caller would meet this error now. Any other error belongs to the one call that met it."""
    if isinstance(exc, asyncpg.PostgresError) and not isinstance(exc, asyncpg.PostgresConnectionError):
        state = exc.sqlstate or ""
        return state in AWAY_STATES or state.startswith(INSUFFICIENT_RESOURCES)
    return is_retryable(exc)


def may_have_committed(exc: BaseException) -> bool:
    """The connection or the answer was lost after the statement may have reached the server."""
    match exc:
        case NotConnected() | ConnectionRefusedError():
            return False
        case asyncpg.PostgresConnectionError():
            return exc.sqlstate not in NEVER_SENT_STATES
        case asyncpg.PostgresError():
            return exc.sqlstate in UNKNOWN_STATES
        case asyncpg.InterfaceError():
            return not _is_our_mistake(exc)
        case asyncpg.InternalClientError():
            return not str(exc).startswith(_NOTHING_WRITTEN)
        case _:
            return isinstance(exc, OSError)


def may_come_up(exc: BaseException) -> bool:
    """Whether waiting for the database at start makes sense."""
    return is_retryable(exc) or (isinstance(exc, asyncpg.PostgresError) and exc.sqlstate in NOT_THERE_YET)


def _is_our_mistake(exc: asyncpg.InterfaceError) -> bool:
    """asyncpg raises ``InterfaceError`` for a lost connection and for a wrong argument alike."""
    return isinstance(exc, _OUR_MISTAKE) or "the server expects" in str(exc) or "operation is in progress" in str(exc)
