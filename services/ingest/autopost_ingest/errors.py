"""Errors that several packages of ingest raise, and how background loops log one.

The text of a database error is not logged: its detail may contain a row. Other errors are logged with their traceback.
"""

from autopost_runtime.http.quotas import AtCapacity as AtCapacity
from autopost_runtime.postgres.errors import is_of_the_database
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

met = metrics.counter("autopost_ingest_database_errors_total", "Errors in background loops by event.")


class InvalidPost(Exception):  # noqa: N818  named for what it is
    """The post is well-formed, but ``field`` has an invalid value."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


def log_background_error(exc: Exception, event: str) -> None:
    """Log and count; the loop continues."""
    met.add(1, {"event": event})
    if is_of_the_database(exc):
        get_logger().warning(event, error=type(exc).__name__, sqlstate=getattr(exc, "sqlstate", None))
    else:
        get_logger().error(event, exc_info=exc)
