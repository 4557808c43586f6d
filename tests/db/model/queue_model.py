"""The queue as plain Python: what a delivery is, how it may move, and what its events add up to.

Times are microseconds on the history's own clock, which runs ahead of the server's by all the time that was
made to pass; so what a step did not touch stays equal, however often the clock was moved.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Self

FOREVER = 4611686018427387904
SECOND = 1_000_000
TOLERANCE = 50_000
"""τ of the slot rule."""
SLACK = 5 * SECOND
"""Between the moment a function takes for now and the moment it writes the event of it."""
LIVE = frozenset({"queued", "claimed", "sending", "retry"})
GIVEN_UP = frozenset({"dead", "failed_permanent"})
BIRTHS = frozenset({"queued", "failed_permanent", "deduped"})
LEGAL = {
    "queued": {"claimed", "sending", "failed_permanent", "deduped", "dead"},
    "retry": {"claimed", "sending", "failed_permanent", "deduped", "dead"},
    "claimed": {"sending", "queued", "retry", "dead"},
    "sending": {"sent", "retry", "failed_permanent", "dead"},
    "failed_permanent": {"retry"},
    "dead": {"retry"},
    "sent": set[str](),
    "deduped": set[str](),
}


class Violation(AssertionError):  # noqa: N818 -- the invariant is what failed, not the program
    """An invariant does not hold; ``invariant`` names it."""

    def __init__(self, invariant: str, detail: object) -> None:
        super().__init__(f"{invariant}: {detail}")
        self.invariant = invariant


def demand(fine: bool, invariant: str, *detail: object) -> None:
    if not fine:
        raise Violation(invariant, " ".join(map(str, detail)))


class Row(NamedTuple):
    """A delivery; the fields in the order in which ``model_step`` tells them."""

    delivery: str
    message: str
    channel: str
    status: str
    attempt: int
    max_attempts: int
    token: str | None
    hold: str | None
    provider_message_id: str | None
    sent_at: int | None
    next_retry_at: int | None
    lease: int | None
    slot: int | None
    not_before: int
    scheduled_for: int | None
    created_at: int
    updated_at: int
    parts: int

    @property
    def due(self) -> int:
        retry = self.next_retry_at if self.status == "retry" else None
        return max(self.not_before, self.scheduled_for or 0, retry or 0)


ROW_TIMES = slice(9, 17)
"""``sent_at`` … ``updated_at``."""


class Channel(NamedTuple):
    channel: str
    enabled: bool
    paused_until: int | None
    streak: int
    gate: int | None


class Terms(NamedTuple):
    """What a channel was made with and keeps for the whole history."""

    group: str
    step: int
    group_step: int
    places: int
    on_ambiguous: str
    ttl: int
    catch_up: bool


class Event(NamedTuple):
    seq: int
    delivery: str
    action: str
    attempt: int
    provider_message_id: str | None
    next_retry_at: int | None
    ts: int


class Folded(NamedTuple):
    """What the events of a delivery say it is. ``near``: they tell the time of its retry, not the moment itself."""

    status: str = ""
    attempt: int = 0
    provider_message_id: str | None = None
    sent_at: int | None = None
    next_retry_at: int | None = None
    near: bool = False


def fold(state: Folded, event: Event) -> Folded:
    known = event.action in ("stale_commit", "send_attempt")
    demand(known or event.attempt == state.attempt, "events tell the attempt", event, state)
    match event.action:
        case "enqueue":
            return Folded("queued")
        case "send_attempt":
            demand(event.attempt == state.attempt + 1, "attempts rise by one", event, state)
            return state._replace(status="sending", attempt=event.attempt)
        case "sent":
            found = event.provider_message_id or state.provider_message_id
            return Folded("sent", state.attempt, found, event.ts)
        case "retry_scheduled" | "sending_lease_expired":
            return state._replace(status="retry", next_retry_at=event.next_retry_at, near=False)
        case "held":
            return state._replace(status="retry", next_retry_at=FOREVER, near=False)
        case "manual_requeue":
            return state._replace(status="retry", next_retry_at=event.ts, near=True)
        case "dead_letter":
            return state._replace(status="dead", next_retry_at=None, near=False)
        case "failed_permanent" | "catch_up_dropped":
            return state._replace(status="failed_permanent", next_retry_at=None, near=False)
        case _:
            return state


def agrees(state: Folded, row: Row) -> bool:
    def alike(told: int | None, is_: int | None, slack: int) -> bool:
        return told == is_ if told is None or is_ is None else abs(told - is_) <= slack

    return (
        (state.status, state.attempt) == (row.status, row.attempt)
        and state.provider_message_id == row.provider_message_id
        and alike(state.sent_at, row.sent_at, SLACK)
        and alike(state.next_retry_at, row.next_retry_at, 20 * SECOND if state.near else 0)
    )


@dataclass
class View:
    """What a transaction sees: its own writes over what is committed."""

    under: Self | None = None
    rows: dict[str, Row] = field(default_factory=dict)
    channels: dict[str, Channel] = field(default_factory=dict)
    gates: dict[str, int | None] = field(default_factory=dict)
    folds: dict[str, Folded] = field(default_factory=dict)
    slots: list[tuple[str, int]] = field(default_factory=list)
    """Per call: channel and slot."""
    forced: set[tuple[str, str]] = field(default_factory=set)
    """Content and channel of what came back by a hand that asks nobody about twins."""
    claimed: bool = False

    def row(self, delivery: str) -> Row | None:
        return self.rows.get(delivery) or (self.under.row(delivery) if self.under else None)

    def channel(self, channel: str) -> Channel:
        return self.channels[channel] if channel in self.channels or not self.under else self.under.channel(channel)

    def gate(self, group: str) -> int | None:
        return self.gates[group] if group in self.gates or not self.under else self.under.gate(group)

    def folded(self, delivery: str) -> Folded:
        own = self.folds.get(delivery)
        return own or (self.under.folded(delivery) if self.under else Folded())

    def all_rows(self) -> list[Row]:
        return list(({**self.under.rows, **self.rows} if self.under else self.rows).values())

    def all_slots(self) -> list[tuple[str, int]]:
        return [*(self.under.slots if self.under else []), *self.slots]

    def sending(self, channel: str) -> int:
        return sum(row.status == "sending" and row.channel == channel for row in self.all_rows())

    def land(self) -> None:
        """The transaction commits."""
        assert self.under
        for name in ("rows", "channels", "gates", "folds"):
            getattr(self.under, name).update(getattr(self, name))
        self.under.slots += self.slots
        self.under.forced |= self.forced


def check_move(before: Row | None, after: Row) -> None:
    """Legal for whoever did it."""
    if before is None:
        demand(after.status in BIRTHS, "legal transitions only", "born as", after.status)
        demand(after.attempt == 0, "attempts monotonic", "born with", after.attempt)
        return
    moved = before.status != after.status
    demand(not moved or after.status in LEGAL[before.status], "legal transitions only", before, after)
    started = moved and after.status == "sending"
    demand(after.attempt == before.attempt + started, "attempts monotonic", before, after)
    demand((before.message, before.channel) == (after.message, after.channel), "keys never change", before, after)
    demand(after.parts >= before.parts, "progress is never lost", before, after)


def check_spacing(slots: list[int], step: int, gate: str) -> None:
    """Any n + 1 slots of a gate span at least n steps − τ."""
    if not step:
        return
    times = sorted(slots)
    highest = times[0]
    for place, time in enumerate(times):
        reserved = time - place * step
        demand(reserved >= highest - TOLERANCE - 2 * place, "slot spacing", gate, "step", step, times)
        highest = max(highest, reserved)


def retry_delay(attempt: int, retry_after_ms: int | None, jitter: float = 0.5) -> int:
    if retry_after_ms is not None:
        return round(retry_after_ms * 1000 * (1 + 0.2 * jitter))
    seconds: int = min(2 << (max(attempt, 1) - 1), 600)
    return round(seconds * (0.8 + 0.4 * jitter) * SECOND)
