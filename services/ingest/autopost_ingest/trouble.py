"""What a loop in the background does about an error of the database: it says so, counts it and goes on.

Only a mistake of ours ends the service. What the error says is not logged: its detail may hold a row.
"""

from autopost_runtime import metrics
from autopost_runtime.database_errors import is_of_the_database
from autopost_runtime.logs import get_logger

met = metrics.counter("autopost_ingest_database_errors_total", "Database errors that ingest went on after, by event.")


def put_up_with(exc: Exception, event: str) -> None:
    """Raises what is not of the database."""
    if not is_of_the_database(exc):
        raise exc
    met.add(1, {"event": event})
    get_logger().warning(event, error=type(exc).__name__, sqlstate=getattr(exc, "sqlstate", None))
