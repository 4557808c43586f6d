"""Which rate groups get no answers: what this process knows before the database does.

The database opens the circuit when three outcomes are committed (``settle_circuits``). Replies in hand had their slots
before that; they are given back instead of being spent on a platform that is away.
"""

import time
from uuid import UUID

from autopost_contracts.outcomes import Failed, Outcome
from autopost_runtime.lifecycle.pace import RateGroup
from msgspec import Struct, field

from autopost_bot.conversation.taken import ReplyJob

OPENS_AT = 3
"""Distinct replies without an answer; the same number as in ``settle_circuits``."""


class _Silence(Struct):
    replies: set[UUID] = field(default_factory=set)
    since: float | None = None


class Silences:
    def __init__(self) -> None:
        self._groups: dict[RateGroup, _Silence] = {}

    def note(self, job: ReplyJob, outcome: Outcome) -> None:
        if not isinstance(outcome, Failed) or outcome.answered:
            self._groups.pop(job.group, None)
        elif outcome.is_silence:
            silence = self._groups.setdefault(job.group, _Silence())
            silence.replies.add(job.reply_id)
            if len(silence.replies) >= OPENS_AT and silence.since is None:
                silence.since = time.monotonic()

    def is_away(self, job: ReplyJob) -> bool:
        """Whether it was granted before the platform stopped answering. What is granted later is the database's
        decision."""
        silence = self._groups.get(job.group)
        return silence is not None and silence.since is not None and job.granted_at < silence.since
