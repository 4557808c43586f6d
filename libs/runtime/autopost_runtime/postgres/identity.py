"""New ids: time-ordered UUIDs, so that an index grows at its end."""

from uuid import UUID

import uuid_utils
from uuid_utils.compat import uuid7


def new_id() -> UUID:
    return uuid7()


def new_id_text() -> str:
    """For what is only written: a UUID of Python takes five times as long to make and to write."""
    return str(uuid_utils.uuid7())
