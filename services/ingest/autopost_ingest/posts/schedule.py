"""Refuse a post whose time has passed: it would be sent at once, which is hardly what is meant."""

from datetime import UTC, datetime, timedelta

from autopost_contracts.payload import PostRequest

from autopost_ingest.errors import InvalidPost

TOLERANCE = timedelta(minutes=5)
"""For clocks that differ, and for requests that took long."""


def is_late(request: PostRequest) -> bool:
    return request.scheduled_for is not None and request.scheduled_for < datetime.now(UTC) - TOLERANCE


def late(request: PostRequest) -> InvalidPost:
    """For a late post that is no repetition: the repetition of a post that was stored in time is a duplicate."""
    return InvalidPost(
        "scheduled_for",
        f"{request.scheduled_for} is more than {TOLERANCE.seconds // 60} minutes in the past; leave it out to send now",
    )
