"""The result of sending a notice. It contains no text of the target and no URL, since they may contain secrets."""

from datetime import timedelta

from msgspec import Struct

LONGEST_NOTICE_WAIT = timedelta(hours=1)
"""Upper limit for the wait that a target asks for."""


class NoticeDelivered(Struct, frozen=True):
    pass


class NoticeRejected(Struct, frozen=True):
    """The target works and rejects this notice."""

    code: str


class TargetUnreachable(Struct, frozen=True):
    """The target is unreachable, rejects all notices or asks for a wait: other notices would fail too."""

    code: str
    wait: timedelta | None = None


NoticeResult = NoticeDelivered | NoticeRejected | TargetUnreachable
