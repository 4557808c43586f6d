"""A step that was taken, and what several of the rules ask of one.

``seen`` is what the step saw: one view, or, when it had to wait for others to end, the views before and after
that; an answer that fits either is right.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from db.model.queue_model import LIVE, SECOND, Channel, Row, Terms, View, demand


@dataclass
class Done:
    """A step and all that its transaction wrote by it."""

    kind: str
    args: dict[str, Any]
    answer: Any
    began: int
    ended: int
    seen: Sequence[View]
    changes: dict[str, tuple[Row | None, Row]]
    channels: dict[str, tuple[Channel, Channel]]
    gates: dict[str, tuple[int | None, int | None]]
    terms: dict[str, Terms]
    others_claim: bool
    others_open: bool

    @property
    def view(self) -> View:
        return self.seen[-1]


Explained: TypeAlias = set[str]


def twin_of(view: View, row_message: str, channel: str, now: int, ttl: int, but: str = "") -> bool | None:
    """``None`` when it cannot be told: a window that ends in this very moment."""
    found: bool | None = False
    for row in view.all_rows():
        if (row.message, row.channel) != (row_message, channel) or row.delivery == but:
            continue
        if row.status in LIVE:
            return True
        if row.status == "sent":
            left = (row.sent_at or 0) + ttl - now
            if left > SECOND:
                return True
            found = None if left > -SECOND else found
    return found


def fences(done: Done, delivery: str, token: str, taken: bool, used: bool = False) -> bool:
    """Taken exactly when the token is the current one; a step that waited may have looked before it was."""
    holds = [not used and _holds(view.row(delivery), token) for view in done.seen]
    demand(taken in holds and (not taken or holds[-1]), "fences", done.kind, done.view.row(delivery), token, taken)
    return taken


def _holds(row: Row | None, token: str) -> bool:
    return bool(row and row.status == "sending" and row.token == token)
