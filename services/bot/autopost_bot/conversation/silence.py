"""Which rate groups get no answers: what this process knows before the database does.

The database opens the circuit when three outcomes are committed (``settle_circuits``). Replies in hand had their slots
before that; they are given back instead of being spent on a platform that is away.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
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
        self._running: dict[RateGroup, dict[int, float]] = {}
        """By the number of the call, when it began; the oldest first."""
        self._answered_at: dict[RateGroup, float] = {}
        self._numbers = count()

    @contextmanager
    def calling(self, job: ReplyJob) -> Iterator[None]:
        """Around one call."""
        number, running = next(self._numbers), self._running.setdefault(job.group, {})
        running[number] = time.monotonic()
        try:
            yield
        finally:
            del running[number]
            if not running:
                self._running.pop(job.group, None)
                self._answered_at.pop(job.group, None)

    def hanging(self, seconds: float) -> Iterator[RateGroup]:
        """The groups whose oldest call has no answer for so long, and that got no other answer since it began."""
        since = time.monotonic() - seconds
        for group, running in self._running.items():
            oldest = next(iter(running.values()))
            if oldest < since and self._answered_at.get(group, 0.0) < oldest:
                yield group

    def note(self, job: ReplyJob, outcome: Outcome) -> None:
        if not isinstance(outcome, Failed) or outcome.answered:
            self._groups.pop(job.group, None)
            if job.group in self._running:
                self._answered_at[job.group] = time.monotonic()
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
